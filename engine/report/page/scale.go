package page

import (
	"math"
	"strconv"
	"strings"
)

// Axis is how values become places.
type Axis struct {
	Label string
	Log   bool // shows values by their magnitude, if all are positive
}

// scale maps values to pixels.
type scale struct {
	low, high float64 // values
	from, to  float64 // pixels
	log       bool
	ticks     []float64
}

// newScale returns the scale for values between low and high; a linear one begins at 0 if that wastes little, and ends at
// round values if it is upright.
func newScale(a Axis, low, high, from, to float64) scale {
	s := scale{low: low, high: high, from: from, to: to, log: a.Log && low > 0}
	if s.log {
		if s.high/s.low < 1.2 {
			s.low, s.high = s.low/1.2, s.high*1.2
		}
		s.ticks = s.decades()
		return s
	}
	if low >= 0 && low < 0.4*high || low == high && low >= 0 {
		s.low = 0
	}
	if s.high <= s.low {
		s.high = s.low + 1
	}
	step := nice((s.high - s.low) / 5)
	first := math.Ceil(s.low/step-1e-9) * step
	if upright := from > to; upright {
		first = math.Floor(s.low/step+1e-9) * step
		s.low, s.high = first, math.Ceil(s.high/step-1e-9)*step
	}
	for i := 0.0; first+i*step <= s.high*(1+1e-9); i++ {
		s.ticks = append(s.ticks, first+i*step)
	}
	return s
}

// decades returns the round values of a logarithmic scale: powers of ten, with 2 and 5 in between if there is room.
func (s *scale) decades() (ticks []float64) {
	parts := []float64{1, 2, 5}
	if s.high/s.low > 2000 {
		parts = parts[:1]
	}
	for e := math.Floor(math.Log10(s.low)); e <= math.Ceil(math.Log10(s.high)); e++ {
		for _, p := range parts {
			if t := p * math.Pow(10, e); t >= s.low*0.999 && t <= s.high*1.001 {
				ticks = append(ticks, t)
			}
		}
	}
	if len(ticks) < 2 {
		ticks = []float64{s.low, s.high}
	}
	return ticks
}

// nice returns the smallest round step that is not smaller than x: 1, 2, 2.5 or 5 times a power of ten.
func nice(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 2.5, 5} {
		if x <= f*unit*1.0000001 {
			return f * unit
		}
	}
	return 10 * unit
}

func (s *scale) at(x float64) float64 {
	share := (x - s.low) / (s.high - s.low)
	if s.log {
		share = math.Log(x/s.low) / math.Log(s.high/s.low)
	}
	return s.from + (s.to-s.from)*min(1, max(0, share))
}

// Number writes a value in few digits, large ones with k, M or G.
func Number(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "--"
	case a >= 1e9:
		return digits(x/1e9, 4) + "G"
	case a >= 1e6:
		return digits(x/1e6, 4) + "M"
	case a >= 1e4:
		return digits(x/1e3, 4) + "k"
	}
	return digits(x, 4)
}

// digits writes a value with so many significant digits and without an exponent.
func digits(x float64, n int) string {
	if x == 0 {
		return "0"
	}
	decimals := max(0, n-1-int(math.Floor(math.Log10(math.Abs(x)))))
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
