// Package goldencase reads what was recorded of the reference, for tests of transports.
package goldencase

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"mockbench/engine/goldentest"
)

// Case is one recorded case in the form that most areas have.
type Case struct {
	Name          string
	Why           string
	Input, Expect json.RawMessage
}

// Read returns the cases of a file of an area, whose content is one array or one case after the other. A set without the
// file has none of its cases.
func Read(t testing.TB, area, file string) (cases []Case) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldentest.Dir(t, area), file))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		Parse(t, data, &cases)
		return cases
	}
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var c Case
		switch err := d.Decode(&c); {
		case errors.Is(err, io.EOF):
			return cases
		case err != nil:
			t.Fatalf("%s: %v", file, err)
		}
		cases = append(cases, c)
	}
}

// Parse reads JSON into v.
func Parse(t testing.TB, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}
