package ui

import (
	"fmt"
	"slices"

	"mockbench/engine"
	"mockbench/ui/grid"
	"mockbench/ui/keys"
)

// requestOrder is how the Requests panel lists requests.
type requestOrder int

const (
	byQueue requestOrder = iota
	byBlocks
	byAge
	requestOrders
)

var requestOrderNames = [requestOrders]string{"order of scheduling", "blocks", "age"}

// requestsPanel lists the requests of the selected rank.
type requestsPanel struct {
	order requestOrder
	row   int
}

func (p *requestsPanel) key(m *Model, a keys.Action) {
	if a != keys.Order {
		p.row = scrolled(m, p.row, a)
		return
	}
	p.order = (p.order + 1) % requestOrders
	m.say("requests by " + requestOrderNames[p.order])
}

func (p *requestsPanel) draw(m *Model) {
	rows := m.states()
	all := len(rows)
	if m.filter.input.Value() != "" {
		rows = slices.DeleteFunc(rows, func(r *engine.RequestState) bool {
			return !m.filter.matches(grid.Clean(r.Request.Label) + " " + m.phaseName(r.Phase))
		})
	}
	slices.SortStableFunc(rows, func(a, b *engine.RequestState) int {
		switch p.order {
		case byBlocks:
			return b.Blocks - a.Blocks
		case byAge:
			return int(a.Since - b.Since)
		}
		return 0
	})
	title := fmt.Sprintf("requests of %s: %d running, %s waiting", m.selName(), len(m.pool.Running), number(m.pool.Queued))
	if len(rows) < all {
		title += fmt.Sprintf(", %d match %q", len(rows), grid.Clean(m.filter.input.Value()))
	}
	p.row = m.drawStates(m.boxed(boxTable, title).Inset(1, 0), rows, p.row)
}
