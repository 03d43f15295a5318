package ui

import (
	"math"
	"slices"
	"strconv"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/ui/feed"
	"mockbench/ui/grid"
)

const (
	historyColumns = 320 // columns kept of each worker
	keptPasses     = 256 // passes kept of each worker, to scrub through
	keptEvents     = 256 // KV events kept of each worker
	rateSamples    = 60  // samples of totals kept, two a second
	rateSpan       = 8   // samples that rates are taken over: 4 s
)

// column is what one worker did in one step of the charts' time axis.
type column struct {
	n                 int // number of the column; a different one is a gap
	passes            int
	new, cached, dec  int     // tokens
	budget            float64 // sum over the passes
	preempted, tokens int
	used              float64 // share of blocks in use at the end
	ms                float64 // simulated time
	copied            float64 // bytes between device and host, both ways
	resident          int     // blocks in the host tier at the end

	prompt, device, host int // prompt tokens of first admissions; found on the device and in the host tier
}

// pass is one kept pass with its requests, if they were asked for.
type pass struct {
	feed.Frame
	items []feed.Item
}

// sample is the totals of a worker at one moment.
type sample struct {
	totals feed.Totals
	clock  engine.Time
}

// row is the figures of one worker as tables show them.
type row struct {
	used                  float64 // share of blocks in use
	running, waiting      int
	preempts, hit, tokens float64 // per second, share, per second; NaN without data
	preemptions           uint64
}

// worker is what the screen knows of one worker.
type worker struct {
	Source
	name   string
	config engine.Config // in force
	wanted engine.Config // as it was asked for
	loads  []engine.Load
	peek   peek
	totals feed.Totals
	batch  feed.Batch

	history [historyColumns]column
	closed  sample // at the end of the last column
	passes  ring[pass]
	events  ring[feed.Event]
	samples ring[sample]

	shown   row
	stalls  []live.Stall
	slip    time.Duration
	dropped uint64
}

func newWorker(s Source) *worker {
	w := &worker{Source: s, name: grid.Clean(s.Worker.Name()), config: s.Worker.Config(), loads: make([]engine.Load, s.Worker.Ranks())}
	w.wanted = w.config
	for i := range w.history {
		w.history[i].n = -1
	}
	w.passes.size, w.events.size, w.samples.size = keptPasses, keptEvents, rateSamples
	w.refresh(0)
	return w
}

// stuck returns the ranks that cannot go on, without those that a handoff will let go on.
func (w *worker) stuck() []live.Stall {
	return slices.DeleteFunc(slices.Clone(w.stalls), func(s live.Stall) bool { return s.Waits() })
}

// configure takes over the settings in force.
func (w *worker) configure() { w.config = w.Worker.Config() }

// drain takes over what the feed has collected and reports whether there was anything.
func (w *worker) drain() bool {
	b := &w.batch
	w.Feed.Drain(b)
	changed := b.Totals != w.totals || len(b.Frames) > 0
	for i, l := range b.Loads {
		if i < len(w.loads) && w.loads[i] != l {
			w.loads[i], changed = l, true
		}
	}
	w.totals, w.dropped = b.Totals, b.Dropped
	if changed {
		w.peek.set = false
	}
	for _, f := range b.Frames {
		p := w.passes.push()
		p.Frame = f
		p.items = append(p.items[:0], b.Items[f.FirstItem:f.FirstItem+f.Items]...)
	}
	for _, e := range b.Events {
		*w.events.push() = e
	}
	return changed
}

