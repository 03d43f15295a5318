package ui

import (
	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/theme"
)

// helpPanel is the list of keys, made from the key table.
type helpPanel struct {
	open  bool
	first int
}

// key handles keys while the help is open and reports whether that was all.
func (h *helpPanel) key(m *Model, a keys.Action) bool {
	switch a {
	case keys.Up:
		h.first--
	case keys.Down:
		h.first++
	case keys.PageUp:
		h.first -= 10
	case keys.PageDown:
		h.first += 10
	case keys.Home:
		h.first = 0
	case keys.End:
		h.first = 1 << 20
	case keys.Help, keys.Back, keys.Enter:
		h.open = false
	default:
		return false
	}
	return true
}

func (h *helpPanel) draw(m *Model) {
	const names = 23 // columns
	width := min(m.layout.w, 84)
	body := m.layout.rect[boxBody]
	sections := m.keySections()
	lines := theme.States + 3 + len(headerWords) + 2
	for _, s := range sections {
		lines += 2 + len(s.keys)
	}
	height := min(lines+2, body.H)
	r := grid.Rect{X: (m.layout.w - width) / 2, Y: body.Y + (body.H-height)/2, W: width, H: height}
	a := m.grid.Area().Sub(r)
	a.Fill(' ', theme.Plain)
	title := "keys (? closes"
	if lines > height-2 {
		title += ", up and down scroll"
	}
	inside := m.frameIn(a, title+")").Inset(1, 0)
	h.first = min(max(h.first, 0), max(lines-inside.H(), 0))
	y := -h.first
	for _, s := range sections {
		inside.Text(0, y, s.title, theme.Heading)
		for i, b := range s.keys {
			inside.Text(1, y+1+i, b.Names(), theme.Bold)
			inside.Text(names, y+1+i, b.Long, theme.Plain)
		}
		y += 2 + len(s.keys)
	}
	inside.Text(0, y, "blocks on the map", theme.Heading)
	for i, s := range theme.LegendOrder {
		inside.Set(0, y+1+i, theme.Letters[s], theme.Cell(s))
		inside.Text(2, y+1+i, theme.Names[s], theme.Bold)
		inside.Text(names, y+1+i, meanings[s], theme.Plain)
	}
	y += theme.States + 2
	inside.Text(0, y, "in the header and below charts", theme.Heading)
	for i, w := range headerWords {
		inside.Text(1, y+1+i, w[0], theme.Bold)
		inside.Text(names, y+1+i, w[1], theme.Plain)
	}
	inside.Text(0, y+len(headerWords)+2, "Mouse: click a tab, worker, cell or pass; wheel moves; shift selects text.", theme.Dim)
}

// section is the keys of one panel, or those of most.
type section struct {
	title string
	keys  []keys.Binding
}

// keySections lists the keys: first those of the panel that is shown, then the common ones, then those of the other
// panels.
func (m *Model) keySections() []section {
	list := []section{{title: "in every panel", keys: keys.In(0)}}
	for _, t := range m.tabs {
		own := section{title: "in " + tabInfo[t].name, keys: keys.In(tabInfo[t].where)}
		switch {
		case len(own.keys) == 0:
		case t == m.tab:
			list = append([]section{own}, list...)
		default:
			list = append(list, own)
		}
	}
	if m.player != nil {
		list = append([]section{{title: "in a recording", keys: keys.Tape}}, list...)
	}
	return list
}

// headerWords explain what the header and the time axes show beside figures.
var headerWords = [][2]string{
	{"slip 387ms", "this machine is too slow: passes of a worker ended"},
	{"", "late by so much in all, and latencies grow by it;"},
	{"", "fewer workers or a lower rate bring it to a stop"},
	{"12 rejected", "requests that are too large for a worker's pool or"},
	{"", "for its longest context"},
	{"x4.0", "simulated time runs four times as fast"},
	{"k, b", "a setting was changed, a baseline was set"},
}

// meanings explain the states of blocks.
var meanings = [theme.States]string{
	"never used, or cleared", "used by one sequence", "used by more than one sequence", "not in use, contents kept",
	"not in use, contents kept, host tier has a copy", "lost its contents in the last second",
}
