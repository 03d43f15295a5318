// Package feed carries pass records from the goroutine of a worker to the screen. A [Feed] copies what the screen
// needs of each record into a bounded buffer; if the screen does not fetch it in time the oldest frames are dropped and
// counted. The worker never waits for more than a swap of two buffers.
package feed

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"mockbench/engine"
	"mockbench/kv"
)

// Bounds of one batch.
const (
	MaxFrames = 512 // of a feed with Detail
	fewFrames = 16  // of one without
	maxItems  = 16384
	maxEvents = 512
	passItems = 512 // requests copied of one pass
	passEvent = 32  // KV events copied of one pass
)

// Frame is one pass in figures.
type Frame struct {
	Number     uint64
	Start, End engine.Time
	RankEnd    engine.Time
	Budget     uint64
	Rank       int32
	New        int32 // prefill tokens computed
	Cached     int32 // prompt tokens of admitted requests found in a cache
	Decode     int32 // decode tokens computed
	Prefills   int32 // requests with a part of their prompt in the pass
	Chunked    int32 // of those, prompts not finished in the pass
	Decodes    int32 // requests decoding
	Preempted  int32
	FirstItem  int32 // requests of the pass are Batch.Items[FirstItem:FirstItem+Items]
	Items      int32
}

// Item is one request in a pass.
type Item struct {
	Label  string
	Tokens int // computed in the pass
	Prompt int // of those, prompt tokens
	Done   int // tokens with KV after the pass
	Length int // known tokens
	Total  int // prompt and output asked for
	Fresh  bool
}

// Event is one KV event.
type Event struct {
	kv.Event
	Rank  int
	At    engine.Time // when it became visible
	First uint64      // sequence hash of its first block
}

// Totals are sums over everything since the start, dropped frames included.
type Totals struct {
	Passes, Preemptions, Finished, Rejected uint64
	New, Cached, Decode                     uint64  // tokens, as in a Frame
	Budget                                  float64 // tokens; passes without a limit count nothing
	OutputTokens                            uint64
	PromptTokens, ReusedTokens              uint64 // of first admissions
	HostTokens                              uint64 // of those, loaded from the host tier
	Host                                    Host
	Events, Stored, Removed                 uint64 // KV events, and blocks in them
	Time                                    engine.Time
}

// Host is what the host tier has done.
type Host struct {
	Stores, Loads    Lane
	Evicted, Refused uint64 // blocks forgotten for others; stores that found no room
	Unfitting        uint64 // of the refused, larger than the whole tier
}

// Lane is one direction of the copies between device and host.
type Lane struct {
	Started, Done, Cancelled                   uint64  // copies
	StartedBlocks, DoneBlocks, CancelledBlocks uint64  // in them
	Wait                                       float64 // ms from the earliest start to the end, over those started
}

// Flying returns the copies under way and the blocks in them.
func (l *Lane) Flying() (copies, blocks uint64) {
	return l.Started - l.Done - l.Cancelled, l.StartedBlocks - l.DoneBlocks - l.CancelledBlocks
}

func (l *Lane) add(s *Lane) {
	l.Started += s.Started
	l.Done += s.Done
	l.Cancelled += s.Cancelled
	l.StartedBlocks += s.StartedBlocks
	l.DoneBlocks += s.DoneBlocks
	l.CancelledBlocks += s.CancelledBlocks
	l.Wait += s.Wait
}

// start takes in a copy that may begin at a time.
func (l *Lane) start(t *engine.Transfer, earliest engine.Time) {
	l.Started++
	l.StartedBlocks += uint64(len(t.Blocks))
	if wait := float64(t.Done - earliest); !math.IsInf(wait, 1) {
		l.Wait += wait
	}
}

func (l *Lane) end(t *engine.Transfer) {
	l.Done++
	l.DoneBlocks += uint64(len(t.Blocks))
}

func (h *Host) add(s *Host) {
	h.Stores.add(&s.Stores)
	h.Loads.add(&s.Loads)
	h.Evicted += s.Evicted
	h.Refused += s.Refused
	h.Unfitting += s.Unfitting
}

