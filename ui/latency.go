package ui

import (
	"math"

	"mockbench/ui/grid"
	"mockbench/ui/theme"
)

// drawLatency draws the Latency panel: four latencies in a square, each with percentiles and a histogram.
func (m *Model) drawLatency() {
	body := m.area(boxTable)
	w, h := body.W()/2, body.H()/2
	for i, l := range []struct {
		title string
		of    func(*Window) *Figures
	}{
		{"TTFT, arrival to first token", ttft}, {"ITL, between tokens", itl},
		{"E2E, arrival to last token", e2e}, {"queue, arrival to admission", queue},
	} {
		r := grid.Rect{X: i % 2 * w, Y: i / 2 * h, W: w, H: h}
		if i%2 == 1 {
			r.W = body.W() - w
		}
		if i/2 == 1 {
			r.H = body.H() - h
		}
		a := m.frameIn(body.Sub(r), l.title).Inset(1, 0)
		f, used := l.of(&m.window), 2
		if then := m.against(l.of); then != nil {
			m.drawDifference(a.Rows(0, 1), "now", f, then)
			m.drawSecond(a.Rows(1, 1), f, 14)
			a.Text(15, 1, m.difference(f.P90, then.P90), theme.Bold)
			drawBase(a.Rows(2, 1), then)
			used = 3
		} else {
			drawFigures(a.Rows(0, 1), "", f)
			m.drawSecond(a.Rows(1, 1), f, 15)
		}
		m.drawHistogram(a.Sub(grid.Rect{X: 0, Y: used, W: a.W(), H: a.H() - used}), f)
	}
}

// drawSecond draws what the first line of a latency has no room for; the percentile ends at a column.
func (m *Model) drawSecond(a grid.Area, f *Figures, end int) {
	p90 := math.NaN()
	if f.Count > 0 {
		p90 = f.P90
	}
	a.Text(5, 0, "p90", theme.Dim)
	a.Right(end, 0, span(p90), theme.Plain)
	a.Text(16+(15-end)*6, 0, plural(f.Count, "sample"), theme.Dim)
}

// drawBase draws the percentiles of a baseline, below those they are compared with.
func drawBase(a grid.Area, f *Figures) {
	a.Text(0, 0, "base p50", theme.Dim)
	a.Right(14, 0, span(f.P50), theme.Dim)
	a.Text(21, 0, "p99", theme.Dim)
	a.Right(30, 0, span(f.P99), theme.Dim)
}
