package sglang

import (
	"bytes"
	"testing"

	"mockbench/engine/goldentest"
)

// TestGoldenOutputs replays the recorded runs with speculative bursts of this engine.
func TestGoldenOutputs(t *testing.T) {
	cases := 0
	for _, c := range goldentest.Load(t, "outputs", "mtp-engine") {
		if bytes.Contains(c.Input.Engine, []byte(`"backend":"sglang"`)) {
			cases++
			t.Run(c.Name, func(t *testing.T) { runGolden(t, &c) })
		}
	}
	if cases == 0 {
		t.Error("no recorded runs of this engine")
	}
}
