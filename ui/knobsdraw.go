package ui

import (
	"fmt"

	"mockbench/ui/grid"
	"mockbench/ui/knobs"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

var knobColumns = []widget.Column{
	{Title: "  setting", Width: 30}, {Title: "value", Width: 11, Right: true}, {Title: "unit", Width: 10},
	{Title: "default", Width: 10, Right: true}, {Title: "applies", Width: 9}, {Title: "at the start", Width: 12, Right: true},
	{Title: "", Width: 22, Weight: 1},
}

// draw draws the list and, in the last lines, what there is to say of the selected setting.
func (p *knobsPanel) draw(m *Model) {
	title := "settings of all workers: * changed, ~ waits for a restart (R)"
	if p.turns > 0 {
		title = "workers restart when what runs has ended (R cancels it)"
	}
	a := m.boxed(boxTable, title).Inset(1, 0)
	if len(p.list) == 0 {
		a.Text(0, 0, "no workers", theme.Dim)
		return
	}
	t := widget.Table{Columns: widget.Fit(knobColumns, a.W()), Heading: theme.Heading}
	t.Head(a)
	rows := a.Rows(1, max(a.H()-3, 0))
	p.first = widget.Window(p.first, p.line(p.row), rows.H(), p.line(len(p.list)-1)+1)
	if p.row == 0 {
		p.first = 0
	}
	defaults := p.shown.Defaults()
	for i, k := range p.list {
		y := p.line(i) - p.first
		if i == 0 || k.Group != p.list[i-1].Group {
			if y >= 1 && y <= rows.H() {
				rows.Text(0, y-1, string(k.Group), theme.Heading)
			}
		}
		if y >= 0 && y < rows.H() {
			p.drawKnob(rows, y, t, k, defaults, i == p.row)
		}
	}
	p.drawDetail(a.Rows(a.H()-2, 2))
}

func (p *knobsPanel) drawKnob(a grid.Area, y int, t widget.Table, k *knobs.Knob, defaults knobs.Setup, selected bool) {
	style, mark := theme.Plain, []byte("  ")
	if p.changed(k) {
		style, mark[1] = theme.Bold, '*'
	}
	_, waits := p.edits[k]
	if waits {
		mark[1] = '~'
	}
	if selected {
		style, mark[0] = theme.Selected, '>'
	}
	note := ""
	if waits {
		note = "in force: " + k.Text(p.shown)
	}
	text, unit := grid.Clean(p.text(k)), k.Unit
	if text == "" || text[0] < '0' || text[0] > '9' {
		unit = "" // of a word
	}
	t.Row(a, y, style, string(mark)+k.Name, text, unit, k.Text(defaults), k.When.String(), k.Text(p.start), note)
	if selected && p.typing {
		x := t.Columns[0].Width + 1
		field := a.Sub(grid.Rect{X: x, Y: y, W: t.Columns[1].Width + 1 + t.Columns[2].Width, H: 1})
		field.Fill(' ', theme.Plain)
		value, cursor := []rune(grid.Clean(p.input.Value())), p.input.Position()
		from := max(0, cursor-field.W()+2)
		end := field.Text(0, 0, string(value[min(from, len(value)):]), theme.Bold)
		if cursor-from < end {
			field.Restyle(cursor-from, 0, theme.Cursor)
		} else {
			field.Set(cursor-from, 0, '_', theme.Cursor)
		}
	}
}

// drawDetail says of the selected setting what the table has no room for.
func (p *knobsPanel) drawDetail(a grid.Area) {
	k := p.selected()
	text := fmt.Sprintf("%s: %s at the start", k.Setting, k.Text(p.start))
	if _, waits := p.edits[k]; waits {
		text = fmt.Sprintf("%s: %s in force, %s after a restart (R), %s at the start", k.Name, k.Text(p.shown), grid.Clean(p.text(k)), k.Text(p.start))
	}
	a.Text(0, 0, grid.Cut(k.Note(), a.W()), theme.Plain)
	a.Text(0, 1, grid.Cut(text, a.W()), theme.Dim)
}
