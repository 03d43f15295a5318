package aisdata

import (
	"testing"

	"mockbench/engine"
)

// dense is a placement that the cut-out has data for.
func dense(t testing.TB) *Prediction {
	t.Helper()
	p, err := testRoot(t).Predict(Descriptor{Model: "meta-llama/Meta-Llama-3.1-8B", System: "h100_sxm", Backend: engine.VLLM})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		dense(b)
	}
}

// BenchmarkPass asks for passes that were not asked for before.
func BenchmarkPass(b *testing.B) {
	p := dense(b)
	b.Run("prefill", func(b *testing.B) {
		b.ReportAllocs()
		for n := 1; b.Loop(); n = n%8192 + 1 {
			if _, err := p.PrefillOps(1, n, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for n := 1; b.Loop(); n = n%8192 + 1 {
			if _, err := p.DecodeOps(n%256+1, n); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Decode(32, 0, 1000, 0)
		}
	})
}
