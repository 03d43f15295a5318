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

// hostPanel shows the host tier of the selected worker: how full it is, what is copied to it and from it, and who waits
// for that.
type hostPanel struct {
	row int // first row of the table
}

func (p *hostPanel) key(m *Model, a keys.Action) { p.row = scrolled(m, p.row, a) }

// scrolled returns the first row of the panel's table after a key.
func scrolled(m *Model, row int, a keys.Action) int {
	page := max(m.layout.rect[boxTable].H-4, 1)
	switch a {
	case keys.Up:
		row--
	case keys.Down:
		row++
	case keys.PageUp:
		row -= page
	case keys.PageDown:
		row += page
	case keys.Home:
		row = 0
	case keys.End:
		row = engine.SnapshotRows * 2
	}
	return max(row, 0)
}

// hasHost reports whether any worker has a host tier.
func (m *Model) hasHost() bool {
	for _, w := range m.workers {
		if w.config.HostOffload != nil {
			return true
		}
	}
	return false
}

// blockBytes returns the size of a block, 0 if it is not known.
func (w *worker) blockBytes() int { return w.config.BlockSize * w.config.KVCacheBytesPerToken }

// hostCapacity returns the host blocks of all ranks.
func (w *worker) hostCapacity() int {
	if w.config.HostOffload == nil {
		return 0
	}
	return w.config.HostOffload.NumHostBlocks * len(w.loads)
}

// resident returns the blocks that the host tier holds.
func resident(h *feed.Host) int { return int(h.Stores.DoneBlocks - h.Evicted) }

// gbps returns decimal gigabytes a second.
func gbps(bytes, ms float64) float64 { return bytes / ms / 1e6 }

// traffic returns the GB/s of both directions in a column.
func (c *column) traffic() float64 {
	if c.ms <= 0 {
		return 0
	}
	return gbps(c.copied, c.ms)
}

func (p *hostPanel) draw(m *Model) {
	if m.sel == nil || m.sel.config.HostOffload == nil {
		p.drawOff(m)
		return
	}
	w := m.sel
	title := fmt.Sprintf("host tier of %s, %s", m.selWorker(), plural(w.hostCapacity(), "block"))
	if n := w.blockBytes(); n > 0 {
		title += ", 1 block = " + bytesText(float64(n))
	}
	a := m.boxed(boxHost, title).Inset(1, 0)
	p.drawOccupancy(m, a.Rows(0, 2))
	p.drawLanes(m, a.Rows(3, 3))
	p.drawHits(m, a.Rows(7, 2))
	p.drawCounts(m, a.Rows(9, 1))
	m.drawTrends(m.boxed(boxSparks, "last "+m.chartSpan(m.layout.rect[boxSparks].W-trendText-2)), p.trends(m))
	p.drawWaiting(m)
}

// drawOff says why there is nothing to show and what turns it on.
func (p *hostPanel) drawOff(m *Model) {
	a := m.boxed(boxBody, "host tier").Inset(1, 0)
	switch {
	case m.sel == nil:
		a.Text(0, 1, "no workers", theme.Dim)
		return
	case m.sel.config.Backend != engine.VLLM:
		a.Text(0, 1, fmt.Sprintf("The simulated engine %s has no host tier. The engine vllm can have one.", m.sel.config.Backend), theme.Plain)
		return
	}
	a.Text(0, 1, "Host offload is off: what the device evicts must be computed again.", theme.Plain)
	a.Text(0, 3, "Turn it on with", theme.Plain)
	a.Text(2, 4, "--num-host-blocks N", theme.Bold)
	a.Text(30, 4, "host blocks of each rank", theme.Plain)
	a.Text(2, 5, "--kv-bytes-per-token BYTES", theme.Bold)
	a.Text(30, 5, "size of a token's KV, for the time of copies", theme.Plain)
	a.Text(0, 7, "or, while this run goes on, in Knobs: kv_cache_bytes_per_token, num_host_blocks, then R.", theme.Plain)
}

