package ui

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine"
	"mockbench/ui/grid"
	"mockbench/ui/knobs"
)

// changedMsg tells that a change has come into force at all workers, or why not.
type changedMsg struct {
	what    string
	restart bool
	err     error
}

// set asks for another value of a knob. A wrong one is refused and changes nothing.
func (p *knobsPanel) set(m *Model, k *knobs.Knob, text string) tea.Cmd {
	m.dirty = true
	if text == p.text(k) {
		return nil
	}
	next, err := k.Set(p.edited(p.shown), text)
	if err != nil {
		m.refuse(err)
		return nil
	}
	if zero := next.Engine.SpeedupRatio * next.Engine.DecodeSpeedupRatio; zero == 0 && !m.o.NoDelay {
		m.refuse(&engine.SettingError{Setting: k.Setting, Kind: engine.KindUnsupported, Given: text,
			Allowed: "must be positive while the run goes on: workers without delay are chosen at the start"})
		return nil
	}
	var cmd tea.Cmd
	switch {
	case k.When == knobs.Restart:
		if delete(p.edits, k); text != k.Text(p.shown) {
			p.edits[k] = k.Text(next)
			m.say(k.Name + " " + k.Text(next) + " waits for a restart of the workers (R)")
		}
	case k.When == knobs.NextPass:
		cmd, err = m.tune(k, text)
	case k.Group == knobs.Load:
		err = m.o.Load.Set(next.Load)
	case k.Group == knobs.Limits:
		err = m.o.Limits.SetSLO(next.SLO)
	case next.Policy != p.shown.Policy:
		err = m.o.Router.SetPolicy(next.Policy)
	default:
		err = m.o.Router.SetModel(next.Model)
	}
	if err != nil {
		m.refuse(err)
		return nil
	}
	if k.When == knobs.AtOnce {
		m.mark(k.Name + " " + k.Text(next))
		m.stale = true
	}
	p.refresh(m)
	return cmd
}

// tune gives all workers another value of a setting that changes at their next pass.
func (m *Model) tune(k *knobs.Knob, text string) (tea.Cmd, error) {
	var waits []func() error
	for _, w := range m.workers {
		s, err := k.Set(m.setupOf(w), text)
		if err != nil {
			return nil, err
		}
		wait, err := w.Worker.Tune(s.Engine.Tuning())
		if err != nil {
			return nil, err
		}
		w.wanted = s.Engine
		waits = append(waits, wait)
	}
	return await(changedMsg{what: k.Name + " " + text}, waits), nil
}

// await waits for all workers and reports the first failure.
func await(msg changedMsg, waits []func() error) tea.Cmd {
	return beside("screen change", func() tea.Msg {
		for _, wait := range waits {
			if err := wait(); err != nil && msg.err == nil {
				msg.err = err
			}
		}
		return msg
	})
}

// restart gives all workers engines with the settings that wait for it. While that goes on it cancels what holds it up.
func (p *knobsPanel) restart(m *Model) tea.Cmd {
	if p.turns > 0 {
		for _, w := range m.workers {
			if w.Worker.Restarting() {
				w.Worker.Hurry()
			}
		}
		m.say("requests that still run are cancelled")
		return nil
	}
	if len(p.edits) == 0 {
		m.say("no change waits for a restart")
		return nil
	}
	wanted := make([]engine.Config, len(m.workers))
	for i, w := range m.workers {
		wanted[i] = p.edited(m.setupOf(w)).Engine
		if err := wanted[i].Validate(); err != nil {
			m.refuse(err)
			return nil
		}
	}
	msg := changedMsg{what: "restart: " + p.editText(), restart: true}
	var list []restarting
	for i, w := range m.workers {
		w.wanted = wanted[i]
		list = append(list, restarting{w.Worker, wanted[i]})
	}
	clear(p.edits)
	p.turns++
	m.say("workers restart: what runs ends first, what waits is kept (R cancels what runs)")
	p.refresh(m)
	return beside("screen restart", func() tea.Msg {
		msg.err = restartAll(list)
		return msg
	})
}

// restarting is a worker with the settings of its next engine.
type restarting struct {
	worker Worker
	config engine.Config
}

// restartAll restarts workers and waits until all have their new engines. Decode workers go first and prefill workers
// follow: what one of the two keeps back is not what the other one waits for.
func restartAll(list []restarting) error {
	var errs []error
	for _, decode := range []bool{true, false} {
		var waits []func() error
		for _, r := range list {
			if (r.config.Role == engine.DecodeRole) != decode {
				continue
			}
			wait, err := r.worker.Restart(r.config)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			waits = append(waits, wait)
		}
		for _, wait := range waits {
			errs = append(errs, wait())
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// editText lists the changes that wait for a restart.
func (p *knobsPanel) editText() string {
	var parts []string
	for _, k := range knobs.All() {
		if text, ok := p.edits[k]; ok {
			parts = append(parts, k.Name+" "+text)
		}
	}
	return strings.Join(parts, ", ")
}

// changed takes note of a change that has come into force.
func (m *Model) changed(msg changedMsg) tea.Cmd {
	if msg.restart {
		m.knobs.turns--
	}
	for _, w := range m.workers {
		w.configure()
		if msg.err != nil && !w.Worker.Restarting() {
			w.wanted = w.config
		}
	}
	m.knobs.refresh(m)
	m.relayout()
	if msg.err != nil {
		m.refuse(msg.err)
		return nil
	}
	m.mark(msg.what)
	if msg.restart {
		m.say("workers restarted")
	}
	m.pool.taken = false
	return m.look()
}

// refuse shows why something is not done, longer than a notice.
func (m *Model) refuse(err error) {
	m.say("error: " + grid.Clean(err.Error()))
	m.notice.until += 3 * uint64(m.o.FPS)
}

// marker is a moment on the time axis of the charts.
type marker struct {
	column int
	letter rune
	text   string
}

// Letters of the moments on a time axis.
const (
	letterKnob, letterBaseline = 'k', 'b'
)

// keptMarks is how many moments are kept.
const keptMarks = 64

// mark puts a knob change on the time axis.
func (m *Model) mark(text string) { m.markAs(letterKnob, text) }

func (m *Model) markAs(letter rune, text string) {
	m.marks = append(m.marks, marker{m.closedCols, letter, fmt.Sprintf("%s %s", clockText(m.clock), text)})
	if n := len(m.marks); n > keptMarks {
		m.marks = append(m.marks[:0], m.marks[n-keptMarks:]...)
	}
	m.dirty = true
}
