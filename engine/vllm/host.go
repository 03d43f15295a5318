package vllm

import (
	"mockbench/engine"
	"mockbench/kv/hostcache"
)

// host is the connection of a rank to its host tier.
type host struct {
	pool     *hostcache.Pool
	port     *hostcache.Port
	deferred deferred
	loads    []*sequence // requests with a load, complete or not
	loading  map[uint64]int
	prepared []*hostcache.Transfer // stores that start at the end of the pass
	reading  []*hostcache.Transfer // by unit: the store that read it last

	computeNotBefore engine.Time
	transfers        []engine.Transfer // of the last command
	keys             []uint64          // blocks of the transfers told since the pass began
}

// load is a copy from the host to the device on behalf of a request that waits.
type load struct {
	transfer  *hostcache.Transfer
	complete  bool
	onDevice  int // tokens that were cached on the device when it started
	base      int // blocks of those
	prefix    int // blocks on the device when it is complete
	footprint int // blocks of the known tokens when it started
}

// owner is what a transfer belongs to.
type owner struct {
	request *engine.Request
	q       *sequence
	serial  uint64
	units   []int32 // device blocks that it reads
}

// finding is what a look-up in the host tier says.
type finding uint8

const (
	miss   finding = iota
	hit            // blocks can be loaded
	notYet         // blocks are on their way; ask again
)

// lookUp looks for the blocks of a request that follow its base blocks on the device, and counts those it can load.
func (s *Scheduler) lookUp(q *sequence, base int) (blocks int, f finding) {
	h := s.host
	switch {
	case h == nil || q.load != nil && q.load.complete:
		return 0, miss
	case q.load != nil:
		return 0, notYet
	case q.lastStore != nil && !q.lastStore.Finished:
		return 0, notYet
	}
	q.lastStore = nil
	keys := s.keys(q)
	f = miss
	for _, key := range keys[min(base, len(keys)):] {
		state := h.pool.State(key)
		if state == hostcache.Absent {
			break
		}
		blocks++
		f = max(f, hit)
		if state == hostcache.Pending || h.loading[key] > 0 {
			f = notYet
		}
	}
	s.touch(keys)
	return blocks, f
}

// keys returns the hashes of the complete prompt blocks.
func (s *Scheduler) keys(q *sequence) []uint64 { return q.sequence[:q.prompt/s.blockSize] }

// touch makes the first block the most recently used one.
func (s *Scheduler) touch(keys []uint64) {
	for i := len(keys) - 1; i >= 0; i-- {
		s.host.pool.Touch(keys[i])
	}
}

// headroom returns the blocks that must stay available for prompts under way when a load starts.
func (s *Scheduler) headroom() (blocks int) {
	for _, q := range s.running {
		if q.computed < q.prompt {
			blocks += s.blocks(q.length) - s.blocks(q.allocated)
		}
	}
	for _, q := range s.host.loads {
		blocks += q.load.footprint - q.load.prefix
	}
	return blocks
}

// startLoad reserves device blocks for a load and starts it. base of the blocks are in s.hits.
func (s *Scheduler) startLoad(q *sequence, base, blocks int) bool {
	h := s.host
	var ok bool
	if q.units, ok = s.pool.Reserve(s.hits[:base], blocks, q.units); !ok {
		return false
	}
	s.announceRemoved()
	now := s.record.Start
	earliest := now
	for _, u := range q.units[base:] {
		earliest = max(earliest, h.readUntil(u))
	}
	q.load = &load{onDevice: base * s.blockSize, base: base, prefix: base + blocks, footprint: s.blocks(q.length)}
	q.load.transfer = h.port.Load(s.identify(q, base, base+blocks), &owner{request: q.req, q: q, serial: q.serial}, float64(now), float64(earliest))
	for _, key := range q.sequence[base : base+blocks] {
		h.loading[key]++
	}
	h.loads = append(h.loads, q)
	if h.pool.Shared() {
		h.pool.Advance(float64(now))
	}
	return true
}

// identify describes prompt blocks from..to-1 of a request.
func (s *Scheduler) identify(q *sequence, from, to int) []hostcache.Block {
	list := make([]hostcache.Block, 0, to-from)
	for i := from; i < to; i++ {
		list = append(list, s.identity(q, i))
	}
	return list
}

func (s *Scheduler) identity(q *sequence, i int) hostcache.Block {
	b := hostcache.Block{Key: q.sequence[i], Local: q.local[i], Position: i}
	if i > 0 {
		b.HasParent, b.Parent = true, q.sequence[i-1]
	}
	return b
}

// readUntil returns when the store that reads a unit is complete, 0 if none does.
func (h *host) readUntil(u int32) engine.Time {
	if t := h.reader(u); t != nil && !h.pool.Shared() {
		return engine.Time(t.Done)
	}
	return 0
}

// reader returns the unfinished store that reads a unit, or nil.
func (h *host) reader(u int32) *hostcache.Transfer {
	if int(u) >= len(h.reading) {
		return nil
	}
	t := h.reading[u]
	if t == nil || t.Finished {
		return nil
	}
	return t
}

// fence lets the pass compute only after fresh units of a request are no longer read.
func (h *host) fence(units []int32) {
	for _, u := range units {
		h.computeNotBefore = max(h.computeNotBefore, h.readUntil(u))
	}
}

// fencePreempted does the same for a request that lost its units while its last store is under way.
func (h *host) fencePreempted(q *sequence) {
	if t := q.lastStore; t != nil && !t.Finished && !h.pool.Shared() {
		h.computeNotBefore = max(h.computeNotBefore, engine.Time(t.Done))
	}
}

