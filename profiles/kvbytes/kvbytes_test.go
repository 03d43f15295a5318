package kvbytes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, config, dtype string
		bytes, exact        int64
		wrong               string // part of the error
	}{
		{"grouped heads", `{"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"hidden_size":4096}`, "auto", 131072, 0, ""},
		{"head size of its own", `{"num_hidden_layers":64,"num_attention_heads":64,"num_key_value_heads":8,"hidden_size":5120,"head_dim":128}`, "auto", 163840, 262144, ""},
		{"inside a wrapper", `{"hidden_size":1,"text_config":{"num_hidden_layers":2,"num_attention_heads":2,"hidden_size":8,"dtype":"float32"}}`, "auto", 128, 0, ""},
		{"counted twice", `{"num_hidden_layers":2,"num_attention_heads":2,"hidden_size":8}`, "fp8_e5m2", 64, 0, ""},
		{"too large", `{"num_hidden_layers":9000000000000000000,"num_attention_heads":2,"hidden_size":8}`, "auto", 0, 0, "more bytes than can be counted"},
		{"no heads", `{"num_hidden_layers":2,"num_attention_heads":0,"hidden_size":8}`, "auto", 0, 0, "num_attention_heads: got 0"},
		{"negative", `{"num_hidden_layers":2,"num_attention_heads":1,"hidden_size":-8}`, "auto", 0, 0, "must not be negative"},
		{"heads in words", `{"num_hidden_layers":2,"num_attention_heads":2,"hidden_size":8,"num_kv_heads":"two"}`, "auto", 0, 0, "num_kv_heads: must be a whole number"},
		{"fractions", `{"num_hidden_layers":2.5,"num_attention_heads":2,"hidden_size":8}`, "auto", 0, 0, "are not given together"},
		{"not an object", `[1]`, "auto", 0, 0, "must be an object"},
		{"not JSON", `{"a":`, "auto", 0, 0, "not valid JSON"},
	} {
		l, err := Parse([]byte(c.config), c.dtype)
		switch {
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: got %v, want %q", c.name, err, c.wrong)
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.wrong == "" && (l.Bytes != c.bytes || l.Exact() != c.exact):
			t.Errorf("%s: got %d, exactly %d, want %d and %d", c.name, l.Bytes, l.Exact(), c.bytes, c.exact)
		}
	}
}

func TestReadNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir, "auto"); err == nil || !strings.Contains(err.Error(), "config.json: no such file") {
		t.Errorf("no file: got %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "config.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir, "auto"); err == nil || !strings.Contains(err.Error(), "must be a regular file") {
		t.Errorf("a folder: got %v", err)
	}
}