// take takes in one thing that happened.
func (h *Host) take(t *engine.Transfer) {
	switch t.Kind {
	case engine.StoreStarted:
		h.Stores.start(t, t.At)
	case engine.StoreDone:
		h.Stores.end(t)
	case engine.LoadStarted:
		h.Loads.start(t, t.NotBefore)
	case engine.LoadDone:
		h.Loads.end(t)
	case engine.LoadCancelled:
		h.Loads.Cancelled++
		h.Loads.CancelledBlocks += uint64(len(t.Blocks))
	case engine.HostEvicted:
		h.Evicted += uint64(len(t.Blocks))
	case engine.StoreRefused:
		h.Refused++
		if t.Unfitting {
			h.Unfitting++
		}
	}
}

// Batch is what happened between two calls of Drain.
type Batch struct {
	Frames  []Frame // oldest first
	Items   []Item
	Events  []Event // oldest first
	Marks   []Mark  // oldest first
	Dropped uint64  // frames, events and marks dropped so far
	Totals  Totals
	Loads   []engine.Load // latest of each rank

	frame, event, oldest int // index of the oldest, once a buffer has come round
}

func (b *Batch) reset() {
	b.Frames, b.Items, b.Events, b.Marks = b.Frames[:0], b.Items[:0], b.Events[:0], b.Marks[:0]
	b.frame, b.event, b.oldest = 0, 0, 0
}

// Feed is an engine.Reader for all ranks of one worker.
type Feed struct {
	// Detail asks for all that is known of each pass. Without it a batch has only the latest few frames, without the
	// requests in them.
	Detail atomic.Bool

	// Events asks for KV events. They come with Detail too.
	Events atomic.Bool

	mu   sync.Mutex
	fill Batch
}

// New returns a feed of a worker with that many ranks.
func New(ranks int) *Feed {
	f := &Feed{}
	f.fill.Loads = make([]engine.Load, ranks)
	return f
}

// Drain hands over everything since the last call in b, whose buffers are used again.
func (f *Feed) Drain(b *Batch) {
	b.reset()
	f.mu.Lock()
	b.Totals, b.Dropped = f.fill.Totals, f.fill.Dropped
	b.Loads = append(b.Loads[:0], f.fill.Loads...)
	*b, f.fill = f.fill, *b
	f.mu.Unlock()
	turn(b.Frames, b.frame)
	turn(b.Events, b.event)
	turn(b.Marks, b.oldest)
}

// turn brings a ring whose oldest element is at head into order.
func turn[T any](ring []T, head int) {
	if head > 0 {
		slices.Reverse(ring[:head])
		slices.Reverse(ring[head:])
		slices.Reverse(ring)
	}
}

// Load takes the load of a rank as it changes between passes.
func (f *Feed) Load(rank int, now engine.Time, l engine.Load) {
	f.mu.Lock()
	f.fill.Loads[rank] = l
	f.fill.Totals.Time = max(f.fill.Totals.Time, now)
	f.mu.Unlock()
}

// Pass takes one record.
func (f *Feed) Pass(p *engine.Pass) {
	frame, sums := figures(p)
	detail := f.Detail.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &f.fill
	b.Loads[p.Rank] = p.Load
	b.Totals.add(&sums)
	if detail || f.Events.Load() {
		b.addEvents(p)
	}
	b.addMarks(p)
	if p.Idle || len(p.Work) == 0 && len(p.Preemptions) == 0 {
		return
	}
	size := fewFrames
	if detail {
		b.addItems(p, &frame)
		size = MaxFrames
	}
	put(b, &b.Frames, &b.frame, size, frame)
}

// put appends to a ring of a batch, whose oldest element is at head. When it is as long as its limit, or has come round
// under a limit that was lower, the oldest gives way.
func put[T any](b *Batch, ring *[]T, head *int, limit int, v T) {
	if len(*ring) < limit && *head == 0 {
		*ring = append(*ring, v)
		return
	}
	(*ring)[*head] = v
	*head = (*head + 1) % len(*ring)
	b.Dropped++
}

