package ui

import (
	"context"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/ui/grid"
)

// Bounds of the speed that keys can choose.
const minSpeed, maxSpeed = 1.0 / 64, 1024.0

func (m *Model) pause(on bool) {
	if on {
		m.o.Clock.Pause()
	} else {
		m.o.Clock.Resume()
	}
	m.readClock()
}

// step pauses the run if it is not paused, else runs one pass of the selected worker.
func (m *Model) step() tea.Cmd {
	if !m.o.Clock.Paused() {
		m.pause(true)
		m.say("paused; . runs one pass")
		return nil
	}
	if m.sel == nil {
		return nil
	}
	m.stepping = m.sel
	if l := m.sel.load(); l.Running+l.Waiting == 0 {
		m.say(m.sel.name + " has nothing to run")
	}
	w := m.sel.Worker
	return beside("screen step", func() tea.Msg {
		w.Step()
		return nil
	})
}

func (m *Model) setSpeed(x float64) {
	if m.o.NoDelay {
		m.say("workers run without simulated delay: the speed has no effect")
		return
	}
	m.o.Clock.SetSpeed(min(max(x, minSpeed), maxSpeed))
	m.readClock()
	m.say("speed " + speedText(m.speed))
}

// quit drains and then ends the screen for the reason; the second time it ends at once.
func (m *Model) quit(reason error) tea.Cmd {
	if m.drain.active {
		m.drain.cancel()
		if s, ok := m.drain.reason.(*SignalError); ok {
			s.Forced = true
		}
		return tea.Quit
	}
	m.drain.reason = reason
	if m.o.Drain == nil {
		return tea.Quit
	}
	m.drain.active, m.dirty = true, true
	if m.o.Clock.Paused() {
		m.pause(false) // what is paused cannot drain
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.drain.ctx, m.drain.cancel = ctx, cancel
	progress := make(chan Draining, 1)
	m.drain.progress = progress
	return tea.Batch(m.watchDrain(), beside("drain", func() tea.Msg {
		defer cancel()
		m.o.Drain(ctx, func(d Draining) {
			select {
			case <-progress: // the newest counts
			default:
			}
			select {
			case progress <- d:
			default:
			}
		})
		return drainedMsg{}
	}))
}

// watchDrain waits for the next word of the drain.
func (m *Model) watchDrain() tea.Cmd {
	ctx, progress := m.drain.ctx, m.drain.progress
	return beside("drain progress", func() tea.Msg {
		select {
		case d := <-progress:
			return drainingMsg{d}
		case <-ctx.Done():
			return nil
		}
	})
}

func (m *Model) signalled(msg SignalMsg) tea.Cmd {
	return m.quit(&SignalError{Signal: msg.Signal})
}

// headMsg tells that the request a rank stalled on was cancelled.
type headMsg struct {
	worker, label string
	ok            bool
}

// cancelHead cancels the request that the banner names.
func (m *Model) cancelHead() tea.Cmd {
	for _, w := range m.workers {
		for _, s := range w.stuck() {
			return beside("screen cancel", func() tea.Msg {
				label, ok := w.Worker.CancelHead(s.Rank)
				return headMsg{w.name, grid.Clean(label), ok}
			})
		}
	}
	m.say("no rank is stalled")
	return nil
}

func (m *Model) headCancelled(msg headMsg) {
	if msg.ok {
		m.say("cancelled " + msg.label + " of " + msg.worker)
	} else {
		m.say(msg.worker + " is no longer stalled")
	}
}
