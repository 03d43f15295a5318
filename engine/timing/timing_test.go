package timing

import (
	"math"
	"testing"

	"mockbench/engine"
)

// sameOrNext allows the last bit to differ.
func sameOrNext(a, b float64) bool {
	return a == b || math.Nextafter(a, b) == b
}

func TestTiesRoundOnTheExactValue(t *testing.T) {
	for ms, want := range map[float64]float64{1.5e-6: 1e-6, 2.5e-6: 3e-6, 3.5e-6: 3e-6} {
		if got := Scale(ms, 1); !sameOrNext(float64(got), want) {
			t.Errorf("%v ms: got %v, want %v", ms, got, want)
		}
	}
}

func TestFixed(t *testing.T) {
	m, err := NewModel(engine.TimingConfig{Type: "fixed", PrefillMS: 10, DecodeMS: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Prefill(3, 10, 10); got != 0 {
		t.Errorf("nothing to compute: got %v ms", got)
	}
	if got := m.Prefill(3, 11, 10); got != 10 {
		t.Errorf("prefill: got %v ms", got)
	}
	if got := m.Decode(1, 5, 5, 100); got != 2 {
		t.Errorf("decode: got %v ms", got)
	}
	if _, err := NewModel(engine.TimingConfig{Type: "external"}); err == nil {
		t.Error("a model of another kind is accepted")
	}
}
