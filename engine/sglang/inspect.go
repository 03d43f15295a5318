package sglang

import (
	"mockbench/engine"
	"mockbench/kv/radix"
)

// Inspect implements engine.Scheduler.
func (s *Scheduler) Inspect(v *engine.Snapshot) {
	v.Rank, v.Time, v.BlockSize, v.Load = s.rank, s.pass.End, s.page, s.Load()
	v.Ratio = engine.TokenRatio{Now: s.ratio.now, Min: s.ratio.min, Init: s.ratio.init}
	v.Blocks = s.states(v.Blocks)
	v.Counts = [len(v.Counts)]int{}
	for _, state := range v.Blocks {
		v.Counts[state]++
	}
	v.Evictions = v.Evictions[:0]
	v.Running, v.Waiting = v.Running[:0], v.Waiting[:0]
	v.Queued, v.Wait = s.waiting.len()+len(s.ready)+len(s.pending), s.pass.Hint
	for _, q := range s.running[:min(len(s.running), engine.SnapshotRows)] {
		v.Running = append(v.Running, s.row(q, engine.PhaseDecode))
	}
	for _, q := range s.waiting.list[:min(s.waiting.len(), engine.SnapshotRows)] {
		phase := engine.PhaseWaiting
		switch {
		case q.materialised > 0:
			phase = engine.PhasePrefill
		case q.admitted:
			phase = engine.PhasePreempted
		}
		v.Waiting = append(v.Waiting, s.row(q, phase))
	}
}

func (s *Scheduler) row(q *sequence, phase engine.Phase) engine.RequestState {
	return engine.RequestState{Request: q.req, Phase: phase, Computed: q.materialised, Length: q.length(),
		Generated: len(q.generated), Cached: q.first, Blocks: len(q.pages), Since: q.since}
}

// states tells the state of every page: private pages and locked paths are active, the rest of the tree is cached.
func (s *Scheduler) states(list []engine.BlockState) []engine.BlockState {
	if cap(list) < s.pool.Total() {
		list = make([]engine.BlockState, s.pool.Total())
	}
	list = list[:s.pool.Total()]
	clear(list)
	for _, q := range s.sequences {
		for _, page := range q.pages {
			list[page] = engine.BlockActive
		}
	}
	s.pool.Walk(func(n *radix.Node, _ int) {
		state := engine.BlockCached
		switch {
		case n.Locks() > 1:
			state = engine.BlockShared
		case n.Locks() == 1:
			state = engine.BlockActive
		}
		for _, page := range n.Pages() {
			list[page] = state
		}
	})
	return list
}

// Block implements engine.Scheduler.
func (s *Scheduler) Block(n int32) engine.BlockInfo {
	info := engine.BlockInfo{Block: n, State: s.states(nil)[n]}
	if s.pages.announced[n] {
		info.Hash = s.pages.hash[n]
	}
	for _, q := range s.sequences {
		for i, page := range q.pages {
			if page != n {
				continue
			}
			info.Requests = append(info.Requests, q.req)
			info.References++
			info.Position = i
			if i > 0 && s.pages.announced[q.pages[i-1]] {
				info.Parent, info.HasParent = s.pages.hash[q.pages[i-1]], true
			}
		}
	}
	return info
}

// Tree implements engine.TreeInspector with the radix tree.
func (s *Scheduler) Tree(limit int) engine.PrefixTree {
	var branches []engine.Branch
	var path []int // indexes of the nodes on the way down
	s.pool.Walk(func(n *radix.Node, depth int) {
		pages := n.Pages()
		b := engine.Branch{Parent: -1, Blocks: len(pages), Requests: n.Locks()}
		if depth > 0 {
			b.Parent = path[depth-1]
		}
		if last := pages[len(pages)-1]; s.pages.announced[last] {
			b.Hash = s.pages.hash[last]
		}
		path = append(path[:depth], len(branches))
		branches = append(branches, b)
	})
	return engine.Widest(branches, limit)
}
