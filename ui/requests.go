package ui

import (
	"cmp"
	"fmt"
	"slices"

	"mockbench/engine"
	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// requestOrder is how the Requests panel lists requests.
type requestOrder int

const (
	byQueue requestOrder = iota
	byBlocks
	byAge
	byTokens
	byCached
	requestOrders
)

var requestOrderNames = [requestOrders]string{"order of scheduling", "blocks", "age", "tokens", "cached tokens"}

// endedOrder is how it lists requests that have ended.
type endedOrder int

const (
	byEnd endedOrder = iota
	byTTFT
	byTotal
	byQueueTime
	byPreemptions
	endedOrders
)

var endedOrderNames = [endedOrders]string{"end, newest first", "TTFT", "E2E", "queue time", "preemptions"}

// lifeRows is the height of the time line of a request with its frame.
const lifeRows = 8

// requestsPanel lists the requests of the selected rank, or those that have ended, and shows the life of one of them.
type requestsPanel struct {
	order  requestOrder
	sorted endedOrder
	ended  bool // the list is of those that have ended
	cursor int  // row
	first  int  // row shown first
}

func (p *requestsPanel) key(m *Model, a keys.Action) {
	switch a {
	case keys.Ended:
		p.ended, p.cursor, p.first = !p.ended, 0, 0
	case keys.Order:
		if p.ended {
			p.sorted = (p.sorted + 1) % endedOrders
			m.say("requests by " + endedOrderNames[p.sorted])
			return
		}
		p.order = (p.order + 1) % requestOrders
		m.say("requests by " + requestOrderNames[p.order])
	default:
		p.cursor = scrolled(m, p.cursor, a)
	}
}

// click selects a row.
func (p *requestsPanel) click(y int) { p.cursor = max(p.first+y-2, 0) }

// live lists the requests of the selected rank that pass the filter, in the chosen order.
func (p *requestsPanel) live(m *Model) []*engine.RequestState {
	rows := slices.DeleteFunc(m.states(), func(r *engine.RequestState) bool {
		return !m.filter.matches(grid.Clean(r.Request.Label) + " " + m.phaseName(r.Phase))
	})
	slices.SortStableFunc(rows, func(a, b *engine.RequestState) int {
		switch p.order {
		case byBlocks:
			return b.Blocks - a.Blocks
		case byAge:
			return cmp.Compare(a.Since, b.Since)
		case byTokens:
			return b.Computed - a.Computed
		case byCached:
			return b.Cached - a.Cached
		}
		return 0
	})
	return rows
}

// over lists the requests that have ended and pass the filter, in the chosen order.
func (p *requestsPanel) over(m *Model) (rows []*life, sums []lifeSum) {
	for _, x := range m.lives.ended() {
		s := x.sum()
		if m.filter.matches(x.label + " " + s.outcome + " " + s.worker) {
			rows, sums = append(rows, x), append(sums, s)
		}
	}
	place := make([]int, len(rows))
	for i := range place {
		place[i] = i
	}
	slices.SortStableFunc(place, func(a, b int) int {
		x, y := &sums[a], &sums[b]
		switch p.sorted {
		case byTTFT:
			return cmp.Compare(y.ttft, x.ttft)
		case byTotal:
			return cmp.Compare(y.total, x.total)
		case byQueueTime:
			return cmp.Compare(y.queue, x.queue)
		case byPreemptions:
			return cmp.Compare(y.preempted, x.preempted)
		}
		return 0
	})
	sortedRows, sortedSums := make([]*life, len(rows)), make([]lifeSum, len(rows))
	for i, at := range place {
		sortedRows[i], sortedSums[i] = rows[at], sums[at]
	}
	return sortedRows, sortedSums
}

func (p *requestsPanel) draw(m *Model) {
	if p.ended {
		p.drawEnded(m)
		return
	}
	rows, all := p.live(m), len(m.states())
	title := fmt.Sprintf("requests of %s: %d running, %s waiting", m.selName(), len(m.pool.Running), number(m.pool.Queued))
	if len(rows) < all {
		title += fmt.Sprintf(", %d match %q", len(rows), grid.Clean(m.filter.input.Value()))
	}
	a := m.boxed(boxTable, title).Inset(1, 0)
	p.settle(len(rows), a.H()-1)
	m.drawStates(a, rows, p.first)
	var x *life
	wait := ""
	if p.cursor < len(rows) && m.sel != nil {
		mark(a, 1+p.cursor-p.first)
		x, wait = m.lives.of(m.sel, rows[p.cursor].Request.Label), m.waitText(rows[p.cursor])
	}
	p.drawLife(m, x, wait)
}

// settle keeps the cursor in the list and the list around the cursor.
func (p *requestsPanel) settle(rows, visible int) {
	p.cursor = min(max(p.cursor, 0), max(rows-1, 0))
	p.first = widget.Window(p.first, p.cursor, max(visible, 1), rows)
}

// mark makes a row stand out.
func mark(a grid.Area, y int) {
	for x := range a.W() {
		a.Restyle(x, y, theme.Selected)
	}
}

var endedColumns = []widget.Column{
	{Title: "id", Width: 12, Weight: 1}, {Title: "outcome", Width: 9}, {Title: "worker", Width: 7}, {Title: "queue", Width: 7, Right: true},
	{Title: "TTFT", Width: 7, Right: true}, {Title: "E2E", Width: 7, Right: true}, {Title: "tokens", Width: 6, Right: true},
	{Title: "lost", Width: 4, Right: true}, {Title: "prompt", Width: 7, Right: true}, {Title: "cached", Width: 7, Right: true},
}

func (p *requestsPanel) drawEnded(m *Model) {
	rows, sums := p.over(m)
	title := fmt.Sprintf("requests that have ended, the latest %s, by %s", number(len(rows)), endedOrderNames[p.sorted])
	a := m.boxed(boxTable, title).Inset(1, 0)
	t := widget.Table{Columns: widget.Fit(endedColumns, a.W()), Heading: theme.Heading}
	t.Head(a)
	p.settle(len(rows), a.H()-1)
	if len(rows) == 0 {
		a.Text(0, 1, "none yet", theme.Dim)
		p.drawLife(m, nil, "")
		return
	}
	for y := range min(max(a.H()-1, 0), len(rows)-p.first) {
		s, style := &sums[p.first+y], theme.Plain
		if s.outcome != "done" {
			style = theme.InkEvicted
		}
		t.Row(a, y+1, style, rows[p.first+y].label, s.outcome, s.worker, known(s.queue), known(s.ttft), known(s.total),
			number(s.tokens), number(s.preempted), number(s.prompt), number(s.cached))
	}
	mark(a, 1+p.cursor-p.first)
	p.drawLife(m, rows[p.cursor], "")
}

// known returns a time that may not have come.
func known(ms float64) string {
	if ms < 0 {
		return nothing
	}
	return span(ms)
}
