// Package prefixindex knows which rank holds which prefix, so that a router can ask how much of a prompt each rank
// could reuse. It is fed by the KV events of all ranks and holds nothing but one bit per block, rank and tier.
//
// A block is known by its sequence hash, which covers everything before it. A rank's match is therefore found by
// looking the prompt's hashes up one after the other; the tree that they form needs no representation.
package prefixindex

import (
	"errors"
	"math/bits"

	"mockbench/kv"
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
	ranks int
	words int              // 64-bit words of one set of ranks
	slots map[uint64]int32 // sequence hash to slot
	sets  []uint64         // a slot is tiers*words words: the ranks of the device tier, then those of the host tier
	free  []int32          // slots without holders
	held  [tiers][]int     // blocks a rank holds, by tier
	total [tiers]int       // sum of held
	alive []uint64         // scratch of Match
	found []int32          // scratch of Match: slots of the prompt's blocks looked up so far
}

// New returns an empty index for ranks 0 to ranks-1.
func New(ranks int) *Index {
	x := &Index{ranks: ranks, words: (ranks + 63) / 64, slots: make(map[uint64]int32)}
	for t := range x.held {
		x.held[t] = make([]int, ranks)
	}
	x.alive = make([]uint64, x.words)
	return x
}

// Ranks returns the number of ranks.
func (x *Index) Ranks() int { return x.ranks }

// Len returns the number of distinct blocks that any rank holds in any tier.
func (x *Index) Len() int { return len(x.slots) }

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
		x.add(rank, ev.Tier, h)
	}
	return nil
}

func (x *Index) remove(rank int, tier kv.Tier, hashes []uint64) error {
	var err error
	for _, h := range hashes {
		if !x.drop(rank, tier, h) {
			err = ErrUnknownBlock
		}
	}
	return err
}

// Has reports whether a rank holds a block in a tier.
func (x *Index) Has(rank int, tier kv.Tier, hash uint64) bool {
	slot, ok := x.slots[hash]
	return ok && x.set(slot, tier)[rank/64]&(1<<(rank%64)) != 0
}

func (x *Index) add(rank int, tier kv.Tier, hash uint64) {
	slot, ok := x.slots[hash]
	if !ok {
		slot = x.newSlot()
		x.slots[hash] = slot
	}
	word, bit := &x.set(slot, tier)[rank/64], uint64(1)<<(rank%64)
	if *word&bit == 0 {
		*word |= bit
		x.held[tier][rank]++
		x.total[tier]++
	}
}

func (x *Index) drop(rank int, tier kv.Tier, hash uint64) bool {
	slot, ok := x.slots[hash]
	if !ok || !x.clear(rank, tier, slot) {
		return false
	}
	x.release(hash, slot)
	return true
}

// clear takes a rank out of the holders of a slot, and reports whether it was one.
func (x *Index) clear(rank int, tier kv.Tier, slot int32) bool {
	word, bit := &x.set(slot, tier)[rank/64], uint64(1)<<(rank%64)
	if *word&bit == 0 {
		return false
	}
	*word &^= bit
	x.held[tier][rank]--
	x.total[tier]--
	return true
}

// release forgets a block that nobody holds any more.
func (x *Index) release(hash uint64, slot int32) {
	for _, word := range x.sets[int(slot)*tiers*x.words : (int(slot)+1)*tiers*x.words] {
		if word != 0 {
			return
		}
	}
	delete(x.slots, hash)
	x.free = append(x.free, slot)
}

// Remove forgets everything a rank holds: its cache was cleared or it is gone.
func (x *Index) Remove(rank int) {
	for hash, slot := range x.slots {
		device := x.clear(rank, kv.Device, slot)
		host := x.clear(rank, kv.HostPinned, slot)
		if device || host {
			x.release(hash, slot)
		}
	}
}

func (x *Index) newSlot() int32 {
	if n := len(x.free); n > 0 {
		slot := x.free[n-1]
		x.free = x.free[:n-1]
		return slot
	}
	slot := int32(len(x.sets) / (tiers * x.words))
	for range tiers * x.words {
		x.sets = append(x.sets, 0)
	}
	return slot
}

func (x *Index) set(slot int32, tier kv.Tier) []uint64 {
	start := (int(slot)*tiers + int(tier)) * x.words
	return x.sets[start : start+x.words]
}

// Match is how much of a prompt one rank holds, in blocks.
type Match struct {
	Device int // leading blocks in the device tier
	Host   int // blocks that follow them without a gap in the host tier
}

// Match returns in dst, by rank, how much of the blocks given by their sequence hashes each rank holds. dst is grown as
// needed.
func (x *Index) Match(hashes []uint64, dst []Match) []Match {
	dst = resize(dst, x.ranks)
	x.found = x.found[:0]
	x.matchDevice(hashes, dst)
	if x.total[kv.HostPinned] > 0 {
		x.matchHost(hashes, dst)
	}
	return dst
}

// matchDevice follows the prompt with the set of ranks that still match; those that fall out have their score.
func (x *Index) matchDevice(hashes []uint64, dst []Match) {
	for w := range x.alive {
		x.alive[w] = ^uint64(0)
	}
	if rest := x.ranks % 64; rest != 0 {
		x.alive[x.words-1] = 1<<rest - 1
	}
	for depth := 0; ; depth++ {
		var holders []uint64
		if depth < len(hashes) {
			holders = x.lookup(hashes, depth)
		}
		var left uint64
		for w := range x.alive {
			out := x.alive[w]
			if holders != nil {
				out &^= holders[w]
			}
			x.alive[w] &^= out
			left |= x.alive[w]
			for ; out != 0; out &= out - 1 {
				dst[w*64+bits.TrailingZeros64(out)].Device = depth
			}
		}
		if left == 0 {
			return
		}
	}
}

func (x *Index) matchHost(hashes []uint64, dst []Match) {
	for rank := range dst {
		depth := dst[rank].Device
		for ; depth < len(hashes); depth++ {
			x.lookup(hashes, depth)
			slot := x.found[depth]
			if slot < 0 || x.set(slot, kv.HostPinned)[rank/64]&(1<<(rank%64)) == 0 {
				break
			}
		}
		dst[rank].Host = depth - dst[rank].Device
	}
}

// lookup returns the ranks that hold block depth of a prompt in the device tier, nil if the block is unknown.
func (x *Index) lookup(hashes []uint64, depth int) []uint64 {
	for len(x.found) <= depth {
		slot, ok := x.slots[hashes[len(x.found)]]
		if !ok {
			slot = -1
		}
		x.found = append(x.found, slot)
	}
	if x.found[depth] < 0 {
		return nil
	}
	return x.set(x.found[depth], kv.Device)
}

func resize(dst []Match, n int) []Match {
	if cap(dst) < n {
		return make([]Match, n)
	}
	dst = dst[:n]
	clear(dst)
	return dst
}
