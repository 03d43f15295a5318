package ui

import (
	"fmt"
	"strconv"
	"strings"

	"mockbench/engine/router"
	"mockbench/ui/grid"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// Widths of the columns around the candidates.
const (
	routeID, routeCandidate, routeWinner, routeWhy = 9, 12, 6, 12
)

// drawRouting draws the Routing panel: who got which share, and the last decisions with their candidates.
func (m *Model) drawRouting() {
	if m.o.Sides != nil {
		m.drawSides()
	} else {
		m.drawShares()
	}
	title := "last decisions: overlap blocks / cost, lowest wins"
	if len(m.decisions) > 0 && m.decisions[0].Policy != router.KV {
		title = fmt.Sprintf("last decisions by %s: overlap blocks / cost", m.decisions[0].Policy)
	}
	if m.o.Sides != nil {
		title = "A: " + title
	}
	a := m.boxed(boxTable, title).Inset(1, 0)
	if len(m.decisions) == 0 {
		a.Text(0, 0, "no decision yet", theme.Dim)
		return
	}
	columns := max((a.W()-routeID-routeWinner-routeWhy)/routeCandidate, 0)
	all := len(m.decisions[0].Candidates) <= columns && sameCandidates(m.decisions)
	m.drawDecisionHead(a.Rows(0, 1), columns, all)
	for y := 1; y < a.H() && y <= len(m.decisions); y++ {
		m.drawDecision(a.Rows(y, 1), &m.decisions[y-1], columns, all)
	}
}

// sameCandidates reports whether all decisions chose among the same workers. Those of prefill and decode workers do not.
func sameCandidates(list []router.Decision) bool {
	for i := range list {
		if a, b := list[0].Candidates, list[i].Candidates; len(a) != len(b) || len(a) > 0 && a[0].Worker != b[0].Worker {
			return false
		}
	}
	return true
}

// drawDecisionHead names the candidates if all have a column, else only their places.
func (m *Model) drawDecisionHead(a grid.Area, columns int, all bool) {
	a.Text(0, 0, "request", theme.Heading)
	a.Text(a.W()-routeWinner-routeWhy, 0, "win", theme.Heading)
	a.Text(a.W()-routeWhy, 0, "why", theme.Heading)
	for i := range columns {
		text := "by cost"
		switch {
		case all && i >= len(m.decisions[0].Candidates):
			return
		case all:
			name := m.rankName(&m.decisions[0].Candidates[i])
			if text = name + " ov/cost"; grid.Width(text) >= routeCandidate {
				text = grid.Cut(name, routeCandidate-6) + " cost"
			}
		case i == 0:
			text = "winner"
		case i == 1:
			text = "next best"
		}
		a.Right(routeID+routeCandidate*(i+1)-1, 0, text, theme.Heading)
	}
}

// drawDecision draws one decision: each candidate in its column, or as many as fit, the winner first and the others by
// cost.
func (m *Model) drawDecision(a grid.Area, d *router.Decision, columns int, all bool) {
	if d.Choice >= len(d.Candidates) {
		return
	}
	winner := &d.Candidates[d.Choice]
	a.Text(0, 0, grid.Cut(grid.Clean(d.Label), routeID-1), theme.Plain)
	draw := func(i int, c *router.Candidate) {
		overlap, style := strconv.Itoa(c.OverlapBlocks)+"/", theme.Plain
		var text string
		switch {
		case !all:
			text = m.rankName(c) + " " + overlap + decimals(c.Cost, 0)
		case c == winner:
			text, style = "*"+overlap+padded(decimals(c.Cost, 1), 6), theme.Selected
		default:
			text = overlap + padded(decimals(c.Cost, 1), 6)
		}
		a.Right(routeID+routeCandidate*(i+1)-1, 0, text, style)
	}
	if all {
		for i := range min(columns, len(d.Candidates)) {
			draw(i, &d.Candidates[i])
		}
	} else {
		for i, c := range cheapest(d, columns) {
			draw(i, c)
		}
	}
	a.Text(a.W()-routeWinner-routeWhy, 0, m.rankName(winner), theme.Selected)
	a.Text(a.W()-routeWhy, 0, grid.Cut(d.Why, routeWhy), theme.Plain)
}

// cheapest returns the winner of a decision and then the others by cost, n in all. A few of many are picked faster than
// all are sorted.
func cheapest(d *router.Decision, n int) []*router.Candidate {
	if n < 1 {
		return nil
	}
	best := make([]*router.Candidate, 1, n)
	best[0] = &d.Candidates[d.Choice]
	for i := range d.Candidates {
		c := &d.Candidates[i]
		if c == best[0] || len(best) == n && (n == 1 || c.Cost >= best[n-1].Cost) {
			continue
		}
		if len(best) < n {
			best = append(best, c)
		}
		at := len(best) - 1
		for ; at > 1 && best[at-1].Cost > c.Cost; at-- {
			best[at] = best[at-1]
		}
		best[at] = c
	}
	return best
}

// padded returns a text with blanks in front, at least width columns wide.
func padded(text string, width int) string {
	return strings.Repeat(" ", max(width-len(text), 0)) + text
}

// rankName returns the name of a candidate's worker, with its rank if workers have several.
func (m *Model) rankName(c *router.Candidate) string {
	if c.Worker >= len(m.workers) {
		return "w" + strconv.Itoa(c.Worker)
	}
	return m.workers[c.Worker].rankName(c.Rank)
}

func (m *Model) drawShares() {
	a := m.boxed(boxWorkers, "share of requests, hit: predicted / actual").Inset(1, 0)
	var placed uint64
	for _, c := range m.counters {
		placed += c.Placed
	}
	first := widget.Window(0, max(m.place(), 0), a.H(), len(m.counters))
	for y := range a.H() {
		i := first + y
		if i >= len(m.counters) {
			return
		}
		c := &m.counters[i]
		name, style := "w"+strconv.Itoa(i), theme.Plain
		if i < len(m.workers) {
			name = m.workers[i].name
			if m.workers[i] == m.sel {
				name, style = "> "+name, theme.Selected
			}
		}
		row := a.Rows(y, 1)
		row.Text(0, 0, grid.Cut(name, 8), style)
		share := ratio(c.Placed, placed)
		g := &m.theme.Glyphs
		bar := row.Sub(grid.Rect{X: 9, Y: 0, W: max(row.W()-9-53, 8), H: 1})
		widget.Bar(bar, share, g.Full, g.Rest, theme.InkActive, theme.InkFree)
		x := 9 + bar.W() + 1
		row.Right(x+6, 0, percent(share, 1), theme.Plain)
		row.Text(x+8, 0, fmt.Sprintf("%6s requests  hit %4s / %4s  active %3d", number(c.Placed),
			percent(ratio(c.Predicted, c.Prompt), 0), percent(ratio(c.Reused, c.Prompt), 0), c.Active), theme.Plain)
	}
}
