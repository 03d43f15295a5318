package trtllm_test

import (
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/engine/goldentest"
)

func TestGoldenEngineTrtllm(t *testing.T) {
	for _, c := range goldentest.Load(t, "engine-trtllm") {
		t.Run(c.Name, func(t *testing.T) {
			goldentest.Run(t, &c, func(cfg engine.Config, c *goldentest.Case) (*engine.Group, error) {
				return backend.NewGroup(cfg, c.Input.WorkerID, c.Input.DPSize)
			})
		})
	}
}
