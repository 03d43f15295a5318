package hostcache

import (
	"fmt"
	"slices"

	"mockbench/kv"
)

// Layout is what all ranks of a shared pool must agree on.
type Layout struct {
	ID             string
	TensorParallel int
	BlockSize      int // tokens
	BlockBytes     int
	Capacity       int     // blocks
	D2H, H2D       float64 // caps of the whole pool, decimal GB/s; 0 is unlimited
}

// Pool is a host cache with its transfers.
type Pool struct {
	cache
	layout      Layout
	shared      bool
	engine      mover
	ports       []*Port
	nextID      int
	now         float64
	completions uint64
	steps       []Step
}

// mover models when transfers are complete.
type mover interface {
	// submit starts a transfer whose first byte moves when it is ready.
	submit(t *Transfer)

	// next returns the time of the next event.
	next(now float64) (at float64, ok bool)

	// advance processes all events until a time and returns the transfers that they complete, in order.
	advance(now, to float64) []*Transfer

	// cancel withdraws a transfer.
	cancel(t *Transfer)
}

// NewPrivate returns the empty pool of one rank.
func NewPrivate(l Layout) *Pool {
	return &Pool{cache: newCache(l.Capacity), layout: l, engine: &lanes{}}
}

// NewShared returns an empty pool for several ranks, which share its bandwidth fairly.
func NewShared(l Layout) *Pool {
	return &Pool{cache: newCache(l.Capacity), layout: l, shared: true,
		engine: &share{limit: [2]float64{perMS(l.D2H), perMS(l.H2D)}}}
}

// Layout returns what the ranks of the pool agree on.
func (p *Pool) Layout() Layout { return p.layout }

// Shared reports whether several ranks use the pool.
func (p *Pool) Shared() bool { return p.shared }

// perMS converts decimal GB/s to bytes a millisecond.
func perMS(gbps float64) float64 { return gbps * 1e6 }

// Port is the connection of one rank.
type Port struct {
	// Events are changes of residency that the rank has to announce, without ids.
	Events kv.Events

	// Done are transfers of the rank that are complete, for the rank to take.
	Done []*Transfer

	pool    *Pool
	link    [2]float64 // bytes a millisecond by direction; 0 is unlimited
	latency float64    // before the first byte
	emits   bool
	seen    uint64
	flying  int
}

// Link is the connection of a rank as it is configured.
type Link struct {
	D2H, H2D float64 // decimal GB/s; 0 is unlimited
	Latency  float64 // ms before the first byte
	Emits    bool    // wants to announce changes of residency
}

// Join connects a rank. A rank that joins later has to announce what is here already.
func (p *Pool) Join(l Layout, k Link) (*Port, error) {
	if l != p.layout {
		return nil, fmt.Errorf("host pool: layout %+v does not fit the pool's %+v", l, p.layout)
	}
	port := &Port{pool: p, link: [2]float64{perMS(k.D2H), perMS(k.H2D)}, latency: k.Latency, emits: k.Emits, seen: p.completions}
	p.ports = append(p.ports, port)
	port.announceStored(p.blocks())
	return port, nil
}

// Transfer is one copy between device and host.
type Transfer struct {
	ID       int // counts the transfers of a pool
	Load     bool
	Blocks   []Block
	Owner    any     // the submitter's own
	Done     float64 // when it is complete; of a running transfer of a shared pool not known
	Finished bool

	port      *Port
	submitted bool
	cancelled bool
	ready     float64 // when the first byte moves
	left      float64 // bytes
}

func (t *Transfer) direction() int {
	if t.Load {
		return 1
	}
	return 0
}

// StepKind says what happened to a transfer or to the cache.
type StepKind uint8

const (
	StorePrepared StepKind = iota // room is reserved
	StoreStarted
	StoreDone
	LoadStarted
	LoadDone
	LoadCancelled
	Evicted
	Refused // a store that did not fit
)

// Step is one thing that happened.
type Step struct {
	Kind      StepKind
	Transfer  *Transfer // nil of Evicted and Refused
	Owner     any
	At        float64
	NotBefore float64 // LoadStarted: earliest start, before latency
	Done      float64 // StoreStarted, LoadStarted: when it will be complete, +Inf if that is not known
	Blocks    []Block
	Unfitting bool // Refused: larger than the whole cache
}

func (p *Pool) step(kind StepKind, t *Transfer, at float64) {
	p.steps = append(p.steps, Step{Kind: kind, Transfer: t, Owner: t.Owner, At: at, Done: t.Done, Blocks: t.Blocks})
}

// TakeSteps returns what happened since the last call. The slice is valid until the next thing happens.
func (p *Pool) TakeSteps() []Step {
	s := p.steps
	p.steps = p.steps[:0]
	return s
}

// Prepare reserves room for a store of blocks that are absent, all within the range of keys, and forgets others for it.
// It returns nil if there is not enough room.
func (r *Port) Prepare(blocks []Block, within []uint64, owner any, now float64) *Transfer {
	p := r.pool
	victims, ok := p.room(len(blocks), within)
	if !ok {
		p.steps = append(p.steps, Step{Kind: Refused, Owner: owner, At: now, Blocks: blocks, Unfitting: len(within) > p.capacity})
		return nil
	}
	p.forget(victims, owner, now)
	for _, b := range blocks {
		p.add(b)
	}
	t := r.transfer(blocks, owner)
	p.step(StorePrepared, t, now)
	return t
}

