package ui

import (
	"fmt"
	"sort"
	"strings"

	"mockbench/kv"
	"mockbench/ui/feed"
	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// eventRow is one KV event of one worker.
type eventRow struct {
	worker string
	feed.Event
}

// eventsPanel is the stream of KV events of all workers.
type eventsPanel struct {
	follow bool
	rows   []eventRow // newest first, brought up to date twice a second
	back   int        // first row shown
	counts feed.Totals
	perSec float64
}

func (p *eventsPanel) key(m *Model, a keys.Action) {
	page := max(m.layout.rect[boxList].H-4, 1)
	switch a {
	case keys.Freeze:
		p.follow = !p.follow
	case keys.Up:
		p.back--
	case keys.Down:
		p.back++
	case keys.PageUp:
		p.back -= page
	case keys.PageDown:
		p.back += page
	case keys.Home, keys.Back:
		p.back = 0
	case keys.End:
		p.back = len(p.rows)
	default:
		return
	}
	p.back = min(max(p.back, 0), max(len(p.rows)-1, 0))
	if p.back > 0 {
		p.follow = false // a list that moves cannot be read
	}
}

// refresh takes over the newest events unless the list is frozen.
func (p *eventsPanel) refresh(m *Model) {
	var sum feed.Totals
	for _, w := range m.workers {
		sum.Events += w.totals.Events
		sum.Stored += w.totals.Stored
		sum.Removed += w.totals.Removed
	}
	if sum.Events == p.counts.Events && len(p.rows) > 0 {
		p.perSec = 0
		return
	}
	p.perSec = float64(sum.Events-p.counts.Events) * tablesPerSecond
	p.counts = sum
	if p.follow && m.tab == tabEvents {
		p.collect(m)
	}
}

func (p *eventsPanel) collect(m *Model) {
	p.rows = p.rows[:0]
	for _, w := range m.workers {
		for i := range w.events.len() {
			e := w.events.last(i)
			p.rows = append(p.rows, eventRow{w.rankName(e.Rank), *e})
		}
	}
	sort.SliceStable(p.rows, func(i, j int) bool { return p.rows[i].At > p.rows[j].At })
	m.dirty = true
}

var eventColumns = []widget.Column{
	{Title: "time", Width: 10, Right: true}, {Title: "worker", Width: 8},
	{Title: "seq", Width: 9, Right: true}, {Title: "kind", Width: 7}, {Title: "blocks", Width: 6, Right: true},
	{Title: "first block", Width: 16}, {Title: "index", Width: 6, Right: true}, {Title: "tier", Width: 6}, {Title: "parent", Width: 16},
}

func (p *eventsPanel) draw(m *Model) {
	title := fmt.Sprintf("KV events: %s, %s blocks stored, %s removed, %s/s", number(p.counts.Events),
		number(p.counts.Stored), number(p.counts.Removed), whole(p.perSec))
	if !p.follow {
		title += ", frozen"
	}
	a := m.boxed(boxList, title).Inset(1, 0)
	t := widget.Table{Columns: widget.Fit(eventColumns, a.W()), Heading: theme.Heading}
	t.Head(a)
	y, skip := 1, p.back
	for i := range p.rows {
		if y >= a.H() {
			break
		}
		r := &p.rows[i]
		cells := r.cells()
		if m.filter.input.Value() != "" && !m.filter.matches(fmt.Sprint(cells)) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		style := theme.InkCached
		if r.Kind == kv.Removed {
			style = theme.InkEvicted
		}
		t.Row(a, y, style, cells...)
		y++
	}
	if y == 1 {
		a.Text(0, 1, m.noEvents(), theme.Dim)
	}
	m.drawConnections()
}

// noEvents says why the list is empty.
func (m *Model) noEvents() string {
	switch {
	case m.filter.input.Value() != "":
		return fmt.Sprintf("no event contains %q", grid.Clean(m.filter.input.Value()))
	case m.sel != nil && !m.sel.Worker.Config().EmitKVEvents:
		return "KV events are off for this run"
	}
	return "no event yet"
}

func (r *eventRow) cells() []string {
	kind, tier, parent, index := "stored", "device", nothing, nothing
	if r.Kind == kv.Removed {
		kind = "removed"
	}
	if r.Tier == kv.HostPinned {
		tier = "host"
	}
	if r.HasParent {
		parent = fmt.Sprintf("%016x", r.Parent)
	}
	if r.Position >= 0 && r.Kind == kv.Stored {
		index = number(r.Position)
	}
	return []string{decimals(float64(r.At)/1000, 3), r.worker, number(r.ID), kind, number(r.Count),
		fmt.Sprintf("%016x", r.First), index, tier, parent}
}

// drawConnections draws the lower part of the Events panel: who listens, and the log.
func (m *Model) drawConnections() {
	a := m.boxed(boxLog, "subscribers and log").Inset(1, 0)
	y := 0
	switch {
	case m.o.Status == nil || m.status.Planes == "":
		a.Text(0, 0, "no event plane: only this process reads the events", theme.Dim)
	default:
		text := fmt.Sprintf("%s  %s, %s sent, %s dropped", m.status.Planes, plural(m.status.Subscribers, "subscriber"),
			plural(m.status.Published, "message"), number(m.status.Dropped))
		a.Text(0, 0, text, theme.Plain)
		if m.status.LastError != "" {
			y++
			a.Text(0, y, "last error: "+m.status.LastError, theme.InkEvicted)
		}
	}
	y++
	room := max(a.H()-y, 0)
	lines := m.log[max(len(m.log)-room, 0):]
	for i, l := range lines {
		a.Text(0, y+i, grid.Cut(shortLine(l), a.W()), theme.Dim)
	}
}

// shortLine leaves out what the screen has no room for: the date of a line of the log, and parts of a second.
func shortLine(line string) string {
	const date, seconds, stamp = len("2006-01-02T"), len("2006-01-02T15:04:05"), len("2006-01-02T15:04:05.000000Z")
	if len(line) > stamp && line[date-1] == 'T' && line[stamp-1] == 'Z' {
		return line[date:seconds] + strings.Replace(line[stamp:], "mockbench::", "", 1)
	}
	return line
}
