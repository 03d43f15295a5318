package router

import (
	"math/bits"

	"mockbench/kv/hashindex"
)

// activeBlocks are the distinct prompt blocks of the active requests of each rank.
type activeBlocks struct {
	ranks, words int
	slots        hashindex.Index
	sets         []uint64       // a slot is 2*words words: ranks with a request that has the block, and with several
	several      map[spot]int32 // requests beyond the first
	holders      []int32        // ranks, by slot
	free         []int32
	alive        []uint64 // scratch
}

// spot is a block at a rank.
type spot struct{ slot, rank int32 }

func newActiveBlocks(ranks int) *activeBlocks {
	words := (ranks + 63) / 64
	return &activeBlocks{ranks: ranks, words: words, several: map[spot]int32{}, alive: make([]uint64, words)}
}

// add notes the blocks of a request and returns how many are new at its rank.
func (a *activeBlocks) add(rank int, sequence []uint64) (fresh int) {
	word, bit := rank/64, uint64(1)<<(rank%64)
	for _, h := range sequence {
		slot, ok := a.slots.Get(h)
		if !ok {
			slot = a.newSlot()
			a.slots.Put(h, slot)
		}
		set := a.sets[int(slot)*2*a.words:][:2*a.words]
		if set[word]&bit == 0 {
			set[word] |= bit
			a.holders[slot]++
			fresh++
			continue
		}
		set[a.words+word] |= bit
		a.several[spot{slot, int32(rank)}]++
	}
	return fresh
}

// remove takes the blocks of a request off and returns how many its rank has no more.
func (a *activeBlocks) remove(rank int, sequence []uint64) (gone int) {
	word, bit := rank/64, uint64(1)<<(rank%64)
	for _, h := range sequence {
		slot, _ := a.slots.Get(h)
		set := a.sets[int(slot)*2*a.words:][:2*a.words]
		if set[a.words+word]&bit != 0 {
			p := spot{slot, int32(rank)}
			if n := a.several[p] - 1; n > 0 {
				a.several[p] = n
			} else {
				delete(a.several, p)
				set[a.words+word] &^= bit
			}
			continue
		}
		set[word] &^= bit
		gone++
		if a.holders[slot]--; a.holders[slot] == 0 {
			a.slots.Remove(h)
			a.free = append(a.free, slot)
		}
	}
	return gone
}

func (a *activeBlocks) newSlot() int32 {
	if n := len(a.free); n > 0 {
		slot := a.free[n-1]
		a.free = a.free[:n-1]
		return slot
	}
	a.holders = append(a.holders, 0)
	for range 2 * a.words {
		a.sets = append(a.sets, 0)
	}
	return int32(len(a.holders) - 1)
}

// missing returns in dst, by rank, how many blocks of a prompt its active requests do not share from the start.
func (a *activeBlocks) missing(sequence []uint64, dst []int) []int {
	if cap(dst) < a.ranks {
		dst = make([]int, a.ranks)
	}
	dst = dst[:a.ranks]
	for w := range a.alive {
		a.alive[w] = ^uint64(0)
	}
	if rest := a.ranks % 64; rest != 0 {
		a.alive[a.words-1] = 1<<rest - 1
	}
	for depth := 0; ; depth++ {
		var holders []uint64
		if depth < len(sequence) {
			if slot, ok := a.slots.Get(sequence[depth]); ok {
				holders = a.sets[int(slot)*2*a.words:][:a.words]
			}
		}
		left := uint64(0)
		for w := range a.alive {
			out := a.alive[w]
			if holders != nil {
				out &^= holders[w]
			}
			a.alive[w] &^= out
			left |= a.alive[w]
			for ; out != 0; out &= out - 1 {
				dst[w*64+bits.TrailingZeros64(out)] = len(sequence) - depth
			}
		}
		if left == 0 {
			return dst
		}
	}
}
