package calibration

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// trend holds the coefficients of some terms.
type trend []float64

// newTrend minimises the squares of relative errors over coefficients that are not negative: as long as one is, the most
// negative becomes 0 and the others are fitted again.
func newTrend(points []point, terms func(point) []float64) trend {
	count := len(terms(points[0]))
	out := make([]bool, count)
	for {
		c := solve(points, terms, out)
		worst := 0
		for j := range c {
			if c[j] < c[worst] {
				worst = j
			}
		}
		if !(c[worst] < 0) {
			return c
		}
		out[worst] = true
	}
}

// solve is newTrend without the bound, with some terms left out.
func solve(points []point, terms func(point) []float64, out []bool) trend {
	n := len(out)
	a, b := mat.NewDense(len(points), n, nil), mat.NewVecDense(len(points), nil)
	scale := make([]float64, n) // makes columns of like size, so that none is taken for a rounding error
	for i, p := range points {
		weight := math.Sqrt(p.weight) / p.ms
		for j, x := range terms(p) {
			if !out[j] {
				a.Set(i, j, x*weight)
				scale[j] = max(scale[j], x*weight)
			}
		}
		b.SetVec(i, p.ms*weight)
	}
	a.Apply(func(_, j int, x float64) float64 { return x / max(scale[j], math.SmallestNonzeroFloat64) }, a)
	c := make(trend, n)
	var svd mat.SVD
	if !svd.Factorize(a, mat.SVDThin) {
		return c
	}
	if rank := svd.Rank(1e-12); rank > 0 {
		svd.SolveVecTo(mat.NewVecDense(n, c), b, rank)
	}
	for j := range c {
		if c[j] /= max(scale[j], math.SmallestNonzeroFloat64); out[j] || math.IsNaN(c[j]) {
			c[j] = 0
		}
	}
	return c
}

func (t trend) of(terms []float64) float64 {
	sum := 0.0
	for j, x := range terms {
		sum += t[j] * x
	}
	return sum
}

func last[T any](s []T) T { return s[len(s)-1] }

// column returns a value of each point, sorted.
func column[P any](points []P, f func(P) float64) []float64 {
	var list []float64
	for _, p := range points {
		list = append(list, f(p))
	}
	slices.Sort(list)
	return list
}
