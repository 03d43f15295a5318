package ui

import (
	"fmt"
	"math"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine/router"
	"mockbench/ui/grid"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// sidesRows is the height of the comparison of two fleets with its frame.
const sidesRows = 10

// hit returns the share of prompt tokens that were found cached.
func (s *Side) hit() float64 {
	var reused, prompt uint64
	for _, c := range s.Counters {
		reused, prompt = reused+c.Reused, prompt+c.Prompt
	}
	return ratio(reused, prompt)
}

// balance returns the prompt tokens of the busiest worker over the mean; 1 is even.
func (s *Side) balance() float64 {
	var sum, most uint64
	for _, c := range s.Counters {
		sum, most = sum+c.Prompt, max(most, c.Prompt)
	}
	if sum == 0 {
		return math.NaN()
	}
	return float64(most) * float64(len(s.Counters)) / float64(sum)
}

// drawSides draws two fleets under the same traffic: what each worker gets, the figures of both, and the difference.
func (m *Model) drawSides() {
	shares := m.area(boxWorkers)
	half := shares.W() / 2
	for i := range m.sides {
		r := grid.Rect{X: i * half, Y: 0, W: half, H: shares.H()}
		if i == 1 {
			r.W = shares.W() - half
		}
		s := &m.sides[i]
		title := fmt.Sprintf("%c: %s, share and hit", 'A'+i, s.Policy)
		m.drawSideShares(m.frameIn(shares.Sub(r), title).Inset(1, 0), i)
	}
	a := m.boxed(boxLatency, "the same traffic on both fleets, latencies of the last "+decimals(m.sides[0].Window.Seconds, 0)+" s").Inset(1, 0)
	t := widget.Table{Heading: theme.Heading, Columns: widget.Fit([]widget.Column{{Title: "", Width: 14},
		{Title: "A: " + string(m.sides[0].Policy), Width: 15, Right: true}, {Title: "B: " + string(m.sides[1].Policy), Width: 15, Right: true},
		{Title: "B against A", Width: 13, Right: true}, {Title: "", Width: 4, Weight: 1}}, a.W())}
	t.Head(a)
	for y, l := range m.sideLines() {
		t.Row(a, y+1, theme.Plain, l[0], l[1], l[2], l[3])
	}
}

// sideLines returns the rows of the comparison: name, both figures, difference.
func (m *Model) sideLines() [][4]string {
	x, y := &m.sides[0], &m.sides[1]
	latency := func(name string, of func(*Window) *Figures, p func(*Figures) float64) [4]string {
		value := func(s *Side) float64 {
			if f := of(&s.Window); f.Count > 0 {
				return p(f)
			}
			return math.NaN()
		}
		a, b := value(x), value(y)
		return [4]string{name, span(a), span(b), m.difference(b, a)}
	}
	p50, p99 := func(f *Figures) float64 { return f.P50 }, func(f *Figures) float64 { return f.P99 }
	points := m.points(y.hit(), x.hit())
	if points != "" && points != "=" {
		points += " points"
	}
	return [][4]string{
		latency("TTFT p50", ttft, p50), latency("TTFT p99", ttft, p99), latency("E2E p50", e2e, p50),
		{"hit rate", percent(x.hit(), 1), percent(y.hit(), 1), points},
		{"busiest / mean", decimals(x.balance(), 2), decimals(y.balance(), 2), m.difference(y.balance(), x.balance())},
		{m.lost().noun + "s", number(x.Preemptions), number(y.Preemptions), m.difference(float64(y.Preemptions), float64(x.Preemptions))},
		{"completed", number(x.Completed), number(y.Completed), m.difference(float64(y.Completed), float64(x.Completed))},
	}
}

func (m *Model) drawSideShares(a grid.Area, side int) {
	counters := m.sides[side].Counters
	var placed uint64
	for _, c := range counters {
		placed += c.Placed
	}
	selected := m.place() - side*len(counters)
	first := widget.Window(0, min(max(selected, 0), max(len(counters)-1, 0)), a.H(), len(counters))
	for y := range min(a.H(), len(counters)) {
		i := first + y
		c, row := &counters[i], a.Rows(y, 1)
		name, style := fmt.Sprint("w", i), theme.Plain
		if n := side*len(counters) + i; n < len(m.workers) {
			if name = m.workers[n].name; m.workers[n] == m.sel {
				style = theme.Selected
			}
		}
		row.Text(0, 0, grid.Cut(name, 7), style)
		share := ratio(c.Placed, placed)
		bar := row.Sub(grid.Rect{X: 8, Y: 0, W: max(row.W()-8-16, 4), H: 1})
		widget.Bar(bar, share, m.theme.Glyphs.Full, m.theme.Glyphs.Rest, theme.InkActive, theme.InkFree)
		row.Right(row.W()-9, 0, percent(share, 1), theme.Plain)
		row.Right(row.W(), 0, "hit "+percent(ratio(c.Reused, c.Prompt), 0), theme.Plain)
	}
}

// nextPolicy gives the second fleet the next placement policy.
func (m *Model) nextPolicy() tea.Cmd {
	if m.o.Sides == nil || m.o.SecondPolicy == nil {
		m.say("there is one fleet; --ab POLICY at the start gives a second one the same traffic")
		return nil
	}
	all := router.Policies()
	next := all[(slices.Index(all, m.sides[1].Policy)+1)%len(all)]
	if err := m.o.SecondPolicy(next); err != nil {
		m.refuse(err)
		return nil
	}
	m.sides[1].Policy = next
	m.mark("B: " + string(next))
	m.say("B: requests are placed by " + string(next) + " from now on")
	m.stale = true
	return m.poll()
}
