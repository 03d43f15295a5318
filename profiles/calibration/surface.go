package calibration

import (
	"math"

	"mockbench/engine/timing"
)

// surface is the time of a decode step over the tokens in use and the mean context.
type surface struct {
	points []place
	trend  trend
}

// place is a point with what it takes to interpolate from it.
type place struct {
	point
	doublings [2]float64 // of tokens and of context, from 1
	rest      float64    // time by trend
}

func doublings(p point) [2]float64 { return [2]float64{math.Log2(1 + p.tokens), math.Log2(p.context)} }

func decodeTerms(p point) []float64 { return []float64{1, p.requests(), p.tokens} }

func newSurface(points []point) *surface {
	s := &surface{trend: newTrend(points, decodeTerms)}
	for _, p := range points {
		s.points = append(s.points, place{p, doublings(p), p.ms / s.trend.of(decodeTerms(p))})
	}
	return s
}

// at is the trend times the mean remainder of the points, each weighted with the inverse square of its distance. Distance
// counts doublings of tokens and of context.
func (s *surface) at(p point) float64 {
	sum, weights := 0.0, 0.0
	at := doublings(p)
	for i := range s.points {
		q := &s.points[i]
		x, y := at[0]-q.doublings[0], at[1]-q.doublings[1]
		distance := x*x + y*y
		if distance == 0 {
			return q.ms
		}
		sum += q.rest / distance
		weights += 1 / distance
	}
	return s.trend.of(decodeTerms(p)) * sum / weights
}

func (s *surface) tabulate(t *timing.Table) {
	tokens := column(s.points, func(p place) float64 { return p.tokens })
	contexts := column(s.points, func(p place) float64 { return p.context })
	t.ActiveTokens = append([]float64{0}, knots(tokens, 1, beyond*last(tokens))...)
	t.Context = knots(contexts, 1, beyond*last(contexts))
	t.DecodeShape = [2]int{len(t.ActiveTokens), len(t.Context)}
	for _, kv := range t.ActiveTokens {
		for _, ctx := range t.Context {
			t.DecodeMS = append(t.DecodeMS, s.at(point{tokens: kv, context: ctx}))
		}
	}
}
