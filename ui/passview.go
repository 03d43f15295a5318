package ui

import (
	"fmt"
	"math"

	"mockbench/engine"
	"mockbench/ui/grid"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// Letters of the parts of a batch, and of a preemption.
const (
	letterNew, letterCached, letterDecode, letterPreempted = 'N', '-', 'd', 'X'
)

// lostWords name the loss of a request's blocks as the engine does.
type lostWords struct{ verb, noun, column string }

func (m *Model) lost() lostWords {
	if m.sglang() {
		return lostWords{"retract", "retraction", "ret/s"}
	}
	return lostWords{"preempt", "preemption", "pre/s"}
}

// sglang reports whether the workers' engine is SGLang.
func (m *Model) sglang() bool {
	return len(m.workers) > 0 && m.workers[0].config.Backend == engine.SGLang
}

// stackParts returns the parts of a batch from the bottom up.
func stackParts[T ~int | ~int32](decode, cached, fresh T) []widget.Part {
	return []widget.Part{
		{Value: float64(decode), Letter: letterDecode, Style: theme.CellActive},
		{Value: float64(cached), Letter: letterCached, Style: theme.CellCached},
		{Value: float64(fresh), Letter: letterNew, Style: theme.CellShared},
	}
}

// lastPass returns the newest pass of the selected worker and rank that is back steps old, nil if there is none.
func (m *Model) lastPass(back int) *pass {
	if m.sel == nil {
		return nil
	}
	for i := range m.sel.passes.len() {
		if p := m.sel.passes.last(i); int(p.Rank) == m.rank {
			if back == 0 {
				return p
			}
			back--
		}
	}
	return nil
}

func (m *Model) selName() string {
	if m.sel == nil {
		return nothing
	}
	if m.sel.Worker.Ranks() > 1 {
		return fmt.Sprintf("%s rank %d", m.sel.name, m.rank)
	}
	return m.sel.name
}

func (m *Model) passTitle() string {
	if p := m.lastPass(0); p != nil {
		return fmt.Sprintf("pass %s of %s", number(p.Number), m.selName())
	}
	return "last pass of " + m.selName()
}

// drawPass draws the newest pass in three lines.
func (o *overviewPanel) drawPass(m *Model, a grid.Area) {
	a = a.Inset(1, 0)
	p := m.lastPass(0)
	if p == nil {
		a.Text(0, 0, "no pass yet", theme.Dim)
		return
	}
	bar := a.Rows(0, 1)
	budget := float64(p.Budget)
	if p.Budget >= engine.Unlimited {
		budget = float64(p.New + p.Cached + p.Decode)
	}
	x := 0
	for _, part := range stackParts(p.Decode, 0, p.New) {
		n := widget.Level(part.Value, max(budget, 1), bar.W()+1)
		for ; n > 0 && x < bar.W(); n-- {
			bar.Set(x, 0, part.Letter, part.Style)
			x++
		}
	}
	for ; x < bar.W(); x++ {
		bar.Set(x, 0, m.theme.Glyphs.Rest, theme.InkFree)
	}
	texts := [4]string{"new " + number(p.New), "cached " + number(p.Cached), "decode " + number(p.Decode), ""}
	drawBatchLegend(a.Rows(1, 1), 0, texts)
	a.Text(0, 2, m.passText(p), theme.Plain)
}

// passText describes a pass in words.
func (m *Model) passText(p *pass) string {
	text := "decode only"
	if p.Prefills > 0 {
		text = plural(p.Prefills, "prefill")
	}
	if p.Chunked > 0 {
		text += fmt.Sprintf(" (%d chunked)", p.Chunked)
	}
	if p.Preempted > 0 {
		text += ", " + plural(p.Preempted, m.lost().noun)
	}
	return text + ", " + decimals(float64(p.RankEnd-p.Start), 1) + " ms"
}

// drawBatches draws the batches of the selected worker over time, one column a step of the charts.
func (o *overviewPanel) drawBatches(m *Model) {
	box := m.area(boxPass)
	a := box.Inset(1, 1)
	scale := drawColumns(a.Rows(0, a.H()-1), m.timeColumns(a.W()))
	m.frameIn(box, fmt.Sprintf("batches of %s, height %s of budget", m.selWorker(), scaleText(scale)))
	legend := a.Rows(a.H()-1, 1)
	texts := [4]string{"new", "cached", "decode", m.lost().verb}
	if p := m.lastPass(0); p != nil && legend.W() >= 60 {
		texts = [4]string{"new " + number(p.New), "cached " + number(p.Cached), "decode " + number(p.Decode), m.lost().verb}
	}
	drawBatchLegend(legend, 1, texts)
}

// selWorker returns the name of the selected worker, whose ranks are summed up.
func (m *Model) selWorker() string {
	if m.sel == nil {
		return nothing
	}
	return m.sel.name
}

// drawBatchLegend explains the letters of a chart of batches, in the order new, cached, decode, preempted.
func drawBatchLegend(a grid.Area, x int, texts [4]string) {
	letters := [4]rune{letterNew, letterCached, letterDecode, letterPreempted}
	for i, s := range [4]grid.Style{theme.CellShared, theme.CellCached, theme.CellActive, theme.CellEvicted} {
		if texts[i] == "" {
			continue
		}
		a.Set(x, 0, letters[i], s)
		x = a.Text(x+2, 0, texts[i], theme.Plain) + 2
	}
}

// chartColumn is one column of a chart of batches.
type chartColumn struct {
	decode, cached, fresh int // tokens
	budget                float64
	preempted             bool
	none                  bool // nothing ran
}

func (c *chartColumn) share() float64 {
	if c.none || c.budget <= 0 {
		return 0
	}
	return float64(c.decode+c.cached+c.fresh) / c.budget
}

// timeColumns returns the newest n columns of the selected worker, one a step of the charts, newest first.
func (m *Model) timeColumns(n int) []chartColumn {
	if m.sel == nil {
		return nil
	}
	out := make([]chartColumn, min(n, historyColumns, m.shownCols))
	for i := range out {
		out[i].none = true
		if c := m.sel.at(m.shownCols - 1 - i); c != nil {
			out[i] = chartColumn{c.dec, c.cached, c.new, c.budget, c.preempted > 0, c.passes == 0}
		}
	}
	return out
}

// drawColumns draws columns, newest first, as stacks from the right edge of a. The scale is the smallest of the whole
// budget, its half, its quarter and so on that holds them all; it returns that share.
func drawColumns(a grid.Area, columns []chartColumn) float64 {
	largest := 0.0
	for i := range columns {
		largest = max(largest, columns[i].share())
	}
	scale := 1.0
	for largest > 0 && scale/2 >= largest && scale > 1.0/64 {
		scale /= 2
	}
	for i := range columns {
		c, x := &columns[i], a.W()-1-i
		if c.none {
			continue
		}
		top := c.budget * scale
		if c.budget <= 0 { // no limit: every column is full
			top = float64(c.decode + c.cached + c.fresh)
		}
		widget.Stack(a, x, stackParts(c.decode, c.cached, c.fresh), max(top, 1))
		if c.preempted {
			a.Set(x, 0, letterPreempted, theme.CellEvicted)
		}
	}
	return scale
}

// scaleText names the upper end of the scale of a chart of batches.
func scaleText(scale float64) string { return percent(scale, 0) }

// drawHistogram draws a histogram with its axis below, samples beyond the SLO in a second colour.
func (m *Model) drawHistogram(a grid.Area, f *Figures) {
	h := a.H() - 1
	if h < 1 || len(f.Bins) == 0 {
		return
	}
	bars := widget.Columns(f.Bins, a.W())
	columns := len(bars)
	scale := float64(columns) / (f.BinWidth * float64(len(f.Bins))) // columns a millisecond
	split := columns
	if f.SLO > 0 {
		split = int(math.Round(f.SLO * scale))
	}
	widget.Histogram(a.Rows(0, h), bars, split, m.theme.Glyphs.Levels, theme.InkCached, theme.InkEvicted)
	axis := a.Rows(h, 1)
	end := span(f.BinWidth * float64(len(f.Bins)))
	axis.Text(0, 0, "0", theme.Dim)
	axis.Right(columns, 0, end, theme.Dim)
	if f.SLO > 0 && split > 1 && split+4 < columns-len(end) {
		axis.Text(split, 0, "^SLO", theme.Bold)
	}
}
