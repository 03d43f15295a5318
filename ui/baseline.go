package ui

import (
	"math"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine"
	"mockbench/ui/grid"
	"mockbench/ui/theme"
)

// baseline is the figures of one moment, which later ones are compared with.
type baseline struct {
	set    bool
	at     engine.Time
	window Window
	rows   map[*worker]row
}

// baselineMsg brings the latencies for a baseline; nil if none are measured.
type baselineMsg struct{ window *Window }

// freeze makes the figures of now the baseline, or drops the one there is.
func (m *Model) freeze() tea.Cmd {
	if m.baseline.set {
		m.baseline = baseline{}
		m.say("no baseline")
		return nil
	}
	window := m.o.Window
	return beside("screen baseline", func() tea.Msg {
		if window == nil {
			return baselineMsg{}
		}
		w := window()
		return baselineMsg{&w}
	})
}

func (m *Model) frozen(msg baselineMsg) {
	b := baseline{set: true, at: m.clock, rows: map[*worker]row{}}
	if msg.window != nil {
		b.window = *msg.window
	}
	for _, w := range m.workers {
		b.rows[w] = w.shown
	}
	m.baseline = b
	m.markAs(letterBaseline, "baseline")
	m.say("baseline of " + clockText(m.clock) + "; b drops it")
}

// against returns the baseline of a figure of the window, nil without one.
func (m *Model) against(of func(*Window) *Figures) *Figures {
	if !m.baseline.set || of(&m.baseline.window).Count == 0 {
		return nil
	}
	return of(&m.baseline.window)
}

// difference returns how a figure has moved against its baseline: an arrow and a percentage.
func (m *Model) difference(now, then float64) string {
	g := &m.theme.Glyphs
	switch percent := math.Round((now - then) / then * 100); {
	case math.IsNaN(percent) || then == 0 && now == then:
		return ""
	case percent == 0:
		return "="
	case percent > 999:
		return string(g.Up) + ">999"
	case percent > 0:
		return string(g.Up) + strconv.Itoa(int(percent)) + "%"
	default:
		return string(g.Down) + strconv.Itoa(int(-percent)) + "%"
	}
}

// points returns how a share has moved against its baseline, in percentage points.
func (m *Model) points(now, then float64) string {
	g := &m.theme.Glyphs
	switch d := math.Round((now - then) * 100); {
	case math.IsNaN(d):
		return ""
	case d == 0:
		return "="
	case d > 0:
		return string(g.Up) + strconv.Itoa(int(d))
	default:
		return string(g.Down) + strconv.Itoa(int(-d))
	}
}

// drawDifference draws one latency in a line, with what it differs by from its baseline.
func (m *Model) drawDifference(a grid.Area, name string, f, then *Figures) {
	a.Text(0, 0, name, theme.Bold)
	p50, p99 := math.NaN(), math.NaN()
	if f.Count > 0 {
		p50, p99 = f.P50, f.P99
	}
	a.Text(5, 0, "p50", theme.Dim)
	a.Right(14, 0, span(p50), theme.Plain)
	a.Text(15, 0, m.difference(p50, then.P50), theme.Bold)
	a.Text(21, 0, "p99", theme.Dim)
	a.Right(30, 0, span(p99), theme.Plain)
	x := a.Text(31, 0, m.difference(p99, then.P99), theme.Bold)
	if f.SLO > 0 && f.Count > 0 && a.W() >= 52 {
		x = a.Text(max(x+1, 37), 0, "SLO ", theme.Dim)
		x = a.Text(x, 0, percent(f.Within, 1)+" ", theme.Bold)
		if then.SLO == f.SLO {
			a.Text(x, 0, m.points(f.Within, then.Within), theme.Bold)
		}
	}
}

// rowDifference tells in short how the figures of a worker differ from their baseline.
func (m *Model) rowDifference(w *worker) string {
	then, ok := m.baseline.rows[w]
	if !ok {
		return ""
	}
	text := ""
	for _, d := range []struct{ name, by string }{
		{"tok", m.difference(w.shown.tokens, then.tokens)}, {"hit", m.points(w.shown.hit, then.hit)},
		{m.lost().column[:3], m.difference(w.shown.preempts, then.preempts)},
	} {
		if d.by != "" && d.by != "=" {
			text += d.name + d.by + " "
		}
	}
	if text == "" {
		return "="
	}
	return text
}

// drawMarks puts the moments of a time axis on the frame line below a chart whose last column is at x = right.
func (m *Model) drawMarks(a grid.Area, right int) {
	for _, k := range m.marks {
		if x := right - (m.shownCols - 1 - k.column); x >= right-historyColumns && x > 0 && x <= right {
			style := theme.Bold
			if k.letter == letterBaseline {
				style = theme.Selected
			}
			a.Set(x, a.H()-1, k.letter, style)
		}
	}
}

// lastMark returns what the newest moment was, empty if it lies before the charts begin.
func (m *Model) lastMark(width int) string {
	if n := len(m.marks); n > 0 && m.shownCols-m.marks[n-1].column < width {
		return string(m.marks[n-1].letter) + " " + m.marks[n-1].text
	}
	return ""
}
