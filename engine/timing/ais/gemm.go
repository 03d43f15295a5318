package ais

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// gemmTable holds the matrix products of one number format: a curve over m at each measured (n, k).
type gemmTable struct {
	quant Quant
	sites []gemmSite // by n, then k
}

type gemmSite struct {
	n, k   int
	order  int // of first appearance
	log    [2]float64
	points curve
}

// newGEMMTable makes the table of rows at (m, n, k). No product may be faster than the speed of light.
func newGEMMTable(sys *System, q Quant, rows []row) *gemmTable {
	t := &gemmTable{quant: q}
	order := siteOrder(rows)
	slices.SortFunc(rows, func(x, y row) int {
		return cmp.Or(cmp.Compare(x.at[1], y.at[1]), cmp.Compare(x.at[2], y.at[2]), cmp.Compare(x.at[0], y.at[0]))
	})
	for start := 0; start < len(rows); {
		end, n, k := start, rows[start].at[1], rows[start].at[2]
		for ; end < len(rows) && rows[end].at[1] == n && rows[end].at[2] == k; end++ {
			rows[end].ms = max(rows[end].ms, sys.gemmLight(q, float64(rows[end].at[0]), float64(n), float64(k)))
		}
		t.sites = append(t.sites, gemmSite{n: int(n), k: int(k), order: order[[2]int32{n, k}],
			log: [2]float64{math.Log2(float64(n)), math.Log2(float64(k))}, points: curveOf(rows[start:end], 0)})
		start = end
	}
	return t
}

// siteOrder ranks sites as a walk over m, then n, then k finds them, each in the order in which the data first names it.
func siteOrder(rows []row) map[[2]int32]int {
	walk := slices.Clone(rows)
	slices.SortFunc(walk, func(x, y row) int { return cmp.Compare(x.order, y.order) })
	seenM, seenN := map[int32]int{}, map[[2]int32]int{}
	rank := func(r row) (m, n int) { return seenM[r.at[0]], seenN[[2]int32{r.at[0], r.at[1]}] }
	for i, r := range walk {
		if _, ok := seenM[r.at[0]]; !ok {
			seenM[r.at[0]] = i
		}
		if key := [2]int32{r.at[0], r.at[1]}; !hasKey(seenN, key) {
			seenN[key] = i
		}
	}
	slices.SortStableFunc(walk, func(x, y row) int {
		xm, xn := rank(x)
		ym, yn := rank(y)
		return cmp.Or(cmp.Compare(xm, ym), cmp.Compare(xn, yn))
	})
	order := map[[2]int32]int{}
	for _, r := range walk {
		if key := [2]int32{r.at[1], r.at[2]}; !hasKey(order, key) {
			order[key] = len(order)
		}
	}
	return order
}

func hasKey[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
}

// at answers for an (m, k) x (k, n) product.
func (t *gemmTable) at(sys *System, m, n, k int) (latency, error) {
	i := sort.Search(len(t.sites), func(i int) bool {
		s := &t.sites[i]
		return s.n > n || s.n == n && s.k >= k
	})
	if i < len(t.sites) && t.sites[i].n == n && t.sites[i].k == k {
		return t.sites[i].at(sys, t.quant, m), nil
	}
	near := t.near(m, n, k)
	if len(near) == 0 {
		return latency{}, &MissingError{Table: "gemm_perf", Wanted: gemmKey{t.quant, n, k}.String(), Nearest: t.nearest(n, k).String()}
	}
	sum, weights := 0.0, 0.0
	for _, c := range near[:min(4, len(near))] {
		w := 1 / (c.distance*c.distance + 1e-12)
		u := sys.gemmLight(t.quant, float64(m), float64(c.site.n), float64(c.site.k)) / c.site.at(sys, t.quant, m).ms
		sum, weights = sum+w*u, weights+w
	}
	return latency{sys.gemmLight(t.quant, float64(m), float64(n), float64(k)) / (sum / weights), Estimated}, nil
}

func (s *gemmSite) at(sys *System, q Quant, m int) latency {
	return s.points.held(m, func(m int) float64 { return sys.gemmLight(q, float64(m), float64(s.n), float64(s.k)) })
}

// neighbour is a measured site that may stand for one that was not measured.
type neighbour struct {
	site     *gemmSite
	distance float64 // in log2 of n and k
}

const reach = 2 // the largest distance of a neighbour

// near returns the usable neighbours of a site, nearest first. Sites whose curve spans m are preferred.
func (t *gemmTable) near(m, n, k int) []neighbour {
	var candidates []*gemmSite
	for i := range t.sites {
		if t.sites[i].points.spans(m) {
			candidates = append(candidates, &t.sites[i])
		}
	}
	if candidates == nil {
		for i := range t.sites {
			candidates = append(candidates, &t.sites[i])
		}
	}
	at := [2]float64{math.Log2(float64(n)), math.Log2(float64(k))}
	var found []neighbour
	axes := []int{0, 1}
	for range 2 {
		for _, s := range candidates {
			within := 0.0
			for _, axis := range axes {
				within += (s.log[axis] - at[axis]) * (s.log[axis] - at[axis])
			}
			if within <= reach*reach {
				found = append(found, neighbour{s, math.Hypot(s.log[0]-at[0], s.log[1]-at[1])})
			}
		}
		if found != nil {
			break
		}
		if axes = otherAxis(candidates, at); axes == nil {
			return nil
		}
	}
	slices.SortFunc(found, func(x, y neighbour) int {
		return cmp.Or(cmp.Compare(x.distance, y.distance), cmp.Compare(x.site.order, y.site.order))
	})
	return found
}

// otherAxis returns the axis that still bounds the distance when the other one lies above everything measured, nil if it
// does not or if one lies below.
func otherAxis(candidates []*gemmSite, at [2]float64) []int {
	var above []int
	for axis := range at {
		low, high := math.Inf(1), math.Inf(-1)
		for _, s := range candidates {
			low, high = min(low, s.log[axis]), max(high, s.log[axis])
		}
		switch {
		case at[axis] < low:
			return nil
		case at[axis] > high:
			above = append(above, axis)
		}
	}
	if len(above) != 1 {
		return nil
	}
	return []int{1 - above[0]}
}

// nearest names the closest site, near or not.
func (t *gemmTable) nearest(n, k int) gemmKey {
	best := slices.MinFunc(t.sites, func(x, y gemmSite) int {
		distance := func(s gemmSite) float64 {
			return math.Hypot(s.log[0]-math.Log2(float64(n)), s.log[1]-math.Log2(float64(k)))
		}
		return cmp.Compare(distance(x), distance(y))
	})
	return gemmKey{t.quant, best.n, best.k}
}
