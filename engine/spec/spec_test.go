package spec

import (
	"slices"
	"testing"

	"mockbench/engine/random"
)

func TestStream(t *testing.T) {
	s := random.New(42)
	for i, want := range []uint64{0x86cc7763222724a2, 0x8af00a133fad517d, 0xa2ef6071de5134d1} {
		if got := s.Uint64(); got != want {
			t.Fatalf("draw %d: got %x, want %x", i, got, want)
		}
	}
}

func TestAccept(t *testing.T) {
	s := NewSampler([]float64{0.8, 0.6, 0.4}, 42)
	var got []int
	for range 20 {
		got = append(got, s.Accept())
	}
	want := []int{3, 3, 2, 3, 4, 4, 3, 1, 4, 3, 3, 2, 1, 1, 3, 3, 1, 4, 3, 1}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestCertainRatesDrawOnlyWhenTheyRefuse(t *testing.T) {
	s := NewSampler([]float64{1, 1}, 1)
	if got := s.Accept(); got != 3 || *s.source != *random.New(1) {
		t.Errorf("rate 1: got %d tokens, and draws", got)
	}
	s = NewSampler([]float64{0, 1}, 1)
	one := random.New(1)
	one.Uint64()
	if got := s.Accept(); got != 1 || *s.source != *one {
		t.Errorf("rate 0: got %d tokens, or not one draw", got)
	}
}
