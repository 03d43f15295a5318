package sglang_test

import (
	"runtime"
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/engine/goldentest"
)

// BenchmarkEngine drains the baseline workload with pages of 16 tokens, in a roomy pool and in one that retracts.
func BenchmarkEngine(b *testing.B) {
	requests := goldentest.Baseline()
	outputs := 0
	for _, r := range requests {
		outputs += r.MaxOutput
	}
	for name, pages := range map[string]int{"roomy": 16384, "tight": 2048} {
		b.Run(name, func(b *testing.B) {
			cfg := engine.DefaultConfig(engine.SGLang)
			cfg.NumGPUBlocks, cfg.BlockSize, cfg.EmitKVEvents = pages, 16, true
			var got goldentest.Counts
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range b.N {
				g, err := backend.NewGroup(cfg, 0, 1)
				if err != nil {
					b.Fatal(err)
				}
				if got = goldentest.Drain(b, g, requests); got.Outputs != outputs {
					b.Fatalf("%d outputs, want %d", got.Outputs, outputs)
				}
			}
			runtime.ReadMemStats(&after)
			tokens := float64(outputs * b.N)
			b.ReportMetric(tokens/b.Elapsed().Seconds(), "tokens/s")
			b.ReportMetric(float64(got.Passes*b.N)/b.Elapsed().Seconds(), "passes/s")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/tokens, "allocs/token")
		})
	}
}
