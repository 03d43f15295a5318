package vllm

import (
	"cmp"
	"slices"

	"mockbench/engine"
)

// cachedBlock is a hash that the pool holds, perhaps more than once.
type cachedBlock struct {
	hash, parent uint64
	position     int
	refs         int
	children     int
	node         int // that it belongs to
}

// Tree implements engine.TreeInspector: the cached blocks of the pool, joined by their parents. Blocks of equal content
// count once. A block whose parent has been evicted begins a tree of its own: it can be matched again when the parent
// comes back.
func (s *Scheduler) Tree(limit int) engine.PrefixTree {
	list := s.cachedBlocks()
	index := make(map[uint64]int, len(list))
	for i := range list {
		index[list[i].hash] = i
	}
	above := func(b *cachedBlock) *cachedBlock {
		if i, ok := index[b.parent]; ok && b.position > 0 && list[i].position == b.position-1 {
			return &list[i]
		}
		return nil
	}
	for i := range list {
		if up := above(&list[i]); up != nil {
			up.children++
		}
	}
	var branches []engine.Branch
	for i := range list {
		b := &list[i]
		up := above(b)
		if up != nil && up.children == 1 && up.refs == b.refs {
			b.node = up.node
			branches[b.node].Blocks++
			branches[b.node].Hash = b.hash
			continue
		}
		branch := engine.Branch{Parent: -1, Blocks: 1, Requests: b.refs, Hash: b.hash}
		if up != nil {
			branch.Parent = up.node
		}
		b.node = len(branches)
		branches = append(branches, branch)
	}
	return engine.Widest(branches, limit)
}

// cachedBlocks returns the hashes in the pool, those near the beginning of a sequence first.
func (s *Scheduler) cachedBlocks() []cachedBlock {
	var list []cachedBlock
	for u := range int32(s.pool.Capacity()) {
		if i := s.pool.Info(u); i.Cached {
			list = append(list, cachedBlock{hash: i.Hash, parent: i.Parent, position: i.Position, refs: i.Refs})
		}
	}
	slices.SortFunc(list, func(a, b cachedBlock) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.hash, b.hash))
	})
	n := 0
	for _, b := range list {
		if n > 0 && list[n-1].hash == b.hash {
			list[n-1].refs += b.refs
			continue
		}
		list[n] = b
		n++
	}
	return list[:n]
}
