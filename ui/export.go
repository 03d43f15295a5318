package ui

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/ui/grid"
	"mockbench/ui/theme"
)

// exportedMsg tells where the screen was written to.
type exportedMsg struct {
	files []string
	err   error
}

// export writes the screen as text and as a picture, and the report so far if there is one.
func (m *Model) export() tea.Cmd {
	if m.layout.tooSmall() {
		return nil
	}
	m.notice = notice{}
	m.draw()
	g := grid.New(0, 0)
	g.CopyFrom(m.grid)
	panel := m.tab.file()
	base := filepath.Join(m.o.ExportDir, "mockbench-"+time.Now().Format("20060102-150405.000")+"-"+panel)
	o, light := m.o, m.theme.Light
	return beside("export", func() tea.Msg {
		var out exportedMsg
		write := func(path string, f func(w io.Writer) error) {
			if out.err == nil {
				out.err = report.WriteTo(path, io.Discard, f)
				out.files = append(out.files, path)
			}
		}
		write(base+".txt", func(w io.Writer) error { _, err := io.WriteString(w, g.String()+"\n"); return err })
		write(base+".svg", func(w io.Writer) error { _, err := io.WriteString(w, Picture(g, light)); return err })
		if o.Report != nil {
			write(base+"-report.json", o.Report)
		}
		return out
	})
}

func (m *Model) exported(msg exportedMsg) {
	if msg.err != nil {
		m.say("not exported: " + grid.Clean(msg.err.Error()))
		return
	}
	text := "wrote " + msg.files[0]
	for _, f := range msg.files[1:] {
		text += ", " + strings.TrimPrefix(f, strings.TrimSuffix(msg.files[0], ".txt"))
	}
	m.say(grid.Clean(text))
}

// Picture returns a screen as SVG, in the colours of a terminal with a palette of 256.
func Picture(g *grid.Grid, light bool) string {
	paper, ink := int16(233), int16(252)
	if light {
		paper, ink = 231, 235
	}
	return g.SVG(theme.New(theme.Colors256, light, true).Looks, paper, ink)
}

// file returns the name of a panel as it stands in the names of files.
func (t tab) file() string { return strings.ReplaceAll(strings.ToLower(tabInfo[t].name), " ", "-") }

// Panels are the names of the panels, as Show takes them.
func Panels() (names []string) {
	for t := range tabs {
		names = append(names, t.file())
	}
	return names
}

// Show returns what the screen of a recording shows of a panel, so long after its beginning. It is for
// pictures: there is no terminal.
func Show(o Options, th theme.Theme, panel string, after engine.Time, w, h int) (*grid.Grid, error) {
	m := New(o, th)
	var failed error
	m.settle(m.resize(w, h), &failed)
	m.player.paused = true
	m.settle(m.seek(m.player.first+after), &failed)
	if failed != nil {
		return nil, failed
	}
	if m.layout.tooSmall() {
		return nil, fmt.Errorf("the screen needs at least %dx%d cells, got %dx%d", minWidth, minHeight, w, h)
	}
	for _, t := range m.tabs {
		if t.file() == panel {
			m.settle(m.show(t), &failed)
			m.settle(m.arrived(), &failed)
			m.notice = notice{}
			m.draw()
			return m.grid, failed
		}
	}
	return nil, fmt.Errorf("the recording has nothing for the panel %s", panel)
}

// settle runs a command and everything that follows from it.
func (m *Model) settle(c tea.Cmd, failed *error) {
	if c == nil {
		return
	}
	switch msg := c().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			m.settle(c, failed)
		}
	default:
		if r, ok := msg.(reelMsg); ok && r.err != nil {
			*failed = r.err
		}
		_, next := m.Update(msg)
		m.settle(next, failed)
	}
}
