package ui

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine"
	"mockbench/ui/keys"
)

// Update takes one message in.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case TickMsg:
		return m, tea.Batch(m.nextTick(), m.Tick())
	case tea.WindowSizeMsg:
		return m, m.resize(msg.Width, msg.Height)
	case tea.KeyMsg:
		return m, m.keyMsg(msg)
	case tea.MouseMsg:
		return m, m.mouse(msg)
	case polledMsg:
		return m, m.polled(msg)
	case snapshotMsg:
		return m, m.snapshotTaken(msg)
	case treeMsg:
		return m, m.treeTaken(msg)
	case changedMsg:
		return m, m.changed(msg)
	case baselineMsg:
		m.frozen(msg)
	case exportedMsg:
		m.exported(msg)
	case savedMsg:
		m.saved(msg)
	case reelMsg:
		return m, m.reelRead(msg)
	case foundMsg:
		return m, m.found(msg)
	case headMsg:
		m.headCancelled(msg)
	case blockMsg:
		m.blocks.info, m.dirty = msg.blockInfo, true
	case RedrawMsg:
		return m, m.redraw()
	case SignalMsg:
		return m, m.signalled(msg)
	case drainingMsg:
		m.drain.left, m.dirty = &msg.left, true
		return m, m.watchDrain()
	case drainedMsg:
		return m, tea.Quit
	case failedMsg:
		m.drain.reason = msg.err
		return m, tea.Quit
	}
	return m, nil
}

func (m *Model) resize(w, h int) tea.Cmd {
	m.layout.w, m.layout.h = max(w, 0), max(h, 0)
	m.grid.Resize(m.layout.w, m.layout.h)
	m.full = true
	m.relayout()
	return m.look()
}

// redraw sends everything again, mouse reports included: a terminal that was lent to another program lost them.
func (m *Model) redraw() tea.Cmd {
	m.full, m.dirty = true, true
	if m.o.NoMouse {
		return nil
	}
	return tea.EnableMouseCellMotion
}

// Tick brings the screen forward by one frame: it takes over what the feeds have collected and refreshes the classes
// of figures whose turn it is.
func (m *Model) Tick() tea.Cmd {
	m.frame++
	var cmds []tea.Cmd
	changed := false
	if m.player != nil {
		var cmd tea.Cmd
		changed, cmd = m.playTick()
		cmds = append(cmds, cmd)
	}
	m.readClock()
	for _, w := range m.workers {
		changed = w.drain() || changed
		m.lives.add(w, w.batch.Marks)
	}
	m.tellStep()
	m.batch.keepPlace(m)
	m.stale = m.stale || changed
	m.blocks.prefixes.stale = m.blocks.prefixes.stale || changed
	if m.every(columnsPerSecond) && !m.paused && m.player == nil {
		for _, w := range m.workers {
			w.closeColumn(m.closedCols, m.clock)
		}
		m.closedCols++
	}
	if m.paused && changed {
		m.dirty = true // a step: show it at once
	}
	if m.arrested && !m.looking {
		m.arrested = false
		cmds = append(cmds, m.look())
	}
	if m.every(chartsPerSecond) || m.paused && changed {
		cmds = append(cmds, m.refreshCharts(changed))
	}
	if m.every(tablesPerSecond) {
		m.refreshTables()
		cmds = append(cmds, m.poll(), m.askTree())
	}
	if m.notice.text != "" && !m.notice.stays && m.frame >= m.notice.until {
		m.notice, m.dirty = notice{}, true
	}
	return tea.Batch(cmds...)
}

// readClock marks the screen dirty if what the header says of time has changed.
func (m *Model) readClock() {
	now, paused, speed := m.o.Clock.Now(), m.o.Clock.Paused(), m.o.Clock.Speed()
	if int64(now/1000) != int64(m.clock/1000) || paused != m.paused || speed != m.speed {
		m.dirty = true
	}
	if paused != m.paused {
		m.batch.back, m.arrested = 0, paused
		if !paused {
			m.release()
		}
	}
	m.clock, m.paused, m.speed = now, paused, speed
}