// endLoad forgets the load of a request that is admitted or cancelled.
func (h *host) endLoad(q *sequence) {
	h.loads = without(h.loads, q)
	if !q.load.complete {
		h.notLoading(q.load.transfer)
	}
	q.load = nil
}

func (h *host) notLoading(t *hostcache.Transfer) {
	for _, b := range t.Blocks {
		if h.loading[b.Key]--; h.loading[b.Key] == 0 {
			delete(h.loading, b.Key)
		}
	}
}

// prepareStores copies the prompt blocks that this pass completes to the host.
func (s *Scheduler) prepareStores() {
	for _, q := range s.running {
		if q.pass == s.record.opened && q.nextStore < q.prompt/s.blockSize {
			s.prepareStore(q)
		}
	}
}

func (s *Scheduler) prepareStore(q *sequence) {
	h := s.host
	end := min(q.computed, q.prompt) / s.blockSize
	if q.nextStore >= end {
		return
	}
	blocks := make([]hostcache.Block, 0, end-q.nextStore)
	units := make([]int32, 0, end-q.nextStore)
	for i := q.nextStore; i < end; i++ {
		if h.pool.State(q.sequence[i]) != hostcache.Absent {
			continue
		}
		if h.reader(q.units[i]) != nil {
			return
		}
		blocks, units = append(blocks, s.identity(q, i)), append(units, q.units[i])
	}
	if len(blocks) == 0 {
		q.nextStore = end
		return
	}
	t := h.port.Prepare(blocks, q.sequence[q.nextStore:end], &owner{request: q.req, units: units}, float64(s.record.Start))
	if t == nil {
		return
	}
	for _, u := range units {
		if int(u) >= len(h.reading) {
			h.reading = append(h.reading, make([]*hostcache.Transfer, int(u)+1-len(h.reading))...)
		}
		h.reading[u] = t
		if h.pool.Shared() {
			s.pool.Hold(u)
		}
	}
	h.prepared = append(h.prepared, t)
	q.lastStore, q.nextStore = t, end
	s.touch(s.keys(q))
}

// meetHost is a boundary: transfers that are due become visible, prepared stores start, and events are told.
func (s *Scheduler) meetHost(now engine.Time) {
	h := s.host
	h.pool.Advance(float64(now))
	for _, t := range h.prepared {
		h.port.Store(t, float64(now))
	}
	if len(h.prepared) > 0 {
		h.prepared = h.prepared[:0]
		h.pool.Advance(float64(now))
	}
	s.announceHost()
	for _, t := range h.port.TakeDone() {
		o := t.Owner.(*owner)
		for i := len(o.units) - 1; i >= 0 && h.pool.Shared(); i-- {
			s.pool.Release(o.units[i])
		}
		if t.Load && o.q.serial == o.serial && o.q.load != nil && o.q.load.transfer == t {
			s.completeLoad(o.q)
		}
	}
	if h.port.See() {
		h.deferred.wake()
	}
}

// announceHost tells the changes of residency since the last boundary.
func (s *Scheduler) announceHost() {
	e := &s.host.port.Events
	for _, ev := range e.List {
		sequence, local := e.Blocks(ev)
		s.log.Open(ev)
		for i := range sequence {
			s.log.Block(sequence[i], local[i])
		}
	}
	e.Reset()
}

// completeLoad makes the loaded blocks cached ones of the request. The next pass admits it.
func (s *Scheduler) completeLoad(q *sequence) {
	s.host.notLoading(q.load.transfer)
	q.load.complete = true
	q.allocated = min(q.load.prefix*s.blockSize, q.prompt)
	s.publish(q, q.load.base, q.load.prefix)
}

// withdrawLoad gives up the load of a request that is cancelled.
func (s *Scheduler) withdrawLoad(q *sequence, now engine.Time) {
	h := s.host
	if q.load == nil {
		return
	}
	if !q.load.complete {
		h.port.Cancel(q.load.transfer, float64(now))
		h.deferred.wake()
	}
	h.endLoad(q)
}

// transferKinds are the pool's kinds of steps in the words of a pass record.
var transferKinds = [...]engine.TransferKind{
	hostcache.StorePrepared: engine.StorePrepared, hostcache.StoreStarted: engine.StoreStarted, hostcache.StoreDone: engine.StoreDone,
	hostcache.LoadStarted: engine.LoadStarted, hostcache.LoadDone: engine.LoadDone, hostcache.LoadCancelled: engine.LoadCancelled,
	hostcache.Evicted: engine.HostEvicted, hostcache.Refused: engine.StoreRefused,
}

// appendTransfers appends what happened in the host tier since the last time.
func (s *Scheduler) appendTransfers(list []engine.Transfer) []engine.Transfer {
	for _, x := range s.host.pool.TakeSteps() {
		t := engine.Transfer{Kind: transferKinds[x.Kind], At: engine.Time(x.At), NotBefore: engine.Time(x.NotBefore), Unfitting: x.Unfitting}
		if x.Transfer != nil {
			t.ID, t.Done = x.Transfer.ID, engine.Time(x.Done)
		}
		if x.Owner != nil {
			t.Request = x.Owner.(*owner).request
		}
		first := len(s.host.keys)
		for _, b := range x.Blocks {
			s.host.keys = append(s.host.keys, b.Key)
		}
		t.Blocks = s.host.keys[first:len(s.host.keys):len(s.host.keys)]
		list = append(list, t)
	}
	return list
}
