package eventplane

import (
	"cmp"
	"maps"
	"slices"

	"mockbench/kv"
)

// dumpBlocks is the longest run of blocks that a dump puts into one event.
const dumpBlocks = 128

// resident is a block that a tier of the rank holds.
type resident struct {
	local     uint64
	parent    uint64
	order     uint64 // of arrival
	copies    int32
	hasParent bool
}

// index is the content of one tier as its events tell it. It also finds out which removals matter: those of the last
// copy.
type index struct {
	blocks map[uint64]resident // by sequence hash
	order  uint64
}

// store takes in a stored event.
func (x *index) store(e kv.Event, sequence, local []uint64) {
	if x.blocks == nil {
		x.blocks = make(map[uint64]resident)
	}
	parent, hasParent := e.Parent, e.HasParent
	for i, hash := range sequence {
		b, known := x.blocks[hash]
		if !known {
			x.order++
			b = resident{local: local[i], parent: parent, order: x.order, hasParent: hasParent}
		}
		b.copies++
		x.blocks[hash] = b
		parent, hasParent = hash, true
	}
}

// remove takes in the removal of one copy of a block and reports whether it was the last one. An unknown block counts
// as such.
func (x *index) remove(hash uint64) bool {
	b, known := x.blocks[hash]
	if known && b.copies > 1 {
		b.copies--
		x.blocks[hash] = b
		return false
	}
	delete(x.blocks, hash)
	return true
}

// clone returns a copy that later events do not change.
func (x *index) clone() index { return index{blocks: maps.Clone(x.blocks), order: x.order} }

// dump calls f with stored events that rebuild the content when they are applied in order to an empty tier: parents
// come before children, runs of single children are one event. A block whose parent is not resident starts an event
// that names it.
func (x *index) dump(tier kv.Tier, f func(e kv.Event, sequence, local []uint64)) {
	children, roots := x.tree()
	var sequence, local []uint64
	for pending := roots; len(pending) > 0; {
		hash := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		first := x.blocks[hash]
		sequence, local = append(sequence[:0], hash), append(local[:0], first.local)
		next := children[hash]
		for len(next) == 1 && len(sequence) < dumpBlocks {
			hash = next[0]
			sequence, local = append(sequence, hash), append(local, x.blocks[hash].local)
			next = children[hash]
		}
		f(kv.Event{Kind: kv.Stored, Tier: tier, HasParent: first.hasParent, Parent: first.parent,
			Position: -1, Count: int32(len(sequence))}, sequence, local)
		pending = append(pending, next...)
	}
}

// tree returns the resident children of each block, and the blocks without resident parent, both newest first.
func (x *index) tree() (children map[uint64][]uint64, roots []uint64) {
	children = make(map[uint64][]uint64, len(x.blocks))
	order := make([]uint64, 0, len(x.blocks))
	for hash := range x.blocks {
		order = append(order, hash)
	}
	slices.SortFunc(order, func(a, b uint64) int { return cmp.Compare(x.blocks[b].order, x.blocks[a].order) })
	for _, hash := range order {
		b := x.blocks[hash]
		if _, resident := x.blocks[b.parent]; b.hasParent && resident {
			children[b.parent] = append(children[b.parent], hash)
		} else {
			roots = append(roots, hash)
		}
	}
	return children, roots
}
