package report

import (
	"math/rand/v2"
	"testing"

	"mockbench/engine"
)

// Bins hold all samples, one after the other, from the least to the greatest.
func TestShapes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []float64{0, 1, 1e4} {
		var x exact
		var s sketch
		for range 5000 {
			v := 3 + spread*random.Float64()
			x.add(v)
			s.add(v, 1)
		}
		for _, shape := range []Shape{x.shape("x"), s.shape("x")} {
			var n uint64
			for i, b := range shape.Bins {
				n += b.N
				if b.High <= b.Low || i > 0 && shape.Bins[i-1].High != b.Low {
					t.Fatalf("spread %g: bins %+v", spread, shape.Bins)
				}
			}
			if n != 5000 || shape.Bins[0].N == 0 || shape.Bins[len(shape.Bins)-1].N == 0 {
				t.Errorf("spread %g: %d samples in %+v", spread, n, shape.Bins)
			}
		}
	}
	if len(exact(nil).shape("x").Bins)+len((&sketch{}).shape("x").Bins) > 0 {
		t.Error("nothing has a shape")
	}
}

// The view of a run under way has the least and greatest samples and the counts of what has ended so far.
func TestSoFar(t *testing.T) {
	c := NewOffline(OfflineOptions{})
	view := c.SoFar()
	for i, first := range []engine.Time{30, 50, 20, 40} {
		var e Entry
		e.Reset()
		e.Input = 10
		c.Arrive(&e)
		c.Admit(&e, Aggregated, 0, &engine.Admission{})
		c.Token(&e, first)
		c.Token(&e, first+2)
		c.End(&e, first+2, Completed)
		least, _ := view.Statistic("ttft_ms", "min")
		greatest, n := view.Statistic("ttft_ms", "max")
		if want := [][2]float64{{30, 30}, {30, 50}, {20, 50}, {20, 50}}[i]; least != want[0] || greatest != want[1] || n != uint64(i+1) {
			t.Errorf("after %d requests: %g to %g of %d samples", i+1, least, greatest, n)
		}
		if x, ok := view.Figure("total_input_tokens"); !ok || x != float64(10*(i+1)) {
			t.Errorf("after %d requests: %g input tokens", i+1, x)
		}
	}
	if _, ok := view.Figure("request_throughput_rps"); ok {
		t.Error("a figure that can fall is told")
	}
}

// Percentiles of a sketch leave the range of the samples; those that are shown and judged do not.
func TestClamped(t *testing.T) {
	var s sketch
	s.add(5.74, 100)
	d := s.stats()
	if d.P90 == 5.74 {
		t.Fatal("the sketch is exact here, choose another value")
	}
	if c := d.Clamped(); c.P90 != 5.74 || c.Median != 5.74 || c.P99 != 5.74 {
		t.Errorf("%+v", c)
	}
}
