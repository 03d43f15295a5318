package ui

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"mockbench/engine/router"
)

// The few that are picked are the first ones of all in order.
func TestCheapest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		d := &router.Decision{}
		for i := range 1 + r.IntN(20) {
			d.Candidates = append(d.Candidates, router.Candidate{Worker: i, Cost: float64(r.IntN(8))})
		}
		d.Choice = r.IntN(len(d.Candidates))
		want := []*router.Candidate{}
		for i := range d.Candidates {
			want = append(want, &d.Candidates[i])
		}
		winner := want[d.Choice]
		slices.SortStableFunc(want, func(x, y *router.Candidate) int {
			return cmp.Or(cmp.Compare(b2i(y == winner), b2i(x == winner)), cmp.Compare(x.Cost, y.Cost))
		})
		for n := range 23 {
			if got := cheapest(d, n); !slices.Equal(got, want[:min(n, len(want))]) {
				t.Fatalf("%d of %+v: got %v, want %v", n, d, got, want)
			}
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
