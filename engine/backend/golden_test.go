package backend_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/engine/goldentest"
)

// TestGoldenOutputs replays whole runs with speculative bursts. The runs of the SGLang engine have a form of their own
// and are replayed beside that engine.
func TestGoldenOutputs(t *testing.T) {
	for _, c := range goldentest.Load(t, "outputs", "mtp-engine") {
		var in struct{ Backend engine.Backend }
		if err := json.NewDecoder(bytes.NewReader(c.Input.Engine)).Decode(&in); err != nil {
			t.Fatal(err)
		}
		if in.Backend == engine.SGLang {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			goldentest.Run(t, &c, func(cfg engine.Config, c *goldentest.Case) (*engine.Group, error) {
				return backend.NewGroup(cfg, c.Input.WorkerID, c.Input.DPSize)
			})
		})
	}
}
