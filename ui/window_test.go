package ui

import (
	"math"
	"testing"
)

func TestSpreadKeepsTheSum(t *testing.T) {
	for _, c := range []struct{ low, high float64 }{{0, 0.5}, {0.25, 3.5}, {2, 2}, {6, 40}, {30, 31}} {
		steps := make([]float64, 8)
		spread(steps, c.low, c.high, 10)
		var sum float64
		for _, s := range steps {
			sum += s
		}
		if math.Abs(sum-10) > 1e-9 {
			t.Errorf("%v: sum %v, want 10: %v", c, sum, steps)
		}
	}
}
