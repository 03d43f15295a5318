package vllm_test

import (
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/engine/goldentest"
	"mockbench/kv/hostcache"
)

func build(cfg engine.Config, c *goldentest.Case) (*engine.Group, error) {
	var shared *hostcache.Pool
	if h := cfg.HostOffload; h != nil && h.Scope == engine.ScopeShared && !c.Input.NoPool {
		shared = backend.NewSharedHost(cfg, 1)
	}
	return backend.NewSharingGroup(cfg, c.Input.WorkerID, c.Input.DPSize, shared)
}

func TestGoldenEngineVllm(t *testing.T) {
	for _, c := range goldentest.Load(t, "engine-vllm") {
		t.Run(c.Name, func(t *testing.T) { goldentest.Run(t, &c, build) })
	}
}

func TestGoldenHostOffload(t *testing.T) {
	for _, c := range goldentest.Load(t, "host-offload") {
		t.Run(c.Name, func(t *testing.T) { goldentest.Run(t, &c, build) })
	}
}
