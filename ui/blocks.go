package ui

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine"
	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// blockInfo is what is known of the block under the cursor.
type blockInfo struct {
	engine.BlockInfo
	known bool
}

// blocksPanel is the map of a block pool.
type blocksPanel struct {
	cursor int  // block
	zoom   bool // one block a cell
	first  int  // first row of cells shown when zoomed
	lens   int  // 0: all states, else 1 + index in the legend's order
	info   blockInfo

	prefixes prefixes // shown in place of the map if open
}

// mapView is how the blocks of a pool are laid over the cells of an area.
type mapView struct {
	w, h  int // cells
	per   int // blocks a cell
	wide  int // columns a cell: more than one for a pool that would leave most of the area empty
	first int // block in the upper left cell
}

// maxWide bounds the columns of a cell: wider ones no longer look like one block.
const maxWide = 8

// view computes the map for an area of w x h characters.
func (p *blocksPanel) view(m *Model, w, h int) mapView {
	if p.zoom {
		return mapView{w: w, h: h, per: 1, wide: 1, first: p.first * w}
	}
	return fullView(len(m.pool.states), w, h)
}

// fullView shows all of n blocks.
func fullView(n, w, h int) mapView {
	v := mapView{w: w, h: h, per: widget.PerCell(n, w*h), wide: 1}
	for n > 0 && v.wide < maxWide && w/(v.wide+1)*h >= n {
		v.wide++
	}
	v.w = w / v.wide
	return v
}

// scale says in words what a cell stands for.
func (v mapView) scale() string {
	if v.wide > 1 {
		return "1 block = " + plural(v.wide, "cell")
	}
	return "1 cell = " + plural(v.per, "block")
}

// mapArea returns the cells of the map in the KV blocks panel.
func (p *blocksPanel) mapArea(m *Model) grid.Area {
	return m.area(boxMap).Inset(1, 1).Sub(grid.Rect{X: 0, Y: 0, W: m.layout.rect[boxMap].W - 2, H: m.layout.rect[boxMap].H - 3})
}

// clamp keeps the cursor on a block that exists and in sight.
func (p *blocksPanel) clamp(m *Model) {
	n := len(m.pool.states)
	p.cursor = min(max(p.cursor, 0), max(n-1, 0))
	if m.tab != tabBlocks || p.prefixes.open || m.layout.tooSmall() {
		return
	}
	a := p.mapArea(m)
	if w := a.W(); p.zoom && w > 0 {
		rows := (n + w - 1) / w
		p.first = widget.Window(p.first, p.cursor/w, a.H(), rows)
	}
}

func (p *blocksPanel) key(m *Model, a keys.Action) tea.Cmd {
	switch {
	case a == keys.Tree, a == keys.Back && p.prefixes.open:
		return p.prefixes.toggle(m)
	case p.prefixes.open:
		p.prefixes.key(m, a)
		return nil
	}
	area := p.mapArea(m)
	v := p.view(m, area.W(), area.H())
	line := v.per * v.w
	switch a {
	case keys.Left:
		p.cursor -= v.per
	case keys.Right:
		p.cursor += v.per
	case keys.Up:
		p.cursor -= line
	case keys.Down:
		p.cursor += line
	case keys.PageUp:
		p.cursor -= line * max(v.h/2, 1)
	case keys.PageDown:
		p.cursor += line * max(v.h/2, 1)
	case keys.Home:
		p.cursor = 0
	case keys.End:
		p.cursor = math.MaxInt / 2
	case keys.Enter:
		p.zoom = !p.zoom
	case keys.Back:
		p.zoom, p.lens = false, 0
	case keys.Lens:
		p.lens = (p.lens + 1) % (theme.States + 1)
	default:
		return nil
	}
	p.clamp(m)
	return m.askBlock()
}

// blockMsg is what is known of a block.
type blockMsg struct{ blockInfo }