func (m *Model) refreshCharts(changed bool) tea.Cmd {
	if m.shownCols != m.closedCols {
		m.shownCols, m.dirty = m.closedCols, true
	}
	if m.pool.fading {
		m.pool.overlay(m.frame)
		m.dirty = true
	}
	if m.sel != nil && (changed || !m.pool.taken || m.pool.worker != m.sel) {
		return m.look()
	}
	return nil
}

func (m *Model) refreshTables() {
	for _, w := range m.workers {
		before := w.shown
		w.refresh(m.clock)
		m.dirty = m.dirty || w.shown != before
	}
	if m.overview.order != orderName {
		m.sortRows()
	}
	if m.o.Log != nil {
		var count uint64
		m.log, count = m.o.Log.Last(m.log[:0], 64)
		m.dirty = m.dirty || count != m.logCount
		m.logCount = count
	}
	m.events.refresh(m)
	m.knobs.refresh(m)
}

// snapshotMsg is a snapshot of one rank.
type snapshotMsg struct {
	worker *worker
	rank   int
	shot   engine.Snapshot
	err    error
}

// look asks the selected worker for a snapshot, one at a time.
func (m *Model) look() tea.Cmd {
	if m.looking || m.sel == nil || m.layout.tooSmall() {
		return nil
	}
	w, rank, shot := m.sel, m.rank, m.spare
	m.looking, m.spare = true, engine.Snapshot{}
	return beside("screen snapshot", func() tea.Msg {
		err := w.Worker.Inspect(rank, &shot)
		return snapshotMsg{w, rank, shot, err}
	})
}

func (m *Model) snapshotTaken(msg snapshotMsg) tea.Cmd {
	m.looking, m.spare = false, msg.shot
	if msg.worker != m.sel || msg.rank != m.rank {
		return m.look() // another worker was selected meanwhile
	}
	if msg.err != nil {
		return nil
	}
	m.pool.take(&m.spare, m.frame, uint64(m.o.FPS))
	m.past.keep(&m.pool.Snapshot)
	m.arrest()
	m.blocks.clamp(m)
	m.dirty = true
	if m.tab == tabBlocks {
		return m.askBlock()
	}
	return nil
}

// keyMsg takes a key of the terminal, which may be several typed fast, or a paste.
func (m *Model) keyMsg(k tea.KeyMsg) tea.Cmd {
	if k.Paste {
		if m.typing() {
			return m.edit(k)
		}
		return nil
	}
	if k.Type != tea.KeyRunes || len(k.Runes) < 2 || k.Alt {
		return m.key(k)
	}
	var cmds []tea.Cmd
	for _, r := range k.Runes {
		cmds = append(cmds, m.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}))
	}
	return tea.Batch(cmds...)
}

func (m *Model) key(k tea.KeyMsg) tea.Cmd {
	if m.typing() && k.Type != tea.KeyCtrlC {
		return m.edit(k)
	}
	if b, ok := keys.FindTape(k.String()); ok && m.player != nil {
		m.dirty = true
		return m.viewKey(b.Action)
	}
	b, ok := keys.Find(k.String(), tabInfo[m.tab].where)
	if !ok {
		return nil
	}
	m.dirty = true
	if m.notice.stays && b.Action != keys.Step {
		m.notice = notice{}
	}
	if b.Changes && m.o.ReadOnly {
		m.say("the screen is read-only")
		return nil
	}
	if m.help.open && m.help.key(m, b.Action) {
		return nil
	}
	return m.act(b.Action, k.String())
}

