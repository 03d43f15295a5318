package vllm_test

import (
	"math"
	"runtime"
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/engine/goldentest"
)

// BenchmarkEngine drains the baseline workload. The counts are those of the reference.
func BenchmarkEngine(b *testing.B) {
	requests := goldentest.Baseline()
	for _, v := range []struct {
		name   string
		blocks int
		events bool
		host   int
		want   goldentest.Counts
	}{
		{"roomy", 16384, true, 0, goldentest.Counts{Passes: 2793, Events: 86665, Outputs: 674461, EndMS: 166307.447}},
		{"roomy-no-events", 16384, false, 0, goldentest.Counts{Passes: 2793, Outputs: 674461, EndMS: 166307.447}},
		{"tight", 2048, true, 0, goldentest.Counts{Passes: 16729, Events: 90061, Preemptions: 739, Outputs: 674461, EndMS: 676348.427}},
		{"host-offload", 4096, true, 65536, goldentest.Counts{Passes: 7898, Events: 101565, Preemptions: 479, Outputs: 674461, EndMS: 360565.756}},
	} {
		b.Run(v.name, func(b *testing.B) {
			cfg := engine.DefaultConfig(engine.VLLM)
			cfg.NumGPUBlocks, cfg.BlockSize, cfg.EmitKVEvents = v.blocks, 16, v.events
			if v.host > 0 {
				cfg.HostOffload, cfg.KVCacheBytesPerToken = engine.DefaultHostOffload(v.host), 131072
			}
			benchmark(b, cfg, requests, v.want)
		})
	}
}

func benchmark(b *testing.B, cfg engine.Config, requests []*engine.Request, want goldentest.Counts) {
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range b.N {
		g, err := backend.NewGroup(cfg, 0, 1)
		if err != nil {
			b.Fatal(err)
		}
		got := goldentest.Drain(b, g, requests)
		if math.Abs(got.EndMS-want.EndMS) > 1e-3 {
			b.Fatalf("simulated %v ms, want %v", got.EndMS, want.EndMS)
		}
		if got.EndMS = want.EndMS; got != want {
			b.Fatalf("got %+v, want %+v", got, want)
		}
	}
	runtime.ReadMemStats(&after)
	tokens := float64(want.Outputs * b.N)
	b.ReportMetric(tokens/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(want.Passes*b.N)/b.Elapsed().Seconds(), "passes/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/tokens, "allocs/token")
}
