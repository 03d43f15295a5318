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
		f     *Figures
	}{
		{"TTFT, arrival to first token", &m.window.TTFT}, {"ITL, between tokens", &m.window.ITL},
		{"E2E, arrival to last token", &m.window.E2E}, {"queue, arrival to admission", &m.window.Queue},
	} {
		r := grid.Rect{X: i % 2 * w, Y: i / 2 * h, W: w, H: h}
		if i%2 == 1 {
			r.W = body.W() - w
		}
		if i/2 == 1 {
			r.H = body.H() - h
		}
		a := m.frameIn(body.Sub(r), l.title).Inset(1, 0)
		drawFigures(a.Rows(0, 1), "", l.f)
		p90 := math.NaN()
		if l.f.Count > 0 {
			p90 = l.f.P90
		}
		x := a.Text(5, 1, "p90", theme.Dim)
		a.Right(x+7, 1, span(p90), theme.Plain)
		a.Text(16, 1, plural(l.f.Count, "sample"), theme.Dim)
		m.drawHistogram(a.Sub(grid.Rect{X: 0, Y: 2, W: a.W(), H: a.H() - 2}), l.f)
	}
}
