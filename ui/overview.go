package ui

import (
	"math"
	"slices"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// order is how the workers are listed.
type order int

const (
	orderName order = iota
	orderUsed
	orderWaiting
	orderPreemptions
	orders
)

var orderNames = [orders]string{"name", "KV used", "waiting", "preemptions"}

// orderName returns the name of the order of the workers.
func (m *Model) orderName() string {
	if m.overview.order == orderPreemptions {
		return m.lost().noun + "s"
	}
	return orderNames[m.overview.order]
}

// overviewPanel is the first panel: all workers, and the selected one in short.
type overviewPanel struct {
	order order
	first int // first row shown
}

func (p *overviewPanel) key(m *Model, a keys.Action) tea.Cmd {
	switch a {
	case keys.Up:
		return m.selectWorker(m.place() - 1)
	case keys.Down:
		return m.selectWorker(m.place() + 1)
	case keys.PageUp:
		return m.selectWorker(m.place() - 8)
	case keys.PageDown:
		return m.selectWorker(m.place() + 8)
	case keys.Home:
		return m.selectWorker(0)
	case keys.End:
		return m.selectWorker(len(m.rows) - 1)
	case keys.Order:
		p.order = (p.order + 1) % orders
		m.sortRows()
		m.say("workers by " + m.orderName())
	}
	return nil
}

// sortRows brings the workers into the chosen order; equal ones stay in the order of the fleet.
func (m *Model) sortRows() {
	m.rows = append(m.rows[:0], m.workers...)
	key := func(w *worker) float64 {
		switch m.overview.order {
		case orderUsed:
			return w.shown.used
		case orderWaiting:
			return float64(w.shown.waiting)
		case orderPreemptions:
			return float64(w.shown.preemptions)
		}
		return 0
	}
	slices.SortStableFunc(m.rows, func(a, b *worker) int {
		switch x, y := key(a), key(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
}

func (p *overviewPanel) draw(m *Model) {
	p.drawWorkers(m)
	p.drawLatency(m)
	m.blocks.drawSmall(m)
	if m.layout.roomy {
		p.drawBatches(m)
		p.drawSparks(m, m.boxed(boxSparks, "last "+m.chartSpan(m.layout.rect[boxSparks].W-20)))
		box := m.area(boxSparks)
		m.drawMarks(box, box.W()-trendText+10)
		return
	}
	p.drawPass(m, m.boxed(boxPass, m.passTitle()))
	p.drawSparks(m, m.area(boxSparks))
}

// columns of the table of workers; the last one is the trend of KV used.
var workerColumns = []widget.Column{
	{Title: "  id", Width: 8}, {Title: "KV used", Width: 12}, {Width: 4, Right: true}, {Title: "run", Width: 4, Right: true},
	{Title: "wait", Width: 4, Right: true}, {Title: "pre/s", Width: 5, Right: true}, {Title: "hit%", Width: 4, Right: true},
	{Title: "tok/s", Width: 7, Right: true}, {Width: 6, Weight: 1},
}

func (p *overviewPanel) drawWorkers(m *Model) {
	title := "workers"
	if p.order != orderName {
		title += " by " + m.orderName()
	}
	box := m.area(boxWorkers)
	visible := max(box.H()-3, 0)
	p.first = widget.Window(p.first, max(m.place(), 0), visible, len(m.rows))
	if len(m.rows) > visible {
		title += ", " + strconv.Itoa(p.first+1) + "-" + strconv.Itoa(min(p.first+visible, len(m.rows))) + " of " + number(len(m.rows))
	}
	a := m.frameIn(box, title).Inset(1, 0)
	t := widget.Table{Columns: widget.Fit(workerColumns, a.W()), Heading: theme.Heading}
	for i := range t.Columns {
		if t.Columns[i].Title == "pre/s" {
			t.Columns[i].Title = m.lost().column
		}
	}
	if n := len(t.Columns); m.baseline.set && n == len(workerColumns) {
		t.Columns[n-1].Title = "vs baseline"
	}
	t.Head(a)
	if len(m.rows) == 0 {
		a.Text(0, 1, "no workers", theme.Dim)
	}
	for y := range visible {
		i := p.first + y
		if i >= len(m.rows) {
			return
		}
		p.drawWorker(m, a.Rows(y+1, 1), t, m.rows[i])
	}
}

func (p *overviewPanel) drawWorker(m *Model, a grid.Area, t widget.Table, w *worker) {
	style, mark := theme.Plain, "  "
	if w == m.sel {
		style, mark = theme.Selected, "> "
	}
	if len(w.stuck()) > 0 {
		mark = mark[:1] + "!"
	}
	s := &w.shown
	t.Row(a, 0, style, mark+w.name, "", percent(s.used, 0), strconv.Itoa(s.running), strconv.Itoa(s.waiting),
		decimals(s.preempts, 1), decimals(s.hit*100, 0), whole(s.tokens))
	g := &m.theme.Glyphs
	x := t.Columns[0].Width + 1
	widget.Bar(a.Sub(grid.Rect{X: x, Y: 0, W: t.Columns[1].Width, H: 1}), s.used, g.Full, g.Rest, theme.InkActive, theme.InkFree)
	if n := len(t.Columns); n == len(workerColumns) {
		width := t.Columns[n-1].Width
		if m.baseline.set {
			a.Text(a.W()-width, 0, grid.Cut(m.rowDifference(w), width), theme.Bold)
			return
		}
		trend := m.series(width, func(n int) float64 {
			if c := w.at(n); c != nil {
				return c.used
			}
			return math.NaN()
		})
		widget.Spark(a.Sub(grid.Rect{X: a.W() - width, Y: 0, W: width, H: 1}), trend, 1, g.Levels, theme.InkActive)
	}
}

// series returns a value for each of the newest n columns of the charts, oldest first.
func (m *Model) series(n int, value func(column int) float64) []float64 {
	n = min(max(n, 0), historyColumns, m.shownCols)
	out := make([]float64, n)
	for i := range out {
		out[i] = value(m.shownCols - n + i)
	}
	return out
}

// chartSpan returns how much time a chart of that many columns shows.
func (m *Model) chartSpan(width int) string {
	return strconv.Itoa(min(width, historyColumns)/columnsPerSecond) + " s"
}

// sumColumns adds up one figure over the workers that were there; NaN if none was.
func (m *Model) sumColumns(n int, value func(c *column) float64) float64 {
	sum, any := 0.0, false
	for _, w := range m.workers {
		if c := w.at(n); c != nil {
			sum += value(c)
			any = true
		}
	}
	if !any {
		return math.NaN()
	}
	return sum
}

// drawSparks draws the lines at the bottom: all workers together over one time axis. Without room traffic to host
// tiers takes the place of the tokens, which the table has too.
func (p *overviewPanel) drawSparks(m *Model, a grid.Area) {
	workers := float64(max(len(m.workers), 1))
	over := func(value func(c *column) float64) func(int) float64 {
		return func(n int) float64 { return m.sumColumns(n, value) }
	}
	perSecond := func(f func(c *column) int) func(int) float64 {
		return over(func(c *column) float64 { return float64(f(c)) * columnsPerSecond })
	}
	lines := []trend{
		{"KV used", over(func(c *column) float64 { return c.used / workers }), 1, theme.InkActive, func(x float64) string { return percent(x, 0) }},
		{m.lost().verb + "/s", perSecond(func(c *column) int { return c.preempted }), 0, theme.InkEvicted, func(x float64) string { return decimals(x, 0) }},
		{"tokens/s", perSecond(func(c *column) int { return c.tokens }), 0, theme.InkCached, whole},
	}
	if m.hasHost() {
		if a.H() == len(lines) {
			lines = lines[:len(lines)-1]
		}
		lines = append(lines, trend{"G2 GB/s", over((*column).traffic), 0, theme.InkHost, rateText})
	}
	m.drawTrends(a, lines)
}

// trend is one figure over time.
type trend struct {
	name   string
	value  func(column int) float64 // NaN is a gap
	top    float64                  // 0: the largest value shown
	style  grid.Style
	format func(float64) string
}

// trendText is the columns that the name and the latest value of a trend take.
const trendText = 21

// drawTrends draws one line a trend, the name in front and the latest value behind.
func (m *Model) drawTrends(a grid.Area, lines []trend) {
	for y, l := range lines {
		const name = 11
		width := a.W() - trendText
		values := m.series(width, l.value)
		top, last := l.top, math.NaN()
		for _, v := range values {
			if l.top == 0 && v > top {
				top = v
			}
			last = v
		}
		a.Text(1, y, l.name, theme.Plain)
		widget.Spark(a.Sub(grid.Rect{X: name + 1, Y: y, W: width, H: 1}), values, top, m.theme.Glyphs.Levels, l.style)
		a.Right(a.W()-1, y, l.format(last), theme.Bold)
	}
}

// drawLatency draws the short form of the latencies, with a histogram of TTFT where there is room.
func (p *overviewPanel) drawLatency(m *Model) {
	title := "latency"
	if m.o.Sides != nil {
		title += " of A"
	}
	switch {
	case m.baseline.set:
		title += " against " + clockText(m.baseline.at)
	case m.window.Seconds > 0:
		title += ", last " + decimals(m.window.Seconds, 0) + " s"
	}
	good := ", goodput " + percent(m.window.Goodput, 1)
	if !math.IsNaN(m.window.Goodput) && m.window.Seconds > 0 && len(title+good) <= m.layout.rect[boxLatency].W-5 {
		title += good
	}
	a := m.boxed(boxLatency, title).Inset(1, 0)
	if m.o.Window == nil {
		a.Text(0, 0, "not measured in this run", theme.Dim)
		return
	}
	lines := []struct {
		name string
		of   func(*Window) *Figures
	}{{"TTFT", ttft}, {"ITL", itl}, {"E2E", e2e}}
	for y, l := range lines {
		if then := m.against(l.of); then != nil {
			m.drawDifference(a.Rows(y, 1), l.name, l.of(&m.window), then)
		} else {
			drawFigures(a.Rows(y, 1), l.name, l.of(&m.window))
		}
	}
	if a.H() >= 7 {
		m.drawHistogram(a.Sub(grid.Rect{X: 0, Y: 3, W: a.W(), H: a.H() - 3}), &m.window.TTFT)
	}
}

// The latencies of a window.
func ttft(w *Window) *Figures  { return &w.TTFT }
func itl(w *Window) *Figures   { return &w.ITL }
func e2e(w *Window) *Figures   { return &w.E2E }
func queue(w *Window) *Figures { return &w.Queue }

// drawFigures draws one latency in a line.
func drawFigures(a grid.Area, name string, f *Figures) {
	a.Text(0, 0, name, theme.Bold)
	p50, p99 := math.NaN(), math.NaN()
	if f.Count > 0 {
		p50, p99 = f.P50, f.P99
	}
	a.Text(5, 0, "p50", theme.Dim)
	a.Right(15, 0, span(p50), theme.Plain)
	a.Text(16, 0, "p99", theme.Dim)
	a.Right(26, 0, span(p99), theme.Plain)
	if f.SLO > 0 {
		within := math.NaN()
		if f.Count > 0 {
			within = f.Within
		}
		x := a.Text(27, 0, "SLO", theme.Dim)
		if a.W() >= 44 {
			x += 6
			a.Right(x, 0, span(f.SLO), theme.Plain)
		}
		text := percent(within, 1)
		if text == "100.0%" {
			text = "100%"
		}
		a.Right(x+6, 0, text, theme.Bold)
	}
}