// askBlock fetches what is known of the block under the cursor.
func (m *Model) askBlock() tea.Cmd {
	if m.sel == nil || !m.pool.taken || len(m.pool.states) == 0 {
		return nil
	}
	w, rank, n := m.sel.Worker, m.rank, int32(m.blocks.cursor)
	return beside("screen block", func() tea.Msg {
		info, err := w.Block(rank, n)
		return blockMsg{blockInfo{info, err == nil}}
	})
}

// drawCells draws the map into a, with the cursor if it is shown.
func (p *blocksPanel) drawCells(m *Model, a grid.Area, v mapView, cursor bool) {
	states := m.pool.states
	if p.lens > 0 && theme.LegendOrder[p.lens-1] != widget.Evicted {
		states = m.pool.Blocks // who holds them now
	}
	for y := range v.h {
		for x := range v.w {
			start := v.first + (y*v.w+x)*v.per
			if start >= len(states) {
				return
			}
			end := min(start+v.per, len(states))
			letter, style := p.cell(states[start:end])
			if cursor && p.cursor >= start && p.cursor < end {
				style = theme.Cursor
			}
			for i := range v.wide {
				a.Set(x*v.wide+i, y, letter, style)
			}
		}
	}
}

// cell returns how the blocks of one cell are drawn.
func (p *blocksPanel) cell(blocks []engine.BlockState) (rune, grid.Style) {
	if p.lens > 0 {
		state := theme.LegendOrder[p.lens-1]
		n := widget.Tenths(blocks, state)
		if n == 0 {
			return '0', theme.CellFree
		}
		return '0' + rune(n), theme.Cell(state)
	}
	s := widget.Aggregate(blocks)
	return theme.Letters[s], theme.Cell(s)
}

// drawLegend lists the states with their counts: as they fit all of them, those that there are, or those by short names.
func (m *Model) drawLegend(a grid.Area, lens int) {
	forms := []struct {
		names *[theme.States]string
		gap   string
		all   bool
	}{{&theme.Names, "  ", true}, {&theme.Names, " ", true}, {&theme.Names, " ", false}, {&theme.ShortNames, " ", false}}
	for i, f := range forms {
		var parts []string
		var order []int // of the parts, in the legend
		for k, s := range theme.LegendOrder {
			if n := m.pool.counts[s]; f.all || n > 0 || lens == k+1 {
				parts, order = append(parts, fmt.Sprintf("%c %s %d", theme.Letters[s], f.names[s], n)), append(order, k)
			}
		}
		if len(strings.Join(parts, f.gap))+1 > a.W() && i < len(forms)-1 {
			continue
		}
		x := 1
		for i, k := range order {
			s, style := theme.LegendOrder[k], theme.Plain
			if lens == k+1 {
				style = theme.Selected
			}
			a.Set(x, 0, theme.Letters[s], theme.Cell(s))
			x = a.Text(x+1, 0, parts[i][1:], style) + len(f.gap)
		}
		return
	}
}

// drawSmall draws the map of the overview.
func (p *blocksPanel) drawSmall(m *Model) {
	box := m.layout.rect[boxMap]
	w, h := box.W-2, box.H-3
	v := fullView(len(m.pool.states), w, h)
	a := m.boxed(boxMap, fmt.Sprintf("KV blocks of %s, %s", m.selName(), v.scale()))
	if m.empty(a) {
		return
	}
	all := blocksPanel{}
	all.drawCells(m, a, v, false)
	m.drawLegend(a.Rows(a.H()-1, 1), 0)
}

// empty says so if there is no map to draw.
func (m *Model) empty(a grid.Area) bool {
	switch {
	case m.sel == nil:
		a.Text(1, 0, "no workers", theme.Dim)
	case !m.pool.taken:
		a.Text(1, 0, "waiting for "+m.sel.name, theme.Dim)
	default:
		return false
	}
	return true
}