func (r *Port) transfer(blocks []Block, owner any) *Transfer {
	p := r.pool
	t := &Transfer{ID: p.nextID, Blocks: blocks, Owner: owner, port: r, left: float64(len(blocks)) * float64(p.layout.BlockBytes)}
	p.nextID++
	r.flying++
	return t
}

// forget evicts entries for a store of owner.
func (p *Pool) forget(victims []int32, owner any, now float64) {
	if len(victims) == 0 {
		return
	}
	blocks := make([]Block, len(victims))
	for n, i := range victims {
		blocks[n] = p.entries[i].block
		p.evict(i)
		p.steps = append(p.steps, Step{Kind: Evicted, Owner: owner, At: now, Blocks: blocks[n : n+1]})
	}
	for _, port := range p.ports {
		if !port.emits {
			continue
		}
		log := kv.Log{On: true, To: &port.Events}
		log.Open(kv.Event{Kind: kv.Removed, Tier: kv.HostPinned, Position: -1})
		for _, b := range blocks {
			log.Block(b.Key, 0)
		}
	}
}

// Clear evicts all resident blocks. No transfer may be under way.
func (p *Pool) Clear(now float64) {
	var all []int32
	for _, b := range p.blocks() {
		if i, ok := p.index.Get(b.Key); ok {
			all = append(all, i)
		}
	}
	p.forget(all, nil, now)
}

// Store starts a prepared store.
func (r *Port) Store(t *Transfer, now float64) {
	r.submit(t, now)
	r.pool.step(StoreStarted, t, now)
}

func (r *Port) submit(t *Transfer, earliest float64) {
	t.submitted = true
	t.ready = earliest + r.latency
	r.pool.engine.submit(t)
}

// Load starts to read blocks that are resident, not before a time.
func (r *Port) Load(blocks []Block, owner any, now, earliest float64) *Transfer {
	r.pool.pin(blocks)
	t := r.transfer(blocks, owner)
	t.Load = true
	r.submit(t, earliest)
	r.pool.step(LoadStarted, t, now)
	r.pool.steps[len(r.pool.steps)-1].NotBefore = earliest
	return t
}

// Cancel withdraws a load. The time it would have taken in its lane stays taken.
func (r *Port) Cancel(t *Transfer, now float64) {
	t.cancelled = true
	r.flying--
	r.pool.engine.cancel(t)
	r.pool.unpin(t.Blocks)
	r.pool.step(LoadCancelled, t, now)
}

// Advance moves the clock of the pool to a time and completes what is due.
func (p *Pool) Advance(to float64) {
	for _, t := range p.engine.advance(p.now, to) {
		p.complete(t)
	}
	p.now = max(p.now, to)
}

func (p *Pool) complete(t *Transfer) {
	t.Finished = true
	t.port.flying--
	t.port.Done = append(t.port.Done, t)
	p.completions++
	if t.Load {
		p.unpin(t.Blocks)
		p.step(LoadDone, t, t.Done)
		return
	}
	p.settle(t.Blocks)
	for _, port := range p.ports {
		port.announceStored(t.Blocks)
	}
	p.step(StoreDone, t, t.Done)
}

// announceStored queues stored events, one a run of blocks that follow each other.
func (r *Port) announceStored(blocks []Block) {
	if !r.emits {
		return
	}
	log := kv.Log{On: true, To: &r.Events}
	for i, b := range blocks {
		if i == 0 || !b.HasParent || b.Parent != blocks[i-1].Key || b.Position != blocks[i-1].Position+1 {
			log.Open(kv.Event{Kind: kv.Stored, Tier: kv.HostPinned, HasParent: b.HasParent, Parent: b.Parent, Position: int32(b.Position)})
		}
		log.Block(b.Key, b.Local)
	}
}

// Deadline returns when the rank has something to do next.
func (r *Port) Deadline() (float64, bool) {
	if len(r.Events.List) > 0 || r.seen != r.pool.completions {
		return r.pool.now, true
	}
	return r.pool.engine.next(r.pool.now)
}

// See reports whether transfers of any rank of the pool were completed since the last call.
func (r *Port) See() bool {
	news := r.seen != r.pool.completions
	r.seen = r.pool.completions
	return news
}

// Busy reports whether a transfer of the rank is under way or it has something to announce.
func (r *Port) Busy() bool { return r.flying > 0 || len(r.Events.List) > 0 }

// TakeDone returns the complete transfers of the rank in order. The slice is valid until the next completion.
func (r *Port) TakeDone() []*Transfer {
	d := r.Done
	r.Done = r.Done[:0]
	return d
}

// before orders transfers that are complete at the same time: stores first, then by id.
func before(a, b *Transfer) bool {
	if a.Load != b.Load {
		return b.Load
	}
	return a.ID < b.ID
}

func sortCompletions(list []*Transfer) {
	slices.SortFunc(list, func(a, b *Transfer) int {
		if before(a, b) {
			return -1
		}
		return 1
	})
}