// drawOccupancy draws how full the tier is.
func (p *hostPanel) drawOccupancy(m *Model, a grid.Area) {
	w, total := m.sel, m.sel.hostCapacity()
	held := resident(&w.totals.Host)
	share := 0.0
	if total > 0 {
		share = float64(held) / float64(total)
	}
	text := fmt.Sprintf("%s, %s of %s blocks", percent(share, 0), number(held), number(total))
	if n := float64(w.blockBytes()); n > 0 {
		text += ", " + bytesText(n*float64(held))
	}
	g := &m.theme.Glyphs
	const from, room = 11, 43
	bar := max(a.W()-from-room, 10)
	a.Text(0, 0, "resident", theme.Bold)
	widget.Bar(a.Sub(grid.Rect{X: from, Y: 0, W: bar, H: 1}), share, g.Full, g.Rest, theme.InkHost, theme.InkFree)
	a.Text(from+bar+1, 0, text, theme.Plain)
	if !m.pool.taken {
		return
	}
	h := &m.pool.Host
	text = fmt.Sprintf("%s being stored, %s pinned by loads, %s free", number(h.Pending), number(h.Pinned), number(max(h.Capacity-h.Resident-h.Pending, 0)))
	if len(w.loads) > 1 {
		text = fmt.Sprintf("rank %d: %s resident, %s", m.rank, number(h.Resident), text)
	}
	a.Text(from, 1, text, theme.Dim)
}

// laneColumns are those of the table of both directions; the sixth is a bar.
var laneColumns = []widget.Column{
	{Title: "", Width: 9}, {Title: "flying", Width: 6, Right: true}, {Title: "blocks", Width: 7, Right: true},
	{Title: "GB/s", Width: 6, Right: true}, {Title: "limit", Width: 6, Right: true}, {Title: "used", Width: 6, Weight: 1},
	{Title: "", Width: 4, Right: true}, {Title: "queued", Width: 7, Right: true}, {Title: "done", Width: 8, Right: true},
}

const laneBar = 5

func (p *hostPanel) drawLanes(m *Model, a grid.Area) {
	w, o := m.sel, m.sel.config.HostOffload
	base, last, seconds := w.span()
	t := widget.Table{Columns: widget.Fit(laneColumns, a.W()), Heading: theme.Heading}
	t.Head(a)
	for y, l := range []struct {
		name      string
		now, then *feed.Lane
		limit     float64
	}{
		{"to host", &last.totals.Host.Stores, &base.totals.Host.Stores, o.D2HBandwidthGBps},
		{"to device", &last.totals.Host.Loads, &base.totals.Host.Loads, o.H2DBandwidthGBps},
	} {
		bytes := float64(w.blockBytes())
		rate := math.NaN()
		if seconds > 0 {
			rate = gbps(float64(l.now.DoneBlocks-l.then.DoneBlocks)*bytes, seconds*1000)
		}
		limit, used := "none", math.NaN()
		if l.limit > 0 {
			limit, used = strconv.FormatFloat(l.limit, 'g', 4, 64), rate/l.limit
		}
		copies, blocks := l.now.Flying()
		row := a.Rows(y+1, 1)
		t.Row(row, 0, theme.Plain, l.name, number(copies), number(blocks), rateText(rate), limit, "", percent(used, 0),
			span(queueDelay(l.now, l.then, o.LatencyMS, bytes, l.limit)), number(l.now.Done))
		x := 0
		for _, c := range t.Columns[:laneBar] {
			x += c.Width + 1
		}
		g := &m.theme.Glyphs
		widget.Bar(row.Sub(grid.Rect{X: x, Y: 0, W: t.Columns[laneBar].Width, H: 1}), min(used, 1), g.Full, g.Rest, theme.InkHost, theme.InkFree)
	}
}

// queueDelay returns the mean milliseconds that copies started between two moments wait for those before them; NaN if
// there were none.
func queueDelay(now, then *feed.Lane, latency, bytes, limit float64) float64 {
	n := float64(now.Started - then.Started)
	if n == 0 {
		return math.NaN()
	}
	own := latency
	if limit > 0 {
		own += float64(now.StartedBlocks-then.StartedBlocks) / n * bytes / (limit * 1e6)
	}
	return max((now.Wait-then.Wait)/n-own, 0)
}

// hitSeconds is the time over which hits are counted: short enough to show soon what a changed setting does.
const hitSeconds = 20

