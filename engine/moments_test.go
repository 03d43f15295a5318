package engine

import "testing"

func TestVarianceOfManyLargeValues(t *testing.T) {
	var m Moments
	for i := range 200_000 { // their sum of squares times their number needs more than 64 bits
		m.Add(1_000_000 + i%2*2)
	}
	if v := m.Variance(); v != 1 {
		t.Errorf("got %v, want 1", v)
	}
	m.Add(5)
	m.Remove(5)
	if v := m.Variance(); v != 1 {
		t.Errorf("after a value came and went: got %v, want 1", v)
	}
	if v := (&Moments{}).Variance(); v != 0 {
		t.Errorf("of nothing: got %v", v)
	}
}
