package ui

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine"
	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// treeRows bounds the rows of the prefix tree.
const treeRows = 512

// prefixes is the second view of the KV blocks panel: the prefix cache as a tree, the widest prefixes first.
type prefixes struct {
	open   bool
	row    int // first row shown
	tree   engine.PrefixTree
	known  bool // tree is that of the selected rank
	none   bool // its engine keeps none
	asking bool
	stale  bool // something has happened since the tree was fetched
}

// treeMsg is the tree of a rank.
type treeMsg struct {
	worker *worker
	rank   int
	tree   engine.PrefixTree
	ok     bool
	err    error
}

// askTree fetches the tree if it is shown and may have changed, one at a time.
func (m *Model) askTree() tea.Cmd {
	p := &m.blocks.prefixes
	if !p.open || m.tab != tabBlocks || m.sel == nil || p.asking || p.known && !p.stale {
		return nil
	}
	p.asking, p.stale = true, false
	w, rank := m.sel, m.rank
	return beside("screen prefix tree", func() tea.Msg {
		t, ok, err := w.Worker.Tree(rank, treeRows)
		return treeMsg{w, rank, t, ok, err}
	})
}

func (m *Model) treeTaken(msg treeMsg) tea.Cmd {
	p := &m.blocks.prefixes
	p.asking = false
	if msg.worker != m.sel || msg.rank != m.rank {
		return m.askTree()
	}
	if msg.err == nil {
		p.tree, p.none, p.known, m.dirty = msg.tree, !msg.ok, true, true
	}
	return nil
}

// toggle opens or closes the view.
func (p *prefixes) toggle(m *Model) tea.Cmd {
	p.open, p.row, p.known = !p.open, 0, false
	m.relayout()
	return m.askTree()
}

func (p *prefixes) key(m *Model, a keys.Action) { p.row = scrolled(m, p.row, a) }

var treeColumns = []widget.Column{
	{Title: "prefix, hash of its last block", Width: 30, Weight: 1}, {Title: "from token", Width: 10, Right: true},
	{Title: "blocks", Width: 7, Right: true}, {Title: "below", Width: 7, Right: true}, {Title: "used by", Width: 9, Right: true},
	{Title: "", Width: 8, Weight: 4},
}

// maxIndent bounds how far a deep node is moved to the right, in levels.
const maxIndent = 5

func (p *prefixes) draw(m *Model) {
	name := "prefix tree"
	if m.sglang() {
		name = "radix tree"
	}
	title := fmt.Sprintf("%s of %s", name, m.selName())
	if p.known && !p.none {
		title += fmt.Sprintf(": %s in %s", plural(p.tree.Blocks, "block"), plural(p.tree.All, "node"))
	}
	box := m.area(boxTable)
	visible := max(box.H()-3, 0)
	p.row = min(p.row, max(len(p.tree.Nodes)-visible, 0))
	if shown := len(p.tree.Nodes); p.known && shown > visible {
		title += fmt.Sprintf(", %d-%d, widest first", p.row+1, min(p.row+visible, shown))
	}
	a := m.frameIn(box, title).Inset(1, 0)
	switch {
	case m.sel == nil:
		a.Text(0, 0, "no workers", theme.Dim)
		return
	case !p.known:
		a.Text(0, 0, "waiting for "+m.sel.name, theme.Dim)
		return
	case p.none:
		a.Text(0, 0, "this engine has no prefix tree", theme.Dim)
		return
	}
	t := widget.Table{Columns: widget.Fit(treeColumns, a.W()), Heading: theme.Heading}
	t.Head(a)
	if len(p.tree.Nodes) == 0 {
		a.Text(0, 1, "nothing is cached", theme.Dim)
	}
	for y := range min(visible, len(p.tree.Nodes)-p.row) {
		p.drawNode(m, a, t, y+1, &p.tree.Nodes[p.row+y])
	}
}

func (p *prefixes) drawNode(m *Model, a grid.Area, t widget.Table, y int, n *engine.TreeNode) {
	style, used := theme.Plain, plural(n.Requests, "req")
	if n.Requests == 0 {
		style, used = theme.Dim, "evictable"
	}
	t.Row(a, y, style, nodeName(n), number(n.Start*m.sel.config.BlockSize), number(n.Blocks), number(n.Below), used)
	if len(t.Columns) < len(treeColumns) || p.tree.Blocks == 0 {
		return
	}
	w := t.Columns[len(t.Columns)-1].Width
	state := engine.BlockCached
	switch {
	case n.Requests > 1:
		state = engine.BlockShared
	case n.Requests == 1:
		state = engine.BlockActive
	}
	for x := range widget.Portion(float64(n.Below)/float64(p.tree.Blocks), w) {
		a.Set(a.W()-w+x, y, theme.Letters[state], theme.Cell(state))
	}
}

// nodeName returns the hash of a node behind lines that show how deep it is.
func nodeName(n *engine.TreeNode) string {
	name := "no complete hash"
	if n.Hash != 0 {
		name = fmt.Sprintf("%016x", n.Hash)
	}
	switch {
	case n.Depth == 0:
		return name
	case n.Depth > maxIndent:
		return strings.Repeat("  ", maxIndent-1) + fmt.Sprintf("..%d ", n.Depth) + name
	}
	return strings.Repeat("  ", n.Depth-1) + "`-" + name
}
