package trtllm_test

import (
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/engine/goldentest"
)

// BenchmarkEngine drains the baseline workload in a tight pool. Nothing is preempted and no token is lost.
func BenchmarkEngine(b *testing.B) {
	requests := goldentest.Baseline()
	cfg := engine.DefaultConfig(engine.TRTLLM)
	cfg.NumGPUBlocks, cfg.BlockSize, cfg.EmitKVEvents = 2048, 16, true
	b.ReportAllocs()
	var c goldentest.Counts
	for b.Loop() {
		g, err := backend.NewGroup(cfg, 0, 1)
		if err != nil {
			b.Fatal(err)
		}
		c = goldentest.Drain(b, g, requests)
		if c.Outputs != 674461 || c.Preemptions != 0 {
			b.Fatalf("got %+v", c)
		}
	}
	b.ReportMetric(float64(c.Outputs*b.N)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(c.Passes*b.N)/b.Elapsed().Seconds(), "passes/s")
}