func (p *blocksPanel) draw(m *Model) {
	if p.prefixes.open {
		p.prefixes.draw(m)
		return
	}
	cells := p.mapArea(m)
	v := p.view(m, cells.W(), cells.H())
	title := fmt.Sprintf("KV blocks of %s: %s, %s", m.selName(), plural(len(m.pool.states), "block"), v.scale())
	if p.zoom && m.pool.taken {
		last := min(v.first+v.w*v.h, len(m.pool.states))
		title += fmt.Sprintf(", %s-%s", number(v.first), number(max(last-1, 0)))
	}
	if p.lens > 0 {
		title += ", tenths " + theme.Names[theme.LegendOrder[p.lens-1]]
	}
	a := m.boxed(boxMap, title)
	if !m.empty(a) {
		p.drawCells(m, cells, v, true)
		m.drawLegend(a.Rows(a.H()-1, 1), p.lens)
	}
	if m.layout.roomy {
		p.drawCursorBox(m, v)
		return
	}
	p.drawCursorLines(m, v)
}

// cellText names the cell under the cursor.
func (p *blocksPanel) cellText(v mapView, n int) string {
	if v.per == 1 {
		return number(p.cursor)
	}
	start := v.first + (p.cursor-v.first)/v.per*v.per
	return number(start) + "-" + number(min(start+v.per, n)-1)
}

func (p *blocksPanel) age(m *Model) string {
	return span(m.since(p.info.Since))
}

func (p *blocksPanel) owners(limit int) string {
	var names []string
	for i, r := range p.info.Requests {
		if i == limit {
			names = append(names, fmt.Sprintf("+%d", len(p.info.Requests)-limit))
			break
		}
		names = append(names, grid.Clean(r.Label))
	}
	return strings.Join(names, " ")
}

// parent returns the text of the block before in the sequence.
func (p *blocksPanel) parent() string {
	if !p.info.HasParent {
		return "none"
	}
	return hash(p.info.Parent)
}

func (p *blocksPanel) drawCursorBox(m *Model, v mapView) {
	a := m.boxed(boxCursor, "cursor").Inset(1, 0)
	if !m.pool.taken || len(m.pool.states) == 0 || !p.info.known {
		return
	}
	b := &p.info
	lines := [][2]string{
		{"block", number(p.cursor)}, {"cell", p.cellText(v, len(m.pool.states))}, {"state", theme.Names[b.State]},
		{"age", p.age(m)},
	}
	if b.Hash != 0 {
		lines = append(lines, [2]string{"hash", hash(b.Hash)}, [2]string{"parent", p.parent()},
			[2]string{"index", strconv.Itoa(b.Position)}, [2]string{"refs", strconv.Itoa(b.References)}, [2]string{"hits", number(b.Hits)})
	} else {
		lines = append(lines, [2]string{"refs", strconv.Itoa(b.References)})
	}
	y := 0
	for _, l := range lines {
		a.Text(0, y, l[0], theme.Dim)
		a.Text(7, y, l[1], theme.Plain)
		y++
	}
	if len(b.Requests) == 0 {
		return
	}
	a.Text(0, y, "used by", theme.Dim)
	for i, r := range b.Requests {
		if y+1+i >= a.H()-1 && i < len(b.Requests)-1 {
			a.Text(1, y+1+i, fmt.Sprintf("and %d more", len(b.Requests)-i), theme.Dim)
			return
		}
		a.Text(1, y+1+i, grid.Cut(grid.Clean(r.Label), a.W()-1), theme.Plain)
	}
}

func (p *blocksPanel) drawCursorLines(m *Model, v mapView) {
	a := m.area(boxCursor)
	if !m.pool.taken || len(m.pool.states) == 0 || !p.info.known {
		return
	}
	b := &p.info
	text := fmt.Sprintf("%s  %s", p.cellText(v, len(m.pool.states)), theme.Names[b.State])
	if b.Hash != 0 {
		text += fmt.Sprintf("  %016x", b.Hash)
		if b.HasParent {
			text += fmt.Sprintf(" < %016x", b.Parent)
		}
	}
	a.Text(1, 0, text, theme.Plain)
	text = fmt.Sprintf("refs %d  hits %s  age %s", b.References, number(b.Hits), p.age(m))
	if o := p.owners(4); o != "" {
		text += "  used by " + o
	}
	a.Text(1, 1, text, theme.Plain)
}
