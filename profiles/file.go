package profiles

import (
	"fmt"
	"io"
	"os"
)

// mostFileBytes is far more than any file of settings has.
const mostFileBytes = 16 << 20

// ReadFile reads a file of settings. One that does not end, such as a device, is an error.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostFileBytes+1))
	if err == nil && len(data) > mostFileBytes {
		return nil, fmt.Errorf("%s: is longer than %d MiB", path, mostFileBytes>>20)
	}
	return data, err
}
