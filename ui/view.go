package ui

import (
	"fmt"
	"slices"

	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// View draws the frame if anything has changed. With a publisher the frame goes there and the text stays empty.
func (m *Model) View() string {
	if m.dirty && m.layout.w > 0 && m.layout.h > 0 {
		m.dirty = false
		m.draw()
		if m.out != nil {
			m.out.Publish(m.grid, m.full)
		} else {
			m.text = m.grid.ANSI(m.theme.Looks)
		}
		m.full = false
	}
	return m.text
}

// draw draws everything into the grid.
func (m *Model) draw() {
	m.grid.Clear()
	if m.layout.tooSmall() {
		m.drawTooSmall()
		return
	}
	m.drawHeader(m.area(boxHeader))
	m.drawTabs(m.area(boxTabs))
	banner := m.area(boxBanner)
	for i, text := range m.alarms() {
		line := banner.Rows(i, 1)
		line.Fill(' ', theme.Alarm)
		line.Text(1, 0, "! "+text, theme.Alarm)
	}
	switch m.tab {
	case tabOverview:
		m.overview.draw(m)
	case tabBlocks:
		m.drawBlocks()
	case tabHost:
		m.host.draw(m)
	case tabBatch:
		m.batch.draw(m)
	case tabRequests:
		m.requests.draw(m)
	case tabRouting:
		m.drawRouting()
	case tabLatency:
		m.drawLatency()
	case tabEvents:
		m.events.draw(m)
	case tabKnobs:
		m.knobs.draw(m)
	}
	if m.help.open {
		m.help.draw(m)
	}
	if m.player != nil {
		m.drawSlider(m.area(boxSlider))
	}
	m.drawFooter(m.area(boxFooter))
}

// area returns the drawing area of a box.
func (m *Model) area(b box) grid.Area { return m.grid.Area().Sub(m.layout.rect[b]) }

// boxed draws the frame of a box with a title and returns the area inside.
func (m *Model) boxed(b box, title string) grid.Area { return m.frameIn(m.area(b), title) }

func (m *Model) frameIn(a grid.Area, title string) grid.Area {
	g := &m.theme.Glyphs
	return widget.Box(a, widget.Lines{H: g.H, V: g.V, NW: g.NW, NE: g.NE, SW: g.SW, SE: g.SE}, theme.Frame, title, theme.Heading)
}

func (m *Model) drawTooSmall() {
	text := fmt.Sprintf("need %dx%d, have %dx%d", minWidth, minHeight, m.layout.w, m.layout.h)
	a := m.grid.Area()
	if m.layout.w <= 1 && m.layout.h <= 1 {
		return
	}
	a.Text(max(0, (m.layout.w-len(text))/2), m.layout.h/2, text, theme.Plain)
}

// piece is a part of the header; less important ones are left out first when there is no room.
type piece struct {
	text  string
	style grid.Style
}

func (m *Model) drawHeader(a grid.Area) {
	roomy := m.layout.w >= roomyWidth
	state, style := "RUN", theme.Bold
	switch {
	case m.drain.active:
		state, style = "DRAIN", theme.Paused
	case m.player != nil:
		state, style = "VIEW", theme.Paused
	case m.paused:
		state, style = "PAUSE", theme.Paused
	}
	speed := speedText(m.speed)
	if m.o.NoDelay {
		speed = "no delay"
	}
	right := []piece{{state, style}, {clockText(m.clock), theme.Plain}, {speed, theme.Plain}}
	for _, p := range []piece{m.rejected(), m.slip()} {
		if p.text != "" {
			right = append(right, p)
		}
	}
	if m.o.Status != nil {
		right = append(right, m.connection(roomy)...)
	}
	left := []string{"mockbench", m.o.Model, m.o.Backend, plural(len(m.workers), "worker")}
	gap := 2
	if !roomy {
		left[3], gap = fmt.Sprintf("%dw", len(m.workers)), 1
	}
	used := 1
	for i, text := range left {
		s := theme.Plain
		if i == 0 {
			s = theme.Bold
		}
		room := a.W() - used - 24 // the state, the time and the speed always fit
		text = grid.Cut(text, max(room, 0))
		used = a.Text(used, 0, text, s) + gap
	}
	end := a.W() - 1
	for _, p := range right {
		start := end - grid.Width(p.text)
		if start < used {
			return
		}
		a.Text(start, 0, p.text, p.style)
		end = start - 2
	}
}

// rejected returns how many requests workers refused because they could never fit.
func (m *Model) rejected() piece {
	var n uint64
	for _, w := range m.workers {
		n += w.totals.Rejected
	}
	if n == 0 {
		return piece{}
	}
	return piece{number(n) + " rejected", theme.InkEvicted}
}

// slip returns how far the workers have fallen behind the clock, if it is worth telling; more than a hundredth of the
// run stands out.
func (m *Model) slip() piece {
	var worst float64
	for _, w := range m.workers {
		worst = max(worst, w.slip.Seconds()*1000)
	}
	switch {
	case worst < 1:
		return piece{}
	case worst > float64(m.clock)/100:
		return piece{"slip " + span(worst), theme.InkEvicted}
	}
	return piece{"slip " + span(worst), theme.Dim}
}

// connection returns what the header says of the connections, the most important first.
func (m *Model) connection(roomy bool) []piece {
	planes, subscribers := m.status.Planes, plural(m.status.Subscribers, "subscriber")
	if planes == "" {
		return nil
	}
	if !roomy {
		planes, subscribers = compactPlanes(planes), plural(m.status.Subscribers, "sub")
	}
	pieces := []piece{{subscribers, theme.Plain}, {planes, theme.Dim}}
	if m.status.Dropped > 0 {
		pieces = append([]piece{{number(m.status.Dropped) + " dropped", theme.InkEvicted}}, pieces...)
	}
	return pieces
}

// compactPlanes writes "a > b" as "a>b".
func compactPlanes(s string) string {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if r != ' ' {
			out = append(out, r)
		}
	}
	return string(out)
}

