package router

import "mockbench/kv/prefixindex"

// Sets of ranks that an active block has in the prefix index.
const (
	activeOnce  = iota // ranks with a request that has the block
	activeTwice        // ranks with several
	activeSets
)

// activeBlocks are the distinct prompt blocks of the active requests of each rank. Blocks are named by their nodes in the
// prefix index, which are pinned as long as a request has them.
type activeBlocks struct {
	index   *prefixindex.Index
	several map[spot]int32 // requests beyond the first
}

// spot is a block at a rank.
type spot struct{ node, rank int32 }

// add notes the blocks of a request and returns how many are new at its rank.
func (a *activeBlocks) add(rank int, nodes []int32) (fresh int) {
	word, bit := rank/64, uint64(1)<<(rank%64)
	for _, n := range nodes {
		if once := &a.index.Set(n, activeOnce)[word]; *once&bit == 0 {
			*once |= bit
			fresh++
			continue
		}
		a.index.Set(n, activeTwice)[word] |= bit
		a.several[spot{n, int32(rank)}]++
	}
	return fresh
}

// remove takes the blocks of a request off and returns how many its rank has no more.
func (a *activeBlocks) remove(rank int, nodes []int32) (gone int) {
	word, bit := rank/64, uint64(1)<<(rank%64)
	for _, n := range nodes {
		twice := &a.index.Set(n, activeTwice)[word]
		if *twice&bit == 0 {
			a.index.Set(n, activeOnce)[word] &^= bit
			gone++
			continue
		}
		p := spot{n, int32(rank)}
		if left := a.several[p] - 1; left > 0 {
			a.several[p] = left
		} else {
			delete(a.several, p)
			*twice &^= bit
		}
	}
	return gone
}