func (t *Totals) add(s *Totals) {
	t.Passes += s.Passes
	t.Preemptions += s.Preemptions
	t.Finished += s.Finished
	t.Rejected += s.Rejected
	t.New += s.New
	t.Cached += s.Cached
	t.Decode += s.Decode
	t.Budget += s.Budget
	t.OutputTokens += s.OutputTokens
	t.PromptTokens += s.PromptTokens
	t.ReusedTokens += s.ReusedTokens
	t.HostTokens += s.HostTokens
	if s.Host != (Host{}) {
		t.Host.add(&s.Host)
	}
	t.Events += s.Events
	t.Stored += s.Stored
	t.Removed += s.Removed
	t.Time = max(t.Time, s.Time)
}

// figures sums one record up.
func figures(p *engine.Pass) (f Frame, t Totals) {
	f = Frame{Number: p.Number, Start: p.Start, End: p.End, RankEnd: p.RankEnd, Rank: int32(p.Rank),
		Budget: p.Budget, Preempted: int32(len(p.Preemptions))}
	for i := range p.Work {
		w := &p.Work[i]
		switch {
		case w.Prompt > 0:
			f.New += int32(w.Tokens)
			f.Prefills++
			if w.Prefix+w.Prompt < w.Request.PromptLen() {
				f.Chunked++
			}
		case w.Waited: // a resumed request whose lost output tokens are computed again
			f.New += int32(w.Tokens)
			f.Prefills++
		default:
			f.Decode += int32(w.Tokens)
			f.Decodes++
		}
	}
	for i := range p.Admissions {
		a := &p.Admissions[i]
		f.Cached += int32(a.Reused)
		if a.First {
			t.HostTokens += uint64(a.HostReused)
			t.PromptTokens += uint64(a.Request.PromptLen())
			t.ReusedTokens += uint64(a.Reused)
		}
	}
	for i := range p.Outputs {
		o := &p.Outputs[i]
		if o.HasToken {
			t.OutputTokens++
		}
		if o.Rejected {
			t.Rejected++
		} else if o.Completed {
			t.Finished++
		}
	}
	if !p.Idle {
		t.Passes = 1
		t.New, t.Cached, t.Decode = uint64(f.New), uint64(f.Cached), uint64(f.Decode)
		if p.Budget < engine.Unlimited {
			t.Budget = float64(p.Budget)
		}
	}
	t.Preemptions, t.Time = uint64(len(p.Preemptions)), p.End
	for i := range p.Events.List {
		if e := &p.Events.List[i]; e.Kind == kv.Stored {
			t.Stored += uint64(e.Count)
		} else {
			t.Removed += uint64(e.Count)
		}
	}
	t.Events = uint64(len(p.Events.List))
	for i := range p.Transfers {
		t.Host.take(&p.Transfers[i])
	}
	return f, t
}

func (b *Batch) addItems(p *engine.Pass, f *Frame) {
	n := min(len(p.Work), passItems)
	if len(b.Items)+n > maxItems {
		return
	}
	f.FirstItem, f.Items = int32(len(b.Items)), int32(n)
	for i := range n {
		w := &p.Work[i]
		done := w.Length
		if w.Prompt > 0 {
			done = w.Prefix + w.Tokens
		}
		b.Items = append(b.Items, Item{Label: w.Request.Label, Tokens: w.Tokens, Prompt: w.Prompt, Done: done,
			Length: w.Length, Total: w.Request.PromptLen() + w.Request.OutputLimit(), Fresh: w.Waited})
	}
}

func (b *Batch) addEvents(p *engine.Pass) {
	list := p.Events.List
	if len(list) > passEvent {
		b.Dropped += uint64(len(list) - passEvent)
		list = list[len(list)-passEvent:]
	}
	for _, e := range list {
		out := Event{Event: e, Rank: p.Rank, At: p.End}
		if e.Count > 0 {
			out.First = p.Events.Sequence[e.Offset]
		}
		put(b, &b.Events, &b.event, maxEvents, out)
	}
}
