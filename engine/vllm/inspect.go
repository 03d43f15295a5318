package vllm

import (
	"mockbench/engine"
	"mockbench/kv/hostcache"
	"mockbench/kv/pool"
)

// blockStates are the pool's states in the words of a snapshot.
var blockStates = [...]engine.BlockState{
	pool.Empty: engine.BlockFree, pool.Active: engine.BlockActive, pool.Shared: engine.BlockShared, pool.Idle: engine.BlockCached,
}

// Inspect implements engine.Scheduler.
func (s *Scheduler) Inspect(to *engine.Snapshot) {
	to.Rank, to.BlockSize, to.Time, to.Load = s.rank, s.blockSize, engine.Time(s.pool.Now), s.Load()
	to.Blocks = to.Blocks[:0]
	to.Counts = [engine.BlockHost + 1]int{}
	for u := range int32(s.pool.Capacity()) {
		state := blockStates[s.pool.State(u)]
		if state == engine.BlockCached && s.host != nil && s.host.pool.State(s.pool.Info(u).Hash) == hostcache.Resident {
			state = engine.BlockHost
		}
		to.Blocks = append(to.Blocks, state)
		to.Counts[state]++
	}
	to.Evictions = s.pool.TakeEvicted(to.Evictions[:0])
	to.Running, to.Waiting = to.Running[:0], to.Waiting[:0]
	for _, q := range s.running[:min(len(s.running), engine.SnapshotRows)] {
		to.Running = append(to.Running, q.state())
	}
	for q := s.waiting.head; q != nil && len(to.Waiting) < engine.SnapshotRows; q = q.next {
		to.Waiting = append(to.Waiting, q.state())
	}
	to.Queued, to.Wait = s.queued(), s.record.Hint
	s.inspectHost(to)
}

func (s *Scheduler) inspectHost(to *engine.Snapshot) {
	to.Deferred, to.Host = to.Deferred[:0], engine.HostState{}
	if s.host == nil {
		return
	}
	u := s.host.pool.Usage()
	to.Host = engine.HostState{Capacity: u.Capacity, Resident: u.Resident, Pending: u.Pending, Pinned: u.Pinned,
		Shared: s.host.pool.Shared(), ComputeNotBefore: s.host.computeNotBefore}
	for _, e := range s.host.deferred.entries[s.host.deferred.head:] {
		if e.alive() && len(to.Deferred) < engine.SnapshotRows {
			to.Deferred = append(to.Deferred, e.q.state())
		}
	}
}

func (q *sequence) state() engine.RequestState {
	r := engine.RequestState{Request: q.req, Computed: q.computed, Length: q.length, Generated: q.generated(),
		Cached: q.cached, Blocks: len(q.units), Since: q.since}
	switch {
	case q.place == inDeferred && q.load != nil && !q.load.complete:
		r.Phase = engine.PhaseLoading
	case q.place == inDeferred:
		r.Phase = engine.PhaseDeferred
	case q.place == inRunning && q.computed < q.prompt:
		r.Phase = engine.PhasePrefill
	case q.place == inRunning:
		r.Phase = engine.PhaseDecode
	case q.preempted:
		r.Phase = engine.PhasePreempted
	}
	return r
}

// Block implements engine.Scheduler.
func (s *Scheduler) Block(n int32) engine.BlockInfo {
	i := s.pool.Info(n)
	b := engine.BlockInfo{Block: n, State: blockStates[i.State], References: i.Refs, Hits: i.Hits, Since: engine.Time(i.Since)}
	if i.Cached {
		b.Hash, b.Parent, b.HasParent, b.Position = i.Hash, i.Parent, i.Position > 0, i.Position
	}
	for _, q := range s.running {
		for position, u := range q.units {
			if u == n {
				b.Requests = append(b.Requests, q.req)
				if !i.Cached {
					b.Position = position
				}
			}
		}
	}
	return b
}
