package ais

import (
	"slices"
	"sort"
)

// curve is latency over one axis.
type curve struct {
	x  []int32 // ascending
	ms []float64
}

func curveOf(rows []row, axis int) curve {
	c := curve{make([]int32, len(rows)), make([]float64, len(rows))}
	for i, r := range rows {
		c.x[i], c.ms[i] = r.at[axis], r.ms
	}
	return c
}

func (c curve) first() int { return int(c.x[0]) }
func (c curve) last() int  { return int(c.x[len(c.x)-1]) }

// spans reports whether x lies between the ends of the curve.
func (c curve) spans(x int) bool { return c.first() <= x && x <= c.last() }

// inside interpolates linearly. x lies on the curve.
func (c curve) inside(x int) latency {
	i := sort.Search(len(c.x), func(i int) bool { return int(c.x[i]) >= x })
	if int(c.x[i]) == x {
		return latency{c.ms[i], Measured}
	}
	return latency{lerp(c.ms[i-1], c.ms[i], fraction(c.x[i-1], c.x[i], x)), Interpolated}
}

// scaled interpolates, and beyond an end keeps the ratio of that end to the speed of light.
func (c curve) scaled(x int, light func(int) float64) latency {
	if c.spans(x) {
		return c.inside(x)
	}
	end := len(c.x) - 1
	if x < c.first() {
		end = 0
	}
	return latency{light(x) * c.ms[end] / light(int(c.x[end])), Estimated}
}

// held interpolates, and beyond an end keeps the median utilisation of the three points next to it.
func (c curve) held(x int, light func(int) float64) latency {
	if c.spans(x) {
		return c.inside(x)
	}
	points := min(3, len(c.x))
	start := 0
	if x > c.last() {
		start = len(c.x) - points
	}
	utilisation := make([]float64, points)
	for i := range utilisation {
		utilisation[i] = light(int(c.x[start+i])) / c.ms[start+i]
	}
	return latency{light(x) / median(utilisation), Estimated}
}

func median(values []float64) float64 {
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

func fraction(low, high int32, x int) float64 { return float64(x-int(low)) / float64(high-low) }

func lerp(low, high, t float64) float64 { return low + (high-low)*t }
