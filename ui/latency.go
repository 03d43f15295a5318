package ui

import (
	"math"
	"strings"

	"mockbench/ui/grid"
	"mockbench/ui/theme"
)

// drawLatency draws the Latency panel: four latencies in a square, each with percentiles and a histogram.
func (m *Model) drawLatency() {
	body := m.area(boxTable)
	m.drawGoodput(body.Rows(0, 1))
	body = body.Rows(1, body.H()-1)
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

// drawGoodput draws the share of requests that kept all limits, and says how to set limits where there are none.
func (m *Model) drawGoodput(a grid.Area) {
	w, good := &m.window, m.window.Goodput
	if w.Seconds == 0 {
		good = math.NaN()
	}
	x := a.Text(1, 0, "goodput ", theme.Bold)
	var limits []string
	for _, l := range []struct {
		name string
		of   *Figures
	}{{"TTFT", &w.TTFT}, {"mean ITL", &w.ITL}, {"E2E", &w.E2E}} {
		if l.of.SLO > 0 {
			limits = append(limits, l.name+" "+span(l.of.SLO))
		}
	}
	if len(limits) == 0 {
		a.Text(x, 0, "needs limits: SLO in Knobs, or --slo ttft_ms=300,itl_ms=25", theme.Dim)
		return
	}
	a.Right(x+6, 0, percent(good, 1), theme.Bold)
	text := "  of the requests in " + decimals(w.Seconds, 0) + " s kept " + strings.Join(limits, ", ")
	if then := m.baseline.window.Goodput; m.baseline.set && !math.IsNaN(then) {
		text = "  " + m.points(good, then) + " against " + percent(then, 1) + "; kept " + strings.Join(limits, ", ")
	}
	a.Text(x+6, 0, grid.Cut(text, a.W()-x-6), theme.Plain)
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
