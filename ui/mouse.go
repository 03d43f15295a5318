package ui

import (
	tea "github.com/charmbracelet/bubbletea"

	"mockbench/ui/keys"
)

// mouse handles clicks and the wheel. Motion is ignored.
func (m *Model) mouse(e tea.MouseMsg) tea.Cmd {
	if e.Action != tea.MouseActionPress || m.layout.tooSmall() {
		return nil
	}
	switch e.Button {
	case tea.MouseButtonWheelUp:
		return m.wheel(keys.Up)
	case tea.MouseButtonWheelDown:
		return m.wheel(keys.Down)
	case tea.MouseButtonLeft:
		return m.click(e.X, e.Y)
	}
	return nil
}

func (m *Model) wheel(a keys.Action) tea.Cmd {
	m.dirty = true
	if m.help.open {
		m.help.key(m, a)
		return nil
	}
	return m.panelKey(a)
}

func (m *Model) click(x, y int) tea.Cmd {
	m.dirty = true
	if m.help.open {
		m.help.open = false
		return nil
	}
	b, cx, cy, ok := m.layout.at(x, y)
	if !ok {
		return nil
	}
	switch {
	case b == boxTabs:
		if i := m.tabAt(cx); i >= 0 {
			return m.show(m.tabs[i])
		}
	case b == boxSlider:
		return m.slide(cx)
	case b == boxWorkers && m.tab == tabOverview:
		if i := m.overview.first + cy - 2; cy >= 2 && cy < m.layout.rect[b].H-1 && i < len(m.rows) {
			return m.selectWorker(i)
		}
	case b == boxMap && m.tab == tabOverview:
		return m.show(tabBlocks)
	case b == boxMap:
		return m.blocks.click(m, cx-1, cy-1)
	case b == boxTable && m.tab == tabKnobs:
		m.knobs.typing = false
		m.knobs.click(cy)
	case b == boxTable && m.tab == tabRequests:
		m.requests.click(cy)
	case b == boxBatch:
		m.batch.click(m, cx-7)
	}
	return nil
}

// click moves the cursor to a cell of the map.
func (p *blocksPanel) click(m *Model, x, y int) tea.Cmd {
	a := p.mapArea(m)
	v := p.view(m, a.W(), a.H())
	block := v.first + (y*v.w+x/v.wide)*v.per
	if x < 0 || y < 0 || x >= v.w*v.wide || y >= v.h || block >= len(m.pool.states) {
		return nil
	}
	p.cursor = block
	return m.askBlock()
}

// click selects the pass of a column.
func (p *batchPanel) click(m *Model, x int) {
	w := m.layout.rect[boxBatch].W - 9
	if !p.byPass(m) || x < 0 || x >= w {
		return
	}
	back := w - 1 - x + p.shift(w)
	if m.lastPass(back) != nil {
		p.back = back
	}
}
