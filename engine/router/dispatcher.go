package router

import (
	"container/heap"
	"fmt"
	"math"

	"mockbench/engine"
	"mockbench/kv"
	"mockbench/kv/prefixindex"
)

// Dispatcher places requests by cost on simulated time, for a driver that tells it everything that happens. Requests
// wait in a queue while all ranks are busy, if that is asked for. It is not safe for concurrent use.
type Dispatcher struct {
	cfg      Config
	selector *Selector
	index    *prefixindex.Index
	active   activeBlocks
	ranks    []Rank
	loads    []Load
	limit    float64 // prefill tokens above which a rank is busy; +Inf without queue
	lag      engine.Time
	late     []lateEvents
	queue    waiting
	arrivals uint64

	matches    []prefixindex.Match // scratch
	shared     []int               // scratch
	candidates []Candidate         // scratch
}

// DispatchOptions configure a Dispatcher.
type DispatchOptions struct {
	Config    Config
	Workers   int
	Ranks     int // data-parallel ranks of each worker
	BlockSize int // tokens
	Seed      uint64
	Budget    uint64      // token budget of a pass of a rank, for the queue threshold
	EventLag  engine.Time // how much later than they happen KV events become known
}

// NewDispatcher returns a dispatcher that knows of no blocks and no requests. The configuration has been validated.
func NewDispatcher(o DispatchOptions) *Dispatcher {
	n := o.Workers * o.Ranks
	d := &Dispatcher{cfg: o.Config, selector: NewSelector(o.Config.Model, o.BlockSize, o.Seed), index: prefixindex.WithSets(n, activeSets),
		limit: math.Inf(1), lag: o.EventLag, loads: make([]Load, n)}
	d.active = activeBlocks{index: d.index, several: map[spot]int32{}}
	for i := range n {
		d.ranks = append(d.ranks, Rank{Worker: i / o.Ranks, Rank: i % o.Ranks, Load: &d.loads[i]})
	}
	if t := o.Config.QueueThreshold; t != nil {
		budget := o.Budget
		if budget == engine.Unlimited {
			budget = unlimitedBudget
		}
		d.limit = *t * float64(budget)
	}
	return d
}

// unlimitedBudget stands for a token budget that is switched off.
const unlimitedBudget = 10_000_000

// Ticket is a request from its arrival to its end. The caller fills in the first group and leaves Sequence alone until
// the end.
type Ticket struct {
	Tokens   int      // of the prompt
	Sequence []uint64 // sequence hashes of the complete prompt blocks
	Priority int32
	Strict   uint32
	User     any // the caller's own

	Arrived  engine.Time
	Index    int // of the rank: worker * ranks + rank
	Worker   int
	Rank     int
	Overlap  int // blocks of the prompt the rank holds
	Best     int // the most that any rank holds
	Blocks   int // of the prompt, an incomplete one included
	Queued   bool
	Released engine.Time // when it left the queue

	Nodes   []int32 // of the blocks of Sequence, until the end; the dispatcher's own
	prefill int
	matches []prefixindex.Match // as they were at arrival, while it waits
	score   float64
	number  uint64
}

// Place places a request or queues it, and reports whether it was placed.
func (d *Dispatcher) Place(t *Ticket, now engine.Time) (placed bool, err error) {
	if err := d.catchUp(now); err != nil {
		return false, err
	}
	d.arrivals++
	t.Arrived, t.number, t.Queued = now, d.arrivals, false
	t.Nodes = d.index.Pin(t.Sequence, t.Nodes[:0])
	d.matches = d.index.MatchNodes(t.Nodes, d.matches)
	if len(d.queue) > 0 || d.busy() {
		t.Queued = true
		t.matches = append(t.matches[:0], d.matches...)
		t.score = d.score(t)
		heap.Push(&d.queue, t)
		return false, nil
	}
	return true, d.choose(t, d.matches)
}

// Prefilled notes that the prompt of a request was computed.
func (d *Dispatcher) Prefilled(t *Ticket, now engine.Time) error {
	d.loads[t.Index].PrefillTokens -= t.prefill
	t.prefill = 0
	return d.catchUp(now)
}

// Free notes the end of a request.
func (d *Dispatcher) Free(t *Ticket, now engine.Time) error {
	l := &d.loads[t.Index]
	l.PrefillTokens -= t.prefill
	l.Requests--
	switch {
	case !d.cfg.TrackBlocks:
	case d.cfg.AssumeReuse:
		l.DecodeBlocks -= d.active.remove(t.Index, t.Nodes)
	default:
		l.DecodeBlocks -= len(t.Sequence)
	}
	d.index.Unpin(t.Nodes)
	t.Nodes = t.Nodes[:0]
	return d.catchUp(now)
}

// Blocks returns what is known of the caches of the ranks. A driver that remembers the nodes of blocks may keep it up to
// date itself, in place of Events.
func (d *Dispatcher) Blocks() *prefixindex.Index { return d.index }

// Next places the first waiting request if a rank can take it, and returns nil if none can. It is to be called until then
// after every Prefilled and Free.
func (d *Dispatcher) Next(now engine.Time) (*Ticket, error) {
	if len(d.queue) == 0 || d.busy() {
		return nil, nil
	}
	t := heap.Pop(&d.queue).(*Ticket)
	t.Released = now
	return t, d.choose(t, t.matches)
}