// act does what keys do in every panel and leaves the rest to the panel.
func (m *Model) act(a keys.Action, key string) tea.Cmd {
	switch a {
	case keys.Quit:
		return m.quit(ErrQuit)
	case keys.Help:
		m.help = helpPanel{open: true}
	case keys.Redraw:
		return m.redraw()
	case keys.Suspend:
		return beside("screen suspend", suspendSelf)
	case keys.Pause:
		m.pause(!m.o.Clock.Paused())
	case keys.Step:
		return m.step()
	case keys.Faster:
		m.setSpeed(m.o.Clock.Speed() * 2)
	case keys.Slower:
		m.setSpeed(m.o.Clock.Speed() / 2)
	case keys.RealSpeed:
		m.setSpeed(1)
	case keys.Panel:
		if i := int(key[0] - '1'); i < len(m.tabs) {
			return m.show(m.tabs[i])
		}
	case keys.NextPanel:
		return m.show(m.neighbour(1))
	case keys.PrevPanel:
		return m.show(m.neighbour(-1))
	case keys.NextWorker:
		return m.selectWorker(m.place() + 1)
	case keys.PrevWorker:
		return m.selectWorker(m.place() - 1)
	case keys.CancelHead:
		return m.cancelHead()
	case keys.Rank:
		return m.nextRank()
	case keys.Baseline:
		return m.freeze()
	case keys.Save:
		return m.save()
	case keys.Export:
		return m.export()
	case keys.Filter:
		m.filter.editing = true
		m.filter.input.Focus() // its command blinks a cursor that is not shown
	default:
		return m.panelKey(a)
	}
	return nil
}

func (m *Model) panelKey(a keys.Action) tea.Cmd {
	if a == keys.Back && m.filter.input.Value() != "" {
		m.filter.input.SetValue("")
		return nil
	}
	if a == keys.Back && m.batch.back > 0 {
		m.batch.back, m.batch.row = 0, 0
		return nil
	}
	switch m.tab {
	case tabOverview, tabRouting, tabLatency:
		if a == keys.SecondPolicy {
			return m.nextPolicy()
		}
		return m.overview.key(m, a)
	case tabBlocks:
		return m.blocks.key(m, a)
	case tabHost:
		m.host.key(m, a)
	case tabBatch:
		m.batch.key(m, a)
	case tabRequests:
		m.requests.key(m, a)
	case tabEvents:
		m.events.key(m, a)
	case tabKnobs:
		return m.knobs.key(m, a)
	}
	return nil
}

// typing reports whether keys go into a line of text.
func (m *Model) typing() bool { return m.filter.editing || m.knobs.typing }

// edit passes a key to the line that is edited.
func (m *Model) edit(k tea.KeyMsg) tea.Cmd {
	if m.knobs.typing {
		return m.knobs.edit(m, k)
	}
	m.dirty = true
	switch k.Type {
	case tea.KeyEnter:
		m.filter.editing = false
	case tea.KeyEsc:
		m.filter.editing = false
		m.filter.input.SetValue("")
	default:
		m.filter.input, _ = m.filter.input.Update(k)
	}
	return nil
}

func (m *Model) neighbour(step int) tab {
	n := len(m.tabs)
	i := max(slices.Index(m.tabs, m.tab), 0)
	return m.tabs[(i+step+n)%n]
}

func (m *Model) show(t tab) tea.Cmd {
	m.tab = t
	m.aimFeeds()
	m.relayout()
	m.stale = true
	switch {
	case t == tabBlocks:
		return tea.Batch(m.askBlock(), m.askTree())
	case t == tabKnobs:
		m.knobs.refresh(m)
	case t == tabEvents && m.events.follow:
		m.events.collect(m)
	case t == tabOverview, t == tabLatency, t == tabRouting:
		return m.poll()
	}
	return nil
}

// place returns the selected worker's row, -1 if there is none.
func (m *Model) place() int { return slices.Index(m.rows, m.sel) }

func (m *Model) selectWorker(i int) tea.Cmd {
	if len(m.rows) == 0 {
		return nil
	}
	next := m.rows[min(max(i, 0), len(m.rows)-1)]
	if next == m.sel {
		return nil
	}
	m.sel = next
	m.selectionChanged()
	return tea.Batch(m.look(), m.askTree())
}

func (m *Model) nextRank() tea.Cmd {
	if m.sel == nil || m.sel.Worker.Ranks() < 2 {
		m.say("the worker has one rank")
		return nil
	}
	m.rank = (m.rank + 1) % m.sel.Worker.Ranks()
	m.selectionChanged()
	return tea.Batch(m.look(), m.askTree())
}