// drawHits draws where prompt tokens came from lately.
func (p *hostPanel) drawHits(m *Model, a grid.Area) {
	var device, host, all float64
	for n := m.shownCols - hitSeconds*columnsPerSecond; n < m.shownCols; n++ {
		if c := m.sel.at(n); c != nil {
			device, host, all = device+float64(c.device), host+float64(c.host), all+float64(c.prompt)
		}
	}
	a.Text(0, 0, "prompts", theme.Bold)
	a.Text(0, 1, fmt.Sprintf("last %d s", hitSeconds), theme.Dim)
	bar := a.Sub(grid.Rect{X: 11, Y: 0, W: a.W() - 11, H: 1})
	if all == 0 {
		bar.Text(0, 0, "none yet", theme.Dim)
		return
	}
	x, legend := 0, 11
	for i, part := range []struct {
		name   string
		value  float64
		letter rune
		style  grid.Style
	}{
		{"device hit", device, letterCached, theme.CellCached},
		{"host hit", host, theme.Letters[engine.BlockHost], theme.CellHost},
		{"miss, computed", max(all-device-host, 0), letterNew, theme.CellShared},
	} {
		n := widget.Portion(part.value/all, bar.W())
		if i == 2 {
			n = bar.W() - x
		}
		for ; n > 0; n-- {
			bar.Set(x, 0, part.letter, part.style)
			x++
		}
		a.Set(legend, 1, part.letter, part.style)
		legend = a.Text(legend+2, 1, part.name+" "+percent(part.value/all, 1), theme.Plain) + 3
	}
}

// drawCounts draws what was saved and what was lost.
func (p *hostPanel) drawCounts(m *Model, a grid.Area) {
	w := m.sel
	h := &w.totals.Host
	x := a.Text(0, 0, "loaded, not computed ", theme.Dim)
	x = a.Text(x, 0, whole(float64(h.Loads.DoneBlocks)*float64(w.config.BlockSize))+" tokens", theme.Bold)
	x = a.Text(x+2, 0, "evicted ", theme.Dim)
	x = a.Text(x, 0, number(h.Evicted), theme.Bold)
	x = a.Text(x+2, 0, "stores refused ", theme.Dim)
	x = a.Text(x, 0, number(h.Refused), theme.Bold)
	if h.Unfitting > 0 {
		x = a.Text(x+2, 0, number(h.Unfitting)+" can never fit", theme.InkEvicted)
	}
	if h.Loads.Cancelled > 0 {
		x = a.Text(x+2, 0, "loads cancelled ", theme.Dim)
		a.Text(x, 0, number(h.Loads.Cancelled), theme.Bold)
	}
}

func (p *hostPanel) trends(m *Model) []trend {
	total := float64(max(m.sel.hostCapacity(), 1))
	of := func(value func(c *column) float64) func(int) float64 {
		return func(n int) float64 {
			if c := m.sel.at(n); c != nil {
				return value(c)
			}
			return math.NaN()
		}
	}
	return []trend{
		{"resident", of(func(c *column) float64 { return float64(c.resident) / total }), 1, theme.InkHost, func(x float64) string { return percent(x, 0) }},
		{"GB/s", of((*column).traffic), 0, theme.InkHost, rateText},
	}
}

// drawWaiting lists the requests that wait for a copy.
func (p *hostPanel) drawWaiting(m *Model) {
	rows := make([]*engine.RequestState, 0, len(m.pool.Deferred))
	for i := range m.pool.Deferred {
		rows = append(rows, &m.pool.Deferred[i])
	}
	title := fmt.Sprintf("requests of %s that wait for the host tier: %d", m.selName(), len(rows))
	p.row = m.drawStates(m.boxed(boxTable, title).Inset(1, 0), rows, p.row)
}

// rateText returns GB/s in at most five characters.
func rateText(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 1:
		return decimals(x, 3)
	case x < 10:
		return decimals(x, 2)
	case x < 100:
		return decimals(x, 1)
	}
	return decimals(x, 0)
}

// bytesText returns a size in decimal units.
func bytesText(n float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if n < 1000 {
			if unit == "B" || n >= 100 {
				return decimals(n, 0) + " " + unit
			}
			return strconv.FormatFloat(n, 'g', 3, 64) + " " + unit
		}
		n /= 1000
	}
	return decimals(n, 2) + " TB"
}
