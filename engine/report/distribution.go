package report

import (
	"math"
	"slices"
)

// exactSamples is up to how many samples percentiles are exact; beyond, their relative error is below 0.1 %.
const exactSamples = 4096

// distribution is exact for few samples and a sketch for many. The zero value is empty.
type distribution struct {
	sketch
	samples []float64 // all of them, as long as there are few
}

func (d *distribution) add(x float64) {
	d.sketch.add(x, 1)
	if d.n <= exactSamples {
		d.samples = append(d.samples, x)
	}
}

func (d *distribution) exact() bool { return d.n == uint64(len(d.samples)) }

// merge takes in all samples of o. The result is exact if both are and there are few enough.
func (d *distribution) merge(o *distribution) {
	whole := d.exact() && o.exact()
	d.sketch.merge(&o.sketch)
	if whole && d.n <= exactSamples {
		d.samples = append(d.samples, o.samples...)
	} else {
		d.samples = nil
	}
}

// stats returns the figures of the distribution.
func (d *distribution) stats() Distribution {
	if d.n == 0 || !d.exact() {
		return d.sketch.stats()
	}
	sorted := slices.Sorted(slices.Values(d.samples))
	at := func(p float64) float64 { return sorted[int(math.Round(float64(len(sorted)-1)*p/100))] }
	out := Distribution{Samples: d.n, Min: d.min, Max: d.max, Median: at(50), P75: at(75), P90: at(90), P95: at(95), P99: at(99)}
	for _, x := range d.samples {
		out.Mean += x
	}
	out.Mean /= float64(d.n)
	for _, x := range d.samples {
		out.Std += (x - out.Mean) * (x - out.Mean)
	}
	out.Std = math.Sqrt(out.Std / float64(d.n))
	return out
}

func (s *sketch) stats() Distribution {
	if s.n == 0 {
		return Distribution{}
	}
	return Distribution{Samples: s.n, Mean: s.mean, Min: s.min, Max: s.max, Median: s.percentile(50), P75: s.percentile(75),
		P90: s.percentile(90), P95: s.percentile(95), P99: s.percentile(99), Std: math.Sqrt(s.m2 / float64(s.n))}
}
