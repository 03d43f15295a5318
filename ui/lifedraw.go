package ui

import (
	"fmt"
	"slices"

	"mockbench/engine"
	"mockbench/ui/grid"
	"mockbench/ui/theme"
)

// lifeStyles are the styles of the letters of a time line.
var lifeStyles = map[rune]grid.Style{letterQueued: theme.CellFree, letterPrefill: theme.CellShared, letterBetween: theme.CellCached,
	letterDecode: theme.CellActive, letterLost: theme.CellEvicted, letterTransfer: theme.CellHost}

// drawLife draws the life of a request: a time line for each worker that it was at, a scale, and its figures. Of one that
// waits, wait says for what.
func (p *requestsPanel) drawLife(m *Model, x *life, wait string) {
	title := "time line"
	if x != nil {
		title += " of " + x.label
	}
	a := m.boxed(boxCursor, title).Inset(1, 0)
	if x == nil {
		a.Text(0, 0, "nothing is known of the life of this request", theme.Dim)
		a.Text(0, 1, grid.Cut(wait, a.W()), theme.Plain)
		return
	}
	begin, end := x.moments[0].At, x.last().At
	if !x.over() {
		end = max(end, m.clock)
	}
	parts := x.stretches(m.clock)
	var workers []string
	for i := range x.moments {
		if !slices.Contains(workers, x.moments[i].worker) {
			workers = append(workers, x.moments[i].worker)
		}
	}
	workers = workers[:min(len(workers), max(a.H()-4, 1))]
	for y, w := range workers {
		row := a.Rows(y, 1)
		row.Text(0, 0, grid.Cut(w, 7), theme.Bold)
		drawStretches(row.Sub(grid.Rect{X: 8, Y: 0, W: row.W() - 8, H: 1}), parts, w, begin, end)
	}
	y := len(workers)
	a.Text(8, y, "0", theme.Dim)
	a.Right(a.W(), y, span(float64(end-begin)), theme.Dim)
	s := x.sum()
	times, counts := m.lifeText(&s)
	if wait != "" {
		times = wait
	}
	a.Text(0, y+1, grid.Cut(times, a.W()), theme.Plain)
	a.Text(0, y+2, grid.Cut(counts, a.W()), theme.Plain)
	drawLifeLegend(a.Rows(a.H()-1, 1))
}

// drawStretches draws the parts of a time line at one worker; each is seen, if only in one column.
func drawStretches(a grid.Area, parts []stretch, worker string, begin, end engine.Time) {
	scale := float64(a.W()) / max(float64(end-begin), 1e-9)
	for _, short := range []bool{false, true} { // short ones last: they would be covered
		for i := range parts {
			s := &parts[i]
			from := min(int(float64(s.from-begin)*scale), a.W()-1)
			to := max(int(float64(s.to-begin)*scale), from+1)
			if s.worker != worker || s.letter == 0 || short != (to == from+1 && s.letter != letterBetween) {
				continue
			}
			for x := from; x < min(to, a.W()); x++ {
				a.Set(x, 0, s.letter, lifeStyles[s.letter])
			}
		}
	}
}

// lifeText tells a life in two lines: its times, and what was computed.
func (m *Model) lifeText(s *lifeSum) (times, counts string) {
	times = fmt.Sprintf("%s at %s: queue %s, TTFT %s", s.outcome, s.worker, known(s.queue), known(s.ttft))
	if s.total >= 0 {
		times += ", E2E " + span(s.total)
	}
	counts = fmt.Sprintf("prompt %s in %s (%s cached)", number(s.prompt), plural(s.chunks, "chunk"), number(s.cached))
	if s.transferred >= 0 {
		times += ", transfer " + span(s.transferred)
	}
	if s.preempted > 0 {
		counts += ", " + plural(s.preempted, m.lost().noun)
	}
	if s.tokens > 0 {
		counts += ", " + plural(s.tokens, "token")
	}
	return times, counts
}

func drawLifeLegend(a grid.Area) {
	x := 0
	for _, l := range []struct {
		letter rune
		text   string
	}{{letterQueued, "queued"}, {letterPrefill, "prefill chunk"}, {letterBetween, "between passes"}, {letterDecode, "decode"},
		{letterLost, "preempted"}, {letterTransfer, "transferred"}} {
		a.Set(x, 0, l.letter, lifeStyles[l.letter])
		x = a.Text(x+2, 0, l.text, theme.Dim) + 1
	}
}
