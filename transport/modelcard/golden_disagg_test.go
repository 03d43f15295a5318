package modelcard

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
)

// TestGoldenDisagg compares the parts of recorded cards that depend on the role of a worker.
func TestGoldenDisagg(t *testing.T) {
	root := os.Getenv("MOCKBENCH_GOLDEN")
	if root == "" {
		root = filepath.Join("..", "..", "testdata", "golden")
	}
	data, err := os.ReadFile(filepath.Join(root, "disagg", "cards.json"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var cases []struct {
		Name  string
		Input struct {
			Mode  string `json:"disaggregation_mode"`
			Ports any    `json:"bootstrap_ports"`
		}
		Expect map[string]any
	}
	if err == nil {
		err = json.Unmarshal(data, &cases)
	}
	if err != nil {
		t.Fatal(err)
	}
	model, err := Builtin(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			o := Options{Model: model, Name: "m", Engine: engine.DefaultConfig(engine.VLLM), Ranks: 1, LocalIndexer: true}
			if c.Input.Mode != "agg" {
				o.Engine.Role = engine.Role(c.Input.Mode)
			}
			if c.Input.Ports != nil {
				o.Bootstrap = &Bootstrap{Host: "10.1.2.3", Port: 7777}
			}
			got := roleParts(t, o, c.Expect)
			if where, ok := c.Expect["runtime_config"].(map[string]any)["disaggregated_endpoint"].(map[string]any); ok {
				where["bootstrap_host"], where["bootstrap_port"] = "10.1.2.3", 7777.0
			}
			if d := cmp.Diff(c.Expect, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// roleParts returns the fields of a card that a recorded one shows.
func roleParts(t *testing.T, o Options, recorded map[string]any) map[string]any {
	t.Helper()
	card, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(card)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	parts := map[string]any{}
	for key := range recorded {
		if v, ok := all[key]; ok {
			parts[key] = v
		}
	}
	return parts
}
