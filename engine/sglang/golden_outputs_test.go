package sglang

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"mockbench/engine/goldentest"
)

// TestGoldenOutputs replays the recorded runs with speculative bursts of this engine.
func TestGoldenOutputs(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(goldentest.Dir(t, "outputs"), "mtp-engine.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for line := range bytes.Lines(data) {
		var c goldenCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(c.Input.Engine, []byte(`"backend":"sglang"`)) {
			cases++
			t.Run(c.Name, func(t *testing.T) { runGolden(t, &c) })
		}
	}
	if cases == 0 {
		t.Error("no recorded runs of this engine")
	}
}
