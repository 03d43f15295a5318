package random

import "testing"

func TestSeekGoesAnywhere(t *testing.T) {
	const n = 100
	r, words := New(42), [n]uint32{}
	r.Read(words[:])
	for _, at := range []int{0, 1, 15, 16, 17, 99, 48, 47, 3} {
		r.Seek(uint64(at))
		if got := r.Uint32(); got != words[at] {
			t.Errorf("word %d: got %d, want %d", at, got, words[at])
		}
	}
	again := New(42)
	for i, want := range words {
		if got := again.Uint32(); got != want {
			t.Fatalf("word %d, one at a time: got %d, want %d", i, got, want)
		}
	}
}

func BenchmarkBlockOfTokens(b *testing.B) {
	r, tokens := New(42), [64]uint32{}
	for i := 0; b.Loop(); i++ {
		r.Seek(uint64(i) * 77)
		r.Read(tokens[:])
	}
}
