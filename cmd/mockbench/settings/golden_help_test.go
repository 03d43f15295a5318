package settings_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/profiles"
)

// same compares two values as JSON, numbers by value.
func same(t *testing.T, name string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(plain(t, want), plain(t, got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// plain turns a value into maps, lists, strings and canonical number texts.
func plain(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return numbers(out)
}

func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return strconv.FormatUint(n, 10)
		}
		f, _ := v.Float64()
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return v
}

func toFloat(v any) float64 {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		return f
	case string:
		f, _ := strconv.ParseFloat(v, 64)
		return f
	}
	return math.NaN()
}

func toInt(v any) int {
	n, _ := strconv.Atoi(string(v.(json.Number)))
	return n
}

func nonNil(list []int64) []int64 {
	if list == nil {
		return []int64{}
	}
	return list
}

func toObject(t *testing.T, v any) *profiles.Object {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	o, err := profiles.ParseJSON("input", text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// replaceDir puts a test's directory into the texts of a value.
func replaceDir(v any, dir string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "@DIR@", dir)
	case map[string]any:
		for k := range v {
			v[k] = replaceDir(v[k], dir)
		}
	case []any:
		for i := range v {
			v[i] = replaceDir(v[i], dir)
		}
	}
	return v
}

// writeFiles writes the files of a case: text, an object as JSON with its keys in order, or bytes in hexadecimal.
func writeFiles(t *testing.T, dir string, line []byte) {
	t.Helper()
	o, err := profiles.ParseJSON("case", line)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := o.Get("input.files")
	files, ok := v.(*profiles.Object)
	if !ok {
		return
	}
	for _, name := range files.Keys() {
		content, _ := files.Raw(name)
		data, err := bytesOf(content)
		path := filepath.Join(dir, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func bytesOf(content any) ([]byte, error) {
	switch v := content.(type) {
	case string:
		if digits, ok := strings.CutPrefix(v, "hex:"); ok {
			return hex.DecodeString(digits)
		}
		return []byte(v), nil
	case *profiles.Object:
		if digits, ok := v.Raw("hex"); ok && len(v.Keys()) == 1 {
			return hex.DecodeString(digits.(string))
		}
	}
	return json.Marshal(content)
}
