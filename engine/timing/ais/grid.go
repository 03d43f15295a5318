package ais

import (
	"math"
	"sort"
)

// grid is latency over three axes. The points need not fill the box.
type grid struct {
	points []point // ascending
	logs   [][3]float64
	light  func(a, b, c float64) float64 // the speed of light in ms at these coordinates
	root   int                           // axis along which the square root of the latency is linear, or -1
}

func newGrid(points []point, root int, light func(a, b, c float64) float64) *grid {
	g := &grid{points: points, logs: make([][3]float64, len(points)), light: light, root: root}
	for i, p := range points {
		g.logs[i] = logarithms(p.at)
	}
	return g
}

func logarithms(at [3]int32) (l [3]float64) {
	for i, x := range at {
		l[i] = math.Log2(float64(x))
	}
	return l
}

func (g *grid) lightAt(at [3]int32) float64 {
	return g.light(float64(at[0]), float64(at[1]), float64(at[2]))
}

// at answers for any coordinates. The grid is not empty.
func (g *grid) at(a, b, c int) latency {
	q := [3]int32{int32(a), int32(b), int32(c)}
	if l, ok := g.within(g.points, q, 0); ok {
		return l
	}
	return latency{g.lightAt(q) / g.nearby(logarithms(q)), Estimated}
}

// within resolves the axes from this one on among points that agree in the axes before it.
func (g *grid) within(points []point, q [3]int32, axis int) (latency, bool) {
	x := q[axis]
	from := sort.Search(len(points), func(i int) bool { return points[i].at[axis] >= x })
	if from == len(points) {
		return latency{}, false
	}
	if points[from].at[axis] == x {
		same := points[from:g.endOf(points, from, axis)]
		if axis == 2 {
			return latency{same[0].ms, Measured}, true
		}
		return g.within(same, q, axis+1)
	}
	if from == 0 {
		return latency{}, false
	}
	lowKey, highKey := points[from-1].at[axis], points[from].at[axis]
	start := sort.Search(from, func(i int) bool { return points[i].at[axis] >= lowKey })
	low, lowOK := g.branch(points[start:from], q, axis)
	high, highOK := g.branch(points[from:g.endOf(points, from, axis)], q, axis)
	switch {
	case lowOK && highOK:
		t := fraction(lowKey, highKey, int(x))
		from := max(Interpolated, low.from, high.from)
		if axis == g.root {
			root := lerp(math.Sqrt(low.ms), math.Sqrt(high.ms), t)
			return latency{root * root, from}, true
		}
		return latency{lerp(low.ms, high.ms, t), from}, true
	case lowOK:
		return g.moved(low, q, axis, lowKey), true
	case highOK:
		return g.moved(high, q, axis, highKey), true
	}
	return latency{}, false
}

// branch resolves the axes after this one on one side of a bracket.
func (g *grid) branch(points []point, q [3]int32, axis int) (latency, bool) {
	if axis == 2 {
		return latency{points[0].ms, Measured}, true
	}
	return g.within(points, q, axis+1)
}

// endOf returns the end of the run of points that agree with the one at from in this axis.
func (g *grid) endOf(points []point, from, axis int) int {
	x := points[from].at[axis]
	return from + sort.Search(len(points)-from, func(i int) bool { return points[from+i].at[axis] > x })
}

// moved carries the value of the only side that has one over to the query, at the same utilisation.
func (g *grid) moved(l latency, q [3]int32, axis int, key int32) latency {
	there := q
	there[axis] = key
	return latency{l.ms * g.lightAt(q) / g.lightAt(there), Estimated}
}

// nearby is the weighted mean utilisation of the four points next to a query in logarithmic distance. The fifth
// distance bounds their influence.
func (g *grid) nearby(q [3]float64) float64 {
	const wanted = 5
	var nearest [wanted]struct {
		distance float64
		index    int
	}
	n := 0
	for i, l := range g.logs {
		d := 0.0
		for axis := range l {
			delta := l[axis] - q[axis]
			d += delta * delta
		}
		if n == wanted && d >= nearest[wanted-1].distance {
			continue
		}
		if n < wanted {
			n++
		}
		at := n - 1
		for ; at > 0 && nearest[at-1].distance > d; at-- {
			nearest[at] = nearest[at-1]
		}
		nearest[at].distance, nearest[at].index = d, i
	}
	for i := range nearest[:n] {
		nearest[i].distance = math.Sqrt(nearest[i].distance)
	}
	utilisation := func(i int) float64 {
		p := g.points[nearest[i].index]
		return g.lightAt(p.at) / p.ms
	}
	const tiny = 1e-12
	sum, weights, plain := 0.0, 0.0, 0.0
	used := min(n, wanted-1)
	for i := range used {
		d := nearest[i].distance
		w := 1 / (d*d + tiny)
		if n == wanted {
			r := nearest[wanted-1].distance
			w = (r - d) / (r*d + tiny)
			w *= w
		}
		u := utilisation(i)
		sum, weights, plain = sum+w*u, weights+w, plain+u
	}
	if weights == 0 {
		return plain / float64(used)
	}
	return sum / weights
}
