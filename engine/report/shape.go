package report

import (
	"math"

	"mockbench/engine"
)

// Shape is how the samples of a metric are spread: bins one after the other, without a gap.
type Shape struct {
	Metric string
	Bins   []Bin
	Log    bool // bins of equal ratio; else of equal length
}

// Bin counts samples from Low up to High.
type Bin struct {
	Low, High float64
	N         uint64
}

// shapeBins is how many bins a Shape has.
const shapeBins = 48

// newShape prepares bins for samples between two values; far apart they are of equal ratio.
func newShape(metric string, low, high float64) *Shape {
	s := &Shape{Metric: metric, Log: low > 0 && high/low > 30}
	if high <= low {
		s.Bins = []Bin{{Low: low * 0.98, High: max(low*1.02, 1e-6)}}
		return s
	}
	at := func(i int) float64 { return low + (high-low)*float64(i)/shapeBins }
	if s.Log {
		at = func(i int) float64 { return low * math.Pow(high/low, float64(i)/shapeBins) }
	}
	for i := range shapeBins {
		s.Bins = append(s.Bins, Bin{Low: at(i), High: at(i + 1)})
	}
	return s
}

// add counts n samples of a value; what lies outside goes to the first or last bin.
func (s *Shape) add(x float64, n uint64) {
	low, high := s.Bins[0].Low, s.Bins[len(s.Bins)-1].High
	part := (x - low) / (high - low)
	if s.Log {
		part = math.Log(x/low) / math.Log(high/low)
	}
	s.Bins[min(max(int(part*float64(len(s.Bins))), 0), len(s.Bins)-1)].N += n
}

func (x exact) shape(metric string) Shape {
	if len(x) == 0 {
		return Shape{Metric: metric}
	}
	var r span
	r.update(x)
	s := newShape(metric, r.min, r.max)
	for _, v := range x {
		s.add(v, 1)
	}
	return *s
}

func (s *sketch) shape(metric string) Shape {
	if s.n == 0 {
		return Shape{Metric: metric}
	}
	out := newShape(metric, s.min, s.max)
	if s.zeros > 0 {
		out.add(s.min, s.zeros)
	}
	for i, n := range s.bins {
		if n > 0 {
			out.add(s.value(i), n)
		}
	}
	return *out
}

func (d *distribution) shape(metric string) Shape {
	if d.exact() {
		return exact(d.samples).shape(metric)
	}
	return d.sketch.shape(metric)
}

// Shapes returns how the latencies of the run are spread.
func (c *Offline) Shapes() []Shape {
	c.flush()
	return []Shape{c.ttft.shape("ttft_ms"), c.itl.shape("itl_ms"), c.tpot.shape("tpot_ms"), c.e2e.shape("e2e_latency_ms")}
}

// Shapes returns how the latencies of the run so far are spread.
func (c *Collector) Shapes(now engine.Time) []Shape {
	l := c.total(Final{Now: now}, func(int, *ledger) {})
	return []Shape{l.ttft.shape("ttft_ms"), l.itl.shape("itl_ms"), l.tpot.shape("tpot_ms"), l.e2e.shape("e2e_latency_ms")}
}
