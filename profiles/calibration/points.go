package calibration

import (
	"cmp"
	"math"
	"slices"
)

// point is a place of a table and the mean of its measurements.
type point struct {
	tokens  float64 // of the prompts together, or in use
	context float64 // of a request, for decode
	ms      float64
	weight  float64 // measurements
}

// requests is the batch size that tokens in use and the context of each make, at least 1.
func (p *point) requests() float64 { return max(1, p.tokens/p.context) }

func prefillPoints(samples []Sample) []point {
	var list []point
	for i := range samples {
		if s := &samples[i]; s.TTFTMS > 0 && s.promptTokens() > 0 {
			list = append(list, point{tokens: s.promptTokens(), ms: s.TTFTMS, weight: 1})
		}
	}
	return merged(list)
}

func decodePoints(samples []Sample) []point {
	var list []point
	for i := range samples {
		if s := &samples[i]; s.ITLMS > 0 && s.Context >= 0.5 {
			list = append(list, point{tokens: s.tokensInUse(), context: math.Round(s.Context), ms: s.ITLMS, weight: 1})
		}
	}
	return merged(list)
}

// merged sorts points and makes one of those at the same place.
func merged(list []point) []point {
	slices.SortStableFunc(list, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.tokens, b.tokens), cmp.Compare(a.context, b.context))
	})
	out := list[:0]
	for _, p := range list {
		if last := len(out) - 1; last >= 0 && out[last].tokens == p.tokens && out[last].context == p.context {
			out[last] = pooled(out[last], p)
			continue
		}
		out = append(out, p)
	}
	return out
}

// pooled takes the mean of two points at the place of the first.
func pooled(a, b point) point {
	weight := a.weight + b.weight
	a.ms, a.weight = (a.ms*a.weight+b.ms*b.weight)/weight, weight
	return a
}

// rising returns times that never fall from point to point and are as near to the given ones as they can be: neighbours
// that fall get their common mean.
func rising(points []point) []point {
	type run struct {
		mean  point
		count int
	}
	var runs []run
	for _, p := range points {
		runs = append(runs, run{p, 1})
		for n := len(runs); n > 1 && runs[n-2].mean.ms > runs[n-1].mean.ms; n = len(runs) {
			runs[n-2] = run{pooled(runs[n-2].mean, runs[n-1].mean), runs[n-2].count + runs[n-1].count}
			runs = runs[:n-1]
		}
	}
	out := slices.Clone(points)
	i := 0
	for _, r := range runs {
		for range r.count {
			out[i].ms = r.mean.ms
			i++
		}
	}
	return out
}

// knots returns axis values: those given, thinned if there are very many, and others between low and high at equal
// ratios. All are whole and different.
func knots(given []float64, low, high float64) []float64 {
	const fill, most = 48, 120
	slices.Sort(given)
	given = slices.Compact(given)
	var list []float64
	for i := range min(len(given), most) {
		list = append(list, given[i*len(given)/min(len(given), most)])
	}
	list = append(list, given[len(given)-1])
	for i := range fill + 1 {
		list = append(list, math.Round(low*math.Pow(high/low, float64(i)/fill)))
	}
	slices.Sort(list)
	return slices.Compact(list)
}