// tabText returns the text of the i-th tab.
func (m *Model) tabText(i int) string {
	t := m.tabs[i]
	name := tabInfo[t].name
	if m.layout.w < roomyWidth {
		name = tabInfo[t].short
	}
	if t == m.tab {
		return fmt.Sprintf("[%d %s]", i+1, name)
	}
	return fmt.Sprintf(" %d %s ", i+1, name)
}

func (m *Model) drawTabs(a grid.Area) {
	x := 1
	for i, t := range m.tabs {
		s := theme.Plain
		if t == m.tab {
			s = theme.Selected
		}
		x = a.Text(x, 0, m.tabText(i), s)
	}
}

// tabAt returns the index of the tab at a column, -1 if there is none.
func (m *Model) tabAt(x int) int {
	end := 1
	for i := range m.tabs {
		start := end
		end += grid.Width(m.tabText(i))
		if x >= start && x < end {
			return i
		}
	}
	return -1
}

func (m *Model) drawFooter(a grid.Area) {
	switch {
	case m.drain.active:
		a.Text(1, 0, m.drainText(), theme.Bold)
		a.Right(a.W()-1, 0, "q quit at once", theme.Plain)
		return
	case m.filter.editing:
		x := a.Text(1, 0, "/"+grid.Clean(m.filter.input.Value()), theme.Bold)
		a.Set(x, 0, '_', theme.Cursor)
		a.Right(a.W()-1, 0, "enter keep  esc clear", theme.Dim)
		return
	case m.knobs.typing:
		a.Text(1, 0, "enter apply  esc leave as it was", theme.Dim)
		return
	case m.notice.text != "":
		a.Text(1, 0, m.notice.text, theme.Bold)
		return
	}
	x := 1
	for _, b := range fitting(m.hints(), a.W()-1) {
		x = a.Text(x, 0, b.Name(), theme.Bold) + 1
		x = a.Text(x, 0, b.Short, theme.Plain) + 2
	}
}

// fitting leaves out hints until the rest fits a width: first what is useful in any panel, then the last ones, but not how
// to get help and out.
func fitting(list []keys.Binding, width int) []keys.Binding {
	for {
		used := 0
		for _, b := range list {
			used += grid.Width(b.Name()) + grid.Width(b.Short) + 3
		}
		i := len(list) - 3
		if used <= width+2 || i < 0 {
			return list
		}
		for k, b := range list {
			if b.Action == keys.Export || b.Action == keys.Save || b.Action == keys.Baseline {
				i = k
			}
		}
		list = slices.Delete(list, i, i+1)
	}
}

// hints returns the keys for the line at the bottom.
func (m *Model) hints() []keys.Binding {
	var list []keys.Binding
	if m.player != nil {
		list = append(list, keys.Tape...)
		list = slices.DeleteFunc(list, func(b keys.Binding) bool { return b.Short == "" })
	}
	for _, b := range keys.Table {
		idle := b.Action == keys.CancelHead && len(m.alarms()) == 0 || b.Action == keys.SecondPolicy && m.o.Sides == nil ||
			b.Action == keys.Save && m.player != nil ||
			m.blocks.prefixes.open && (b.Action == keys.Enter || b.Action == keys.Lens)
		if b.Short != "" && b.Where&tabInfo[m.tab].where != 0 && !(b.Changes && m.o.ReadOnly) && !idle {
			list = append(list, b)
		}
	}
	return list
}

func (m *Model) drainText() string {
	d := m.drain.left
	switch {
	case d == nil:
		return "draining"
	case d.Tokens > 0:
		return fmt.Sprintf("draining %s, %s left", plural(d.Streams, "stream"), plural(d.Tokens, "token"))
	}
	return "draining " + plural(d.Streams, "stream")
}
