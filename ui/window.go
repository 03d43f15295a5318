package ui

import (
	"math"

	"mockbench/engine/report"
	"mockbench/ui/knobs"
)

// WindowOf turns the figures of the last seconds into what the screen draws.
func WindowOf(w *report.Window, slo knobs.SLO) Window {
	return Window{Seconds: w.Seconds, TTFT: within(&w.TTFT, slo.TTFT), ITL: within(&w.ITL, slo.ITL), E2E: within(&w.E2E, slo.E2E),
		Queue: histogram(&w.Queue), Requests: int(w.E2E.N), Goodput: math.NaN()}
}

// bins is the number of equal steps a histogram is shown in.
const bins = 32

// histogram turns logarithmic buckets into the percentiles and equal steps that the screen draws. A bucket is spread
// evenly over the steps it covers.
func histogram(h *report.Histogram) Figures {
	f := Figures{Count: int(h.N)}
	if h.N == 0 {
		return f
	}
	f.P50, _ = h.Percentile(50)
	f.P90, _ = h.Percentile(90)
	f.P99, _ = h.Percentile(99)
	f.BinWidth = math.Max(f.P99*1.2, 1e-3) / bins
	f.Bins = make([]float64, bins)
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		low, high := h.Range(i)
		spread(f.Bins, low/f.BinWidth, high/f.BinWidth, float64(n))
	}
	return f
}

// within is histogram with an SLO limit in milliseconds; 0 is none.
func within(h *report.Histogram, limit float64) Figures {
	f := histogram(h)
	if f.SLO = limit; limit > 0 {
		f.Within, _ = h.Share(limit)
	}
	return f
}

// spread adds n over the steps from low to high; the last step holds everything beyond.
func spread(steps []float64, low, high, n float64) {
	last := len(steps) - 1
	if high <= low {
		steps[min(int(low), last)] += n
		return
	}
	for at := low; at < high; {
		step := min(int(at), last)
		next := high
		if step < last {
			next = math.Min(high, float64(step+1))
		}
		steps[step] += n * (next - at) / (high - low)
		at = next
	}
}
