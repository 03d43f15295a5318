package ui

import (
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine/router"
	"mockbench/engine/workload"
	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/knobs"
)

// Load is what the screen asks of a built-in load; *workload.Load is one.
type Load interface {
	Options() workload.Options
	Set(workload.Options) error
}

// Router is what the screen changes of a placement policy; *router.Router is one.
type Router interface {
	Options() router.Options
	SetPolicy(router.Policy) error
	SetModel(router.Model) error
}

// Limits are the SLO limits that the figures of a window are compared with.
type Limits interface {
	SLO() knobs.SLO
	SetSLO(knobs.SLO) error
}

// knobsPanel lists the settings that can change. Those that need another engine wait until a restart is asked for.
type knobsPanel struct {
	start  knobs.Setup // at the beginning
	begun  bool        // start is known
	shown  knobs.Setup // as it was asked for, restart settings excepted
	list   []*knobs.Knob
	row    int
	first  int // line shown first
	edits  map[*knobs.Knob]string
	turns  int // restarts under way, each of all workers
	input  textinput.Model
	typing bool
}

func newKnobsPanel() knobsPanel {
	return knobsPanel{edits: map[*knobs.Knob]string{}, input: textinput.New()}
}

// setupOf returns the setup with the settings that were last asked for from a worker.
func (m *Model) setupOf(w *worker) knobs.Setup {
	var s knobs.Setup
	if w != nil {
		s.Engine = w.wanted
	}
	if m.o.Load != nil {
		s.Load, s.HasLoad = m.o.Load.Options(), true
	}
	if m.o.Router != nil {
		o := m.o.Router.Options()
		s.Policy, s.Model, s.HasRouter = o.Policy, o.Model, true
	}
	if m.o.Limits != nil {
		s.SLO, s.HasSLO = m.o.Limits.SLO(), true
	}
	return s
}

// refresh takes over what the settings are now.
func (p *knobsPanel) refresh(m *Model) {
	if m.sel == nil {
		return
	}
	p.shown = m.setupOf(m.sel)
	if !p.begun {
		p.start, p.begun = m.setupOf(m.workers[0]), true
	}
	p.list = knobs.List(p.edited(p.shown))
	p.row = min(p.row, max(len(p.list)-1, 0))
}

// edited returns a setup with the changes that wait for a restart. One that does not fit the others is left out.
func (p *knobsPanel) edited(s knobs.Setup) knobs.Setup {
	for _, k := range knobs.All() {
		if text, ok := p.edits[k]; ok {
			s, _ = k.Set(s, text)
		}
	}
	return s
}

// selected returns the knob of the cursor, nil without any.
func (p *knobsPanel) selected() *knobs.Knob {
	if p.row >= len(p.list) {
		return nil
	}
	return p.list[p.row]
}

// text returns the value of a knob as it was asked for.
func (p *knobsPanel) text(k *knobs.Knob) string {
	if text, ok := p.edits[k]; ok {
		return text
	}
	return k.Text(p.shown)
}

// changed reports whether a knob is not as it was at the start.
func (p *knobsPanel) changed(k *knobs.Knob) bool { return p.text(k) != k.Text(p.start) }

func (p *knobsPanel) key(m *Model, a keys.Action) tea.Cmd {
	k := p.selected()
	page := max(m.layout.rect[boxTable].H-6, 1)
	switch a {
	case keys.Up:
		p.row--
	case keys.Down:
		p.row++
	case keys.PageUp:
		p.row -= page
	case keys.PageDown:
		p.row += page
	case keys.Home:
		p.row = 0
	case keys.End:
		p.row = len(p.list)
	case keys.RestartWorkers:
		return p.restart(m)
	case keys.ResetAll:
		return p.resetAll(m)
	}
	p.row = min(max(p.row, 0), max(len(p.list)-1, 0))
	if k == nil {
		return nil
	}
	switch a {
	case keys.More, keys.Less:
		return p.set(m, k, k.Step(p.edited(p.shown), a == keys.More))
	case keys.Reset:
		return p.set(m, k, k.Text(p.start))
	case keys.Edit:
		p.typing = true
		p.input.SetValue(p.text(k))
		p.input.CursorEnd()
		p.input.Focus() // its command blinks a cursor that is not shown
	}
	return nil
}

// edit passes a key to the row that is edited.
func (p *knobsPanel) edit(m *Model, k tea.KeyMsg) tea.Cmd {
	m.dirty = true
	switch k.Type {
	case tea.KeyEnter:
		p.typing = false
		if knob := p.selected(); knob != nil {
			return p.set(m, knob, p.input.Value())
		}
	case tea.KeyEsc, tea.KeyUp, tea.KeyDown, tea.KeyTab:
		p.typing = false
	default:
		p.input, _ = p.input.Update(k)
	}
	return nil
}

// resetAll puts everything back to what it was at the start.
func (p *knobsPanel) resetAll(m *Model) tea.Cmd {
	var cmds []tea.Cmd
	for range 2 { // some values are refused before others have changed
		for _, k := range knobs.All() {
			if p.changed(k) {
				cmds = append(cmds, p.set(m, k, k.Text(p.start)))
			}
		}
	}
	m.say("everything as at the start")
	if n := len(p.edits); n > 0 {
		m.say(plural(n, "setting") + " back as at the start after a restart (R)")
	}
	return tea.Batch(cmds...)
}

// click selects the row of a line of the panel.
func (p *knobsPanel) click(y int) {
	for i := range p.list {
		if p.line(i)-p.first == y-2 {
			p.row = i
		}
	}
}

// line returns the line of a knob in the list with its headings.
func (p *knobsPanel) line(row int) int {
	line := row
	for i := 0; i <= row && i < len(p.list); i++ {
		if i == 0 || p.list[i].Group != p.list[i-1].Group {
			line++
		}
	}
	return line
}

// savedMsg tells where a setup was saved.
type savedMsg struct {
	path string
	err  error
}

// save writes the setup to a file.
func (m *Model) save() tea.Cmd {
	m.knobs.refresh(m)
	if m.o.Save == nil {
		m.say("this run cannot be saved as a profile")
		return nil
	}
	s := m.knobs.edited(m.knobs.shown)
	return beside("screen save", func() tea.Msg {
		path, err := m.o.Save(s)
		return savedMsg{path, err}
	})
}

func (m *Model) saved(msg savedMsg) {
	if msg.err != nil {
		m.refuse(msg.err)
		return
	}
	m.say("saved " + grid.Clean(msg.path))
}