// Waiting returns the number of requests in the queue.
func (d *Dispatcher) Waiting() int { return len(d.queue) }

// busy reports whether all ranks have more prompt tokens to compute than the threshold allows.
func (d *Dispatcher) busy() bool {
	for i := range d.loads {
		if !(float64(d.loads[i].PrefillTokens) > d.limit) {
			return false
		}
	}
	return true
}

// choose places a request on the cheapest rank.
func (d *Dispatcher) choose(t *Ticket, matches []prefixindex.Match) error {
	d.weigh(t, matches)
	var choice int
	var err error
	d.candidates, choice, err = d.selector.Select(t.Tokens, d.ranks, Constraints{}, d.candidates[:0])
	if err != nil {
		return err
	}
	c := &d.candidates[choice]
	t.Index, t.Worker, t.Rank, t.Overlap, t.Best = choice, c.Worker, c.Rank, c.OverlapBlocks, 0
	t.Blocks = (t.Tokens + d.selector.BlockSize - 1) / d.selector.BlockSize
	for i := range d.candidates {
		t.Best = max(t.Best, d.candidates[i].OverlapBlocks)
	}
	l := &d.loads[choice]
	l.Requests++
	t.prefill = 0
	if d.cfg.TrackPrefill {
		t.prefill = max(t.Tokens-c.CachedTokens, 0)
		l.PrefillTokens += t.prefill
	}
	switch {
	case !d.cfg.TrackBlocks:
	case d.cfg.AssumeReuse:
		l.DecodeBlocks += d.active.add(choice, t.Nodes)
	default:
		l.DecodeBlocks += len(t.Sequence)
	}
	return nil
}

// weigh completes what is known of each rank for one request.
func (d *Dispatcher) weigh(t *Ticket, matches []prefixindex.Match) {
	shared := d.cfg.TrackBlocks && d.cfg.AssumeReuse
	if shared {
		d.shared = d.index.Leading(activeOnce, t.Nodes, d.shared)
	}
	for i := range d.ranks {
		d.ranks[i].Device, d.ranks[i].Host = matches[i].Device, matches[i].Host
		switch {
		case shared:
			d.loads[i].AdditionalBlocks = len(t.Nodes) - d.shared[i]
		case d.cfg.TrackBlocks:
			d.loads[i].AdditionalBlocks = len(t.Sequence)
		}
	}
}

// score returns the place of a request in the queue; the highest comes first.
func (d *Dispatcher) score(t *Ticket) float64 {
	jump, arrived := float64(max(t.Priority, 0)), float64(t.Arrived)/1000
	switch d.cfg.QueuePolicy {
	case LCFS:
		return jump + arrived
	case WSPT:
		best := 0
		for i, m := range t.matches {
			r := d.ranks[i]
			r.Device, r.Host = m.Device, m.Host
			best = max(best, int(math.Round(d.cfg.effective(r)*float64(d.selector.BlockSize))))
		}
		return (1 + jump) / float64(max(t.Tokens-best, 1))
	}
	return jump - arrived
}

// Events takes in KV events of a rank that became visible.
func (d *Dispatcher) Events(index int, events *kv.Events, now engine.Time) error {
	if len(events.List) == 0 {
		return nil
	}
	if d.lag == 0 {
		return d.apply(index, events)
	}
	if err := d.catchUp(now); err != nil {
		return err
	}
	d.late = append(d.late, lateEvents{index: index, due: now + d.lag, events: kv.Events{
		List:     append([]kv.Event(nil), events.List...),
		Sequence: append([]uint64(nil), events.Sequence...),
		Local:    append([]uint64(nil), events.Local...),
	}})
	return nil
}

// lateEvents are KV events that are not known yet.
type lateEvents struct {
	index  int
	due    engine.Time
	events kv.Events
}

// catchUp applies the events that have become known by now.
func (d *Dispatcher) catchUp(now engine.Time) error {
	for len(d.late) > 0 && d.late[0].due <= now {
		late := &d.late[0]
		if err := d.apply(late.index, &late.events); err != nil {
			return err
		}
		d.late = d.late[1:]
	}
	return nil
}

func (d *Dispatcher) apply(index int, events *kv.Events) error {
	if err := d.index.Apply(index, events); err != nil {
		r := d.ranks[index]
		return fmt.Errorf("router: worker %d rank %d: %w", r.Worker, r.Rank, err)
	}
	return nil
}

// waiting is a heap of requests that wait for a rank.
type waiting []*Ticket

func (w waiting) Len() int { return len(w) }

func (w waiting) Less(i, j int) bool {
	a, b := w[i], w[j]
	switch {
	case a.Strict != b.Strict:
		return a.Strict > b.Strict
	case a.score != b.score:
		return a.score > b.score
	}
	return a.number < b.number
}

func (w waiting) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

func (w *waiting) Push(x any) { *w = append(*w, x.(*Ticket)) }

func (w *waiting) Pop() any {
	last := len(*w) - 1
	t := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return t
}
