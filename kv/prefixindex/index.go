// Package prefixindex knows which rank holds which prefix, so that a router can ask how much of a prompt each rank
// could reuse. It is fed by the KV events of all ranks and holds nothing but one bit per block, rank and tier.
//
// A block is known by its sequence hash, which covers everything before it. A rank's match is therefore found by
// looking the prompt's hashes up one after the other; the tree that they form needs no representation. All ranks share
// one node per block; who asks often for the same blocks keeps the numbers of their nodes, see nodes.go.
package prefixindex

import (
	"errors"

	"mockbench/kv"
	"mockbench/kv/hashindex"
)

// What Apply finds wrong with an event. The rest of the events is applied all the same.
var (
	ErrUnknownParent = errors.New("stored event: the rank does not hold the parent block")
	ErrUnknownBlock  = errors.New("removed event: the rank does not hold the block")
	ErrCycle         = errors.New("stored event: a block is its own parent")
)

const tiers = int(kv.HostPinned) + 1

// Index is the blocks of a fixed number of ranks, numbered from 0. It is not safe for concurrent use.
type Index struct {
	ranks  int
	words  int             // 64-bit words of one set of ranks
	slots  hashindex.Index // of blocks, by sequence hash
	nodes  nodes
	host   []uint64     // a set for each node; nil until a rank holds a block in its host tier
	blocks int          // with a holder
	held   [tiers][]int // blocks a rank holds, by tier
	total  [tiers]int   // sum of held
	alive  []uint64     // scratch of matches
	depths []int        // scratch of matches
	found  []int32      // scratch of Match

	fetched uint64 // so that the compiler lets Fetch read
}

// New returns an empty index for ranks 0 to ranks-1.
func New(ranks int) *Index { return WithSets(ranks, 0) }

// WithSets is New for a caller that keeps so many sets of ranks of its own for every node, see Index.Set.
func WithSets(ranks, sets int) *Index {
	words := (ranks + 63) / 64
	x := &Index{ranks: ranks, words: words, nodes: nodes{stride: device + (1+sets)*words}, alive: make([]uint64, words)}
	for t := range x.held {
		x.held[t] = make([]int, ranks)
	}
	return x
}

// Ranks returns the number of ranks.
func (x *Index) Ranks() int { return x.ranks }

// Len returns the number of distinct blocks that any rank holds in any tier.
func (x *Index) Len() int { return x.blocks }

// Held returns the number of blocks one rank holds in one tier.
func (x *Index) Held(rank int, tier kv.Tier) int { return x.held[tier][rank] }

// Apply takes in events of one rank, in order. It always applies all it can; the error is the first that something was
// wrong with. The parent of a block stored in the host tier is not checked, since it may live in either tier.
func (x *Index) Apply(rank int, events *kv.Events) error {
	var first error
	for _, ev := range events.List {
		hashes, _ := events.Blocks(ev)
		var err error
		if ev.Kind == kv.Stored {
			err = x.store(rank, ev, hashes)
		} else {
			err = x.remove(rank, ev.Tier, hashes)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (x *Index) store(rank int, ev kv.Event, hashes []uint64) error {
	if ev.HasParent {
		for _, h := range hashes {
			if h == ev.Parent {
				return ErrCycle
			}
		}
		if ev.Tier == kv.Device && !x.Has(rank, kv.Device, ev.Parent) {
			return ErrUnknownParent
		}
	}
	for _, h := range hashes {
		x.Store(rank, ev.Tier, x.node(h))
	}
	return nil
}

func (x *Index) remove(rank int, tier kv.Tier, hashes []uint64) error {
	var err error
	for _, h := range hashes {
		n, ok := x.slots.Get(h)
		if !ok || !x.Drop(rank, tier, n) {
			err = ErrUnknownBlock
		}
	}
	return err
}

// Has reports whether a rank holds a block in a tier.
func (x *Index) Has(rank int, tier kv.Tier, hash uint64) bool {
	n, ok := x.slots.Get(hash)
	return ok && x.holds(rank, tier, n)
}

// Remove forgets everything a rank holds: its cache was cleared or it is gone.
func (x *Index) Remove(rank int) {
	for n := range x.nodes.len() {
		for tier := range kv.Tier(tiers) {
			if x.holds(rank, tier, n) {
				x.Drop(rank, tier, n)
			}
		}
	}
}
