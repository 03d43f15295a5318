package ui

import (
	"fmt"
	"math"
	"strconv"

	"mockbench/engine"
	"mockbench/ui/feed"
	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// batchPanel shows what passes were made of. While time runs one column is a step of the charts; paused or scrubbing,
// one column is one pass.
type batchPanel struct {
	back int // passes back from the newest; 0 is the present
	row  int // first row of the table
}

func (p *batchPanel) key(m *Model, a keys.Action) {
	page := max(m.layout.rect[boxTable].H-4, 1)
	switch a {
	case keys.Left:
		if m.lastPass(p.back+1) != nil {
			p.back++
		}
	case keys.Right:
		p.back = max(p.back-1, 0)
	case keys.End, keys.Back:
		p.back, p.row = 0, 0
	case keys.Home:
		for m.lastPass(p.back+1) != nil {
			p.back++
		}
	case keys.Up:
		p.row = max(p.row-1, 0)
	case keys.Down:
		p.row++
	case keys.PageUp:
		p.row = max(p.row-page, 0)
	case keys.PageDown:
		p.row += page
	}
}

// keepPlace stays at the selected pass while newer ones arrive.
func (p *batchPanel) keepPlace(m *Model) {
	if p.back == 0 {
		return
	}
	for i := range m.sel.batch.Frames {
		if int(m.sel.batch.Frames[i].Rank) == m.rank {
			p.back++
		}
	}
	for p.back > 0 && m.lastPass(p.back) == nil { // it is no longer kept
		p.back--
	}
}

// byPass reports whether one column is one pass.
func (p *batchPanel) byPass(m *Model) bool { return m.paused || p.back > 0 }

func (p *batchPanel) draw(m *Model) {
	title := "batches of " + m.selName()
	if p.byPass(m) {
		title += ", one column a pass"
	} else {
		title = fmt.Sprintf("batches of %s, one column = %s s", m.selWorker(), decimals(1.0/columnsPerSecond, 1))
	}
	if m.sel != nil {
		title += ", budget " + budgetText(m.sel.Worker.Config().MaxNumBatchedTokens)
	}
	a := m.boxed(boxBatch, title)
	chart := a.Sub(grid.Rect{X: 6, Y: 0, W: a.W() - 7, H: a.H() - 1})
	var scale float64
	if p.byPass(m) {
		scale = p.drawPasses(m, chart)
	} else {
		scale = drawColumns(chart, m.timeColumns(chart.W()))
		box := m.area(boxBatch)
		m.drawMarks(box, 7+chart.W()-1)
		if text := m.lastMark(chart.W()); grid.Width(title)+grid.Width(text)+8 < box.W() {
			box.Right(box.W()-2, 0, text, theme.Dim)
		}
	}
	a.Right(5, 0, scaleText(scale), theme.Dim)
	a.Right(5, a.H()-2, "0", theme.Dim)
	drawBatchLegend(a.Rows(a.H()-1, 1), 7, [4]string{"new", "cached", "decode (min. 1 row)", m.lost().noun})
	p.drawTable(m)
}

func budgetText(n uint64) string {
	if n >= engine.Unlimited {
		return "unlimited"
	}
	return number(n)
}

// drawPasses draws one column a pass and marks the selected one. It returns the scale, as drawColumns does.
func (p *batchPanel) drawPasses(m *Model, a grid.Area) float64 {
	shift := p.shift(a.W())
	var columns []chartColumn
	for i := range a.W() {
		f := m.lastPass(i + shift)
		if f == nil {
			break
		}
		c := chartColumn{decode: int(f.Decode), cached: int(f.Cached), fresh: int(f.New), preempted: f.Preempted > 0}
		if f.Budget < engine.Unlimited {
			c.budget = float64(f.Budget)
		}
		columns = append(columns, c)
	}
	scale := drawColumns(a, columns)
	if x := a.W() - 1 - (p.back - shift); len(columns) > 0 {
		for y := range a.H() {
			a.Restyle(x, y, theme.Cursor)
		}
	}
	return scale
}

// shift returns how many passes lie to the right of a chart of that width: it keeps the selected pass in sight.
func (p *batchPanel) shift(width int) int { return max(p.back-width*3/4, 0) }

var runColumns = []widget.Column{
	{Title: "id", Width: 12, Weight: 1}, {Title: "phase", Width: 9}, {Title: "tokens", Width: 13, Right: true},
	{Title: "cached", Width: 7, Right: true}, {Title: "blocks", Width: 6, Right: true}, {Title: "age", Width: 7, Right: true},
	{Title: "progress", Width: 10, Weight: 2},
}

var passColumns = []widget.Column{
	{Title: "id", Width: 12, Weight: 1}, {Title: "phase", Width: 9}, {Title: "in pass", Width: 8, Right: true},
	{Title: "done / all", Width: 15, Right: true}, {Title: "", Width: 8}, {Title: "progress", Width: 14, Weight: 2},
}

func (p *batchPanel) drawTable(m *Model) {
	f := m.lastPass(p.back)
	if p.back > 0 && f != nil {
		p.drawPass(m, f)
		return
	}
	title := "running and waiting at " + m.selName()
	if f != nil {
		title = fmt.Sprintf("pass %s of %s: %s", number(f.Number), m.selName(), m.passText(f))
	}
	title += fmt.Sprintf(", %d running, %s waiting", len(m.pool.Running), number(m.pool.Queued))
	a := m.boxed(boxTable, title).Inset(1, 0)
	if m.sglang() {
		m.drawRatio(a.Rows(0, 1))
		a = a.Rows(1, a.H()-1)
	}
	rows := m.states()
	p.row = m.drawStates(a, rows, p.row)
}

// drawRatio draws what an SGLang rank sets aside for the output of running requests, and how its pages are divided.
func (m *Model) drawRatio(a grid.Area) {
	if !m.pool.taken {
		return
	}
	r, c := &m.pool.Ratio, &m.pool.Counts
	x := a.Text(0, 0, "new-token ratio ", theme.Dim)
	x = a.Text(x, 0, decimals(r.Now, 3), theme.Bold)
	x = a.Text(x, 0, fmt.Sprintf(" (%s-%s)", decimals(r.Min, 3), decimals(r.Init, 3)), theme.Dim)
	for _, part := range []struct {
		name  string
		pages int
	}{{"active", c[engine.BlockActive] + c[engine.BlockShared]}, {"evictable", c[engine.BlockCached]}, {"free", c[engine.BlockFree]}} {
		x = a.Text(x+2, 0, part.name+" ", theme.Dim)
		x = a.Text(x, 0, strconv.Itoa(part.pages), theme.Bold)
	}
}

// states returns the requests of the snapshot, running ones first.
func (m *Model) states() []*engine.RequestState {
	rows := make([]*engine.RequestState, 0, len(m.pool.Running)+len(m.pool.Deferred)+len(m.pool.Waiting))
	for i := range m.pool.Running {
		rows = append(rows, &m.pool.Running[i])
	}
	for i := range m.pool.Deferred {
		rows = append(rows, &m.pool.Deferred[i])
	}
	for i := range m.pool.Waiting {
		rows = append(rows, &m.pool.Waiting[i])
	}
	return rows
}

var phaseNames = map[engine.Phase]string{engine.PhaseWaiting: "waiting", engine.PhasePreempted: "preempted",
	engine.PhasePrefill: "prefill", engine.PhaseDecode: "decode", engine.PhaseDeferred: "deferred", engine.PhaseLoading: "loading"}

func (m *Model) phaseName(p engine.Phase) string {
	if p == engine.PhasePreempted && m.sglang() {
		return "retracted"
	}
	return phaseNames[p]
}

// drawStates draws a table of requests from the first row on and returns the first row that was possible.
func (m *Model) drawStates(a grid.Area, rows []*engine.RequestState, first int) int {
	t := widget.Table{Columns: widget.Fit(runColumns, a.W()), Heading: theme.Heading}
	t.Head(a)
	visible := max(a.H()-1, 0)
	first = min(first, max(len(rows)-visible, 0))
	if len(rows) == 0 {
		a.Text(0, 1, "no requests", theme.Dim)
	}
	for y := range min(visible, len(rows)) {
		r := rows[first+y]
		total := r.Request.PromptLen() + r.Request.OutputLimit()
		style := theme.Plain
		if r.Phase == engine.PhasePreempted {
			style = theme.InkEvicted
		}
		t.Row(a, y+1, style, grid.Clean(r.Request.Label), m.phaseName(r.Phase),
			strconv.Itoa(r.Computed)+"/"+strconv.Itoa(total), strconv.Itoa(r.Cached), strconv.Itoa(r.Blocks),
			span(m.since(r.Since)))
		m.drawProgress(a.Rows(y+1, 1), t, len(runColumns), r.Computed, r.Request.PromptLen(), total)
	}
	return first
}

// drawProgress draws the last column of a table: how much of a request is done, its prompt and its output in
// different styles. It draws nothing if the table had no room for the column.
func (m *Model) drawProgress(a grid.Area, t widget.Table, columns, done, prompt, total int) {
	if len(t.Columns) < columns || total <= 0 {
		return
	}
	w := t.Columns[columns-1].Width
	bar := a.Sub(grid.Rect{X: a.W() - w, Y: 0, W: w, H: 1})
	n := widget.Portion(float64(done)/float64(total), w)
	split := widget.Portion(float64(prompt)/float64(total), w)
	for x := range w {
		switch {
		case x >= n:
			bar.Set(x, 0, m.theme.Glyphs.Rest, theme.InkFree)
		case x < split:
			bar.Set(x, 0, m.theme.Glyphs.Full, theme.InkShared)
		default:
			bar.Set(x, 0, m.theme.Glyphs.Full, theme.InkActive)
		}
	}
}

// drawPass draws the requests of an earlier pass.
func (p *batchPanel) drawPass(m *Model, f *pass) {
	waiting := m.lives.waiting(m.sel.name, f.Rank, f.Start)
	a := m.boxed(boxTable, fmt.Sprintf("pass %s, %s, %s ago: %s; %d ran, %d waited", number(f.Number), clockText(f.Start),
		span(math.Max(0, float64(m.clock-f.End))), m.passText(f), len(f.items), len(waiting))).Inset(1, 0)
	if len(f.items)+len(waiting) == 0 {
		a.Text(0, 0, "the requests of this pass were not kept", theme.Dim)
		return
	}
	t := widget.Table{Columns: widget.Fit(passColumns, a.W()), Heading: theme.Heading}
	t.Head(a)
	visible := max(a.H()-1, 0)
	rows := len(f.items) + len(waiting)
	p.row = min(p.row, max(rows-visible, 0))
	for y := range min(visible, rows) {
		if i := p.row + y - len(f.items); i >= 0 {
			w := &waiting[i]
			name, style := m.phaseName(engine.PhaseWaiting), theme.Dim
			if w.preempted {
				name, style = m.phaseName(engine.PhasePreempted), theme.InkEvicted
			}
			t.Row(a, y+1, style, w.label, name, "", "0/"+number(w.prompt), "for "+span(float64(f.Start-w.since)))
			continue
		}
		it := &f.items[p.row+y]
		t.Row(a, y+1, theme.Plain, grid.Clean(it.Label), phase(it), number(it.Tokens), fmt.Sprintf("%d/%d", it.Done, it.Total), note(it))
		m.drawProgress(a.Rows(y+1, 1), t, len(passColumns), it.Done, it.Length, it.Total)
	}
}

func phase(it *feed.Item) string {
	if it.Prompt > 0 {
		return "prefill"
	}
	if it.Fresh {
		return "resumed"
	}
	return "decode"
}

func note(it *feed.Item) string {
	switch {
	case it.Fresh:
		return "admitted"
	case it.Prompt > 0 && it.Done < it.Length:
		return "chunk"
	}
	return ""
}
