package ui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine/live"
	"mockbench/engine/router"
	"mockbench/ui/grid"
)

// recentDecisions is how many placements the Routing panel can show.
const recentDecisions = 64

// polledMsg is everything that is fetched twice a second.
type polledMsg struct {
	fleet     []Source
	stalls    [][]live.Stall // of each worker of the fleet
	slips     []time.Duration
	status    Status
	window    *Window // nil: not fetched
	routing   bool    // the following were fetched
	decisions []router.Decision
	counters  []router.Counters
	sides     [2]Side
}

// poll fetches figures beside the screen, one at a time: those of the panel that is shown, and only if anything has
// happened since they were fetched.
func (m *Model) poll() tea.Cmd {
	if m.polling {
		return nil
	}
	m.polling = true
	o := m.o
	window := o.Window != nil && m.stale && (m.tab == tabOverview || m.tab == tabLatency)
	routing := o.Routing != nil && m.stale && m.tab == tabRouting
	m.stale = m.stale && !window && !routing
	return beside("screen figures", func() tea.Msg {
		p := polledMsg{fleet: o.Fleet()}
		for _, s := range p.fleet {
			p.stalls = append(p.stalls, s.Worker.Stalled())
			p.slips = append(p.slips, s.Worker.Slip())
		}
		if o.Status != nil {
			p.status = o.Status()
			p.status.Planes, p.status.LastError = grid.Clean(p.status.Planes), grid.Clean(p.status.LastError)
		}
		if window {
			w := o.Window()
			p.window = &w
		}
		if p.routing = routing; routing {
			p.decisions = o.Routing.Recent(nil, recentDecisions)
			p.counters = o.Routing.Counters(nil)
			if o.Sides != nil {
				p.sides = o.Sides()
			}
		}
		return p
	})
}

func (m *Model) polled(p polledMsg) tea.Cmd {
	m.polling = false
	m.dirty = m.dirty || !m.paused || p.status != m.status || p.window != nil || p.routing
	before := m.sel
	m.setFleet(p.fleet)
	alarms := len(m.alarms())
	for i, w := range m.workers {
		w.stalls, w.slip = p.stalls[i], p.slips[i]
	}
	if len(m.alarms()) != alarms {
		m.relayout()
	}
	m.status = p.status
	if p.window != nil {
		m.window = *p.window
	}
	if p.routing {
		m.decisions, m.counters, m.sides = p.decisions, p.counters, p.sides
	}
	if m.sel != before {
		return m.look()
	}
	return nil
}
