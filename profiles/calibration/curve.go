package calibration

import (
	"sort"

	"mockbench/engine/timing"
)

// beyond is how far a table goes past what was measured, as a multiple.
const beyond = 4

// curve is the prefill time over the tokens of a pass.
type curve struct {
	points []point // with rising times
	trend  trend
}

func prefillTerms(p point) []float64 { return []float64{1, p.tokens, p.tokens * p.tokens} }

func newCurve(points []point) *curve {
	return &curve{points: rising(points), trend: newTrend(points, prefillTerms)}
}

// at returns the time at the tokens of a point.
func (c *curve) at(p point) float64 {
	n := len(c.points)
	i := sort.Search(n, func(i int) bool { return c.points[i].tokens >= p.tokens })
	switch {
	case i == n:
		return c.shifted(p, c.points[n-1])
	case c.points[i].tokens == p.tokens:
		return c.points[i].ms
	case i == 0:
		return max(0, c.shifted(p, c.points[0]))
	}
	a, b := c.points[i-1], c.points[i]
	return a.ms + (b.ms-a.ms)*(p.tokens-a.tokens)/(b.tokens-a.tokens)
}

// shifted is the trend, moved so that it goes through a point.
func (c *curve) shifted(p, through point) float64 {
	return through.ms + c.trend.of(prefillTerms(p)) - c.trend.of(prefillTerms(through))
}

func (c *curve) tabulate(t *timing.Table) {
	tokens := column(c.points, func(p point) float64 { return p.tokens })
	for _, x := range knots(tokens, 1, beyond*last(tokens)) {
		t.PrefillTokens = append(t.PrefillTokens, x)
		t.PrefillMS = append(t.PrefillMS, c.at(point{tokens: x}))
	}
}
