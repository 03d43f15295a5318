// Package widget draws the parts panels are made of into areas of a grid: frames, bars, sparks, histograms, stacked
// columns, tables, and maps of many small things. Its functions are pure: what they draw depends on their arguments.
package widget

import (
	"mockbench/ui/grid"
)

// Lines are the characters of a frame.
type Lines struct{ H, V, NW, NE, SW, SE rune }

// Box draws a frame with a title in its upper line and returns the area inside.
func Box(a grid.Area, l Lines, frame grid.Style, title string, heading grid.Style) grid.Area {
	w, h := a.W(), a.H()
	for x := 1; x < w-1; x++ {
		a.Set(x, 0, l.H, frame)
		a.Set(x, h-1, l.H, frame)
	}
	for y := 1; y < h-1; y++ {
		a.Set(0, y, l.V, frame)
		a.Set(w-1, y, l.V, frame)
	}
	a.Set(0, 0, l.NW, frame)
	a.Set(w-1, 0, l.NE, frame)
	a.Set(0, h-1, l.SW, frame)
	a.Set(w-1, h-1, l.SE, frame)
	if title != "" {
		end := a.Text(3, 0, grid.Cut(title, w-6), heading)
		a.Set(2, 0, ' ', frame)
		a.Set(end, 0, ' ', frame)
	}
	return a.Inset(1, 1)
}

// Bar draws a horizontal bar over the first row of a: share of it in full, the rest in rest. A share above 0 shows at
// least one cell, one below 1 leaves at least one.
func Bar(a grid.Area, share float64, full, rest rune, on, off grid.Style) {
	n := Portion(share, a.W())
	for x := range a.W() {
		if x < n {
			a.Set(x, 0, full, on)
		} else {
			a.Set(x, 0, rest, off)
		}
	}
}

// Portion returns the cells of n that stand for a share between 0 and 1, so that only exact ends look like ends.
func Portion(share float64, n int) int {
	switch {
	case !(share > 0) || n == 0:
		return 0
	case share >= 1:
		return n
	}
	cells := int(share*float64(n) + 0.5)
	if n < 3 {
		return cells
	}
	return min(max(cells, 1), n-1)
}

// Level returns the index of a glyph for value on a scale up to top, from 0 (nothing) to n-1. A value above 0 is never
// nothing.
func Level(value, top float64, n int) int {
	if !(value > 0) || !(top > 0) {
		return 0
	}
	return min(max(int(value/top*float64(n-1)+0.5), 1), n-1)
}

// Spark draws values, oldest first, over the first row of a, the newest in the last column. A NaN is a gap. top is the
// value of the highest glyph.
func Spark(a grid.Area, values []float64, top float64, levels []rune, s grid.Style) {
	w := a.W()
	if len(values) > w {
		values = values[len(values)-w:]
	}
	first := w - len(values)
	for i, v := range values {
		if v != v {
			continue
		}
		n := Level(v, top, len(levels))
		if n == 0 {
			n = 1 // a flat line tells zero from a gap
		}
		a.Set(first+i, 0, levels[n], s)
	}
}

// Histogram draws columns, as Columns makes them of bins, over all of a; those from column split on in a second style.
func Histogram(a grid.Area, columns []float64, split int, levels []rune, s, beyond grid.Style) {
	top := 0.0
	for _, v := range columns {
		top = max(top, v)
	}
	steps := len(levels) - 1
	for x, v := range columns {
		style := s
		if x >= split {
			style = beyond
		}
		n := Level(v, top, steps*a.H()+1)
		for y := a.H() - 1; y >= 0 && n > 0; y-- {
			a.Set(x, y, levels[min(n, steps)], style)
			n -= steps
		}
	}
}

// Columns spreads bins over at most n columns: neighbours are summed if there are more, repeated if twice as many fit.
func Columns(bins []float64, n int) []float64 {
	if len(bins) == 0 || n <= 0 {
		return nil
	}
	if len(bins) > n {
		out := make([]float64, n)
		for i, v := range bins {
			out[i*n/len(bins)] += v
		}
		return out
	}
	repeat := n / len(bins)
	out := make([]float64, 0, repeat*len(bins))
	for _, v := range bins {
		for range repeat {
			out = append(out, v)
		}
	}
	return out
}

// Part is a share of a stacked column.
type Part struct {
	Value  float64
	Letter rune
	Style  grid.Style
}

// Stack draws one column of a from the bottom up. Parts are drawn in order on a scale up to top; each part above 0
// gets at least one row, taken from the largest if they do not all fit.
func Stack(a grid.Area, x int, parts []Part, top float64) {
	h := a.H()
	if h <= 0 || !(top > 0) {
		return
	}
	var rows [8]int
	sum := 0.0
	used := 0
	for i, p := range parts {
		sum += p.Value
		rows[i] = Level(p.Value, top, h+1)
		used += rows[i]
	}
	limit := max(Level(sum, top, h+1), present(parts))
	for used > min(limit, h) {
		largest := 0
		for i := range parts {
			if rows[i] > rows[largest] {
				largest = i
			}
		}
		rows[largest]--
		used--
	}
	y := h - 1
	for i, p := range parts {
		for range rows[i] {
			a.Set(x, y, p.Letter, p.Style)
			y--
		}
	}
}

func present(parts []Part) int {
	n := 0
	for _, p := range parts {
		if p.Value > 0 {
			n++
		}
	}
	return n
}
