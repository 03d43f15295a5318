package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine/goldentest"
)

func TestGoldenReplay(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(goldentest.Dir(t, "replay"), "table.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Input  struct{ Report map[string]any }
		Expect struct{ Text string }
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			var f Fields
			for key, value := range c.Input.Report {
				f.add(key, value)
			}
			var b bytes.Buffer
			if err := WriteTable(&b, f); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.Expect.Text+"\n", b.String()); d != "" {
				t.Error(d)
			}
		})
	}
}