// closeColumn makes what happened since the last column the one of number n.
func (w *worker) closeColumn(n int, clock engine.Time) {
	now, then := &w.totals, &w.closed.totals
	copied := now.Host.Stores.DoneBlocks - then.Host.Stores.DoneBlocks + now.Host.Loads.DoneBlocks - then.Host.Loads.DoneBlocks
	w.history[n%historyColumns] = column{
		n: n, passes: int(now.Passes - then.Passes),
		new: int(now.New - then.New), cached: int(now.Cached - then.Cached), dec: int(now.Decode - then.Decode),
		budget: now.Budget - then.Budget, preempted: int(now.Preemptions - then.Preemptions),
		tokens: int(now.OutputTokens - then.OutputTokens), used: used(w.load()),
		ms: float64(clock - w.closed.clock), copied: float64(copied) * float64(w.blockBytes()), resident: resident(&now.Host),
		prompt: int(now.PromptTokens - then.PromptTokens), host: int(now.HostTokens - then.HostTokens),
		device: int(now.ReusedTokens-now.HostTokens) - int(then.ReusedTokens-then.HostTokens),
	}
	w.closed = sample{w.totals, clock}
}

// at returns the worker's column of that number, nil where there is a gap.
func (w *worker) at(n int) *column {
	if n < 0 || w.history[n%historyColumns].n != n {
		return nil
	}
	return &w.history[n%historyColumns]
}

// rankName returns the worker's name, with the rank if there are several.
func (w *worker) rankName(rank int) string {
	if len(w.loads) < 2 {
		return w.name
	}
	return w.name + "." + strconv.Itoa(rank)
}

// load sums the ranks.
func (w *worker) load() (sum engine.Load) {
	for i, l := range w.loads {
		if w.peek.set && i == w.peek.rank {
			l = w.peek.load
		}
		sum.ActiveBlocks += l.ActiveBlocks
		sum.InactiveBlocks += l.InactiveBlocks
		sum.TotalBlocks += l.TotalBlocks
		sum.Running += l.Running
		sum.Waiting += l.Waiting
		sum.Preemptions += l.Preemptions
	}
	return sum
}

func used(l engine.Load) float64 {
	if l.TotalBlocks == 0 {
		return 0
	}
	return float64(l.ActiveBlocks) / float64(l.TotalBlocks)
}

// refresh computes the figures that tables show; it is called twice a second. While time stands still rates stay.
func (w *worker) refresh(now engine.Time) {
	next := sample{w.totals, max(now, w.totals.Time)}
	if w.samples.len() == 0 || *w.samples.last(0) != next {
		*w.samples.push() = next
	}
	l := w.load()
	w.shown = row{used: used(l), running: l.Running, waiting: l.Waiting, preemptions: w.totals.Preemptions,
		preempts: math.NaN(), tokens: math.NaN(), hit: math.NaN()}
	base, last, seconds := w.span()
	if seconds > 0 {
		w.shown.preempts = float64(last.totals.Preemptions-base.totals.Preemptions) / seconds
		w.shown.tokens = float64(last.totals.OutputTokens-base.totals.OutputTokens) / seconds
	}
	base = w.samples.last(w.samples.len() - 1)
	w.shown.hit = ratio(last.totals.ReusedTokens-base.totals.ReusedTokens, last.totals.PromptTokens-base.totals.PromptTokens)
}

// span returns the samples that rates are taken over, and the simulated seconds between them.
func (w *worker) span() (base, last *sample, seconds float64) {
	last, base = w.samples.last(0), w.samples.last(min(rateSpan, w.samples.len()-1))
	return base, last, float64(last.clock-base.clock) / 1000
}

// ratio returns a/b, NaN if b is 0.
func ratio(a, b uint64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}

// ring keeps the newest size elements.
type ring[T any] struct {
	size  int
	items []T
	next  int
}

// push returns the place of a new element, which may hold an old one whose buffers can be used again.
func (r *ring[T]) push() *T {
	if len(r.items) < r.size {
		var zero T
		r.items = append(r.items, zero)
		r.next = len(r.items) % r.size
		return &r.items[len(r.items)-1]
	}
	p := &r.items[r.next]
	r.next = (r.next + 1) % r.size
	return p
}

func (r *ring[T]) len() int { return len(r.items) }

// last returns the element that is back steps before the newest.
func (r *ring[T]) last(back int) *T {
	n := len(r.items)
	return &r.items[((r.next-1-back)%n+n)%n]
}
