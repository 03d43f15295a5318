package profiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(path); string(data) != "{}" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
	if _, err := ReadFile(filepath.Join(dir, "b.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.Truncate(path, mostFileBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "longer than 16 MiB") {
		t.Errorf("a file that is too long: %v", err)
	}
}
