package router

import "math/bits"

// activeBlocks are the distinct prompt blocks of the active requests of each rank. Blocks are named by their nodes in a
// prefix index, which are pinned as long as a request has them.
type activeBlocks struct {
	ranks, words int
	sets         []uint64       // a node is 2*words words: ranks with a request that has the block, and with several
	several      map[spot]int32 // requests beyond the first
	alive        []uint64       // scratch
}

// spot is a block at a rank.
type spot struct{ node, rank int32 }

func newActiveBlocks(ranks int) *activeBlocks {
	words := (ranks + 63) / 64
	return &activeBlocks{ranks: ranks, words: words, several: map[spot]int32{}, alive: make([]uint64, words)}
}

// of returns the two sets of a node.
func (a *activeBlocks) of(node int32) []uint64 { return a.sets[int(node)*2*a.words:][:2*a.words] }

// add notes the blocks of a request and returns how many are new at its rank.
func (a *activeBlocks) add(rank int, nodes []int32) (fresh int) {
	word, bit := rank/64, uint64(1)<<(rank%64)
	for _, n := range nodes {
		for len(a.sets) < (int(n)+1)*2*a.words {
			a.sets = append(a.sets, 0)
		}
		set := a.of(n)
		if set[word]&bit == 0 {
			set[word] |= bit
			fresh++
			continue
		}
		set[a.words+word] |= bit
		a.several[spot{n, int32(rank)}]++
	}
	return fresh
}

// remove takes the blocks of a request off and returns how many its rank has no more.
func (a *activeBlocks) remove(rank int, nodes []int32) (gone int) {
	word, bit := rank/64, uint64(1)<<(rank%64)
	for _, n := range nodes {
		set := a.of(n)
		if set[a.words+word]&bit == 0 {
			set[word] &^= bit
			gone++
			continue
		}
		p := spot{n, int32(rank)}
		if left := a.several[p] - 1; left > 0 {
			a.several[p] = left
		} else {
			delete(a.several, p)
			set[a.words+word] &^= bit
		}
	}
	return gone
}

// missing returns in dst, by rank, how many blocks of a prompt its active requests do not share from the start.
func (a *activeBlocks) missing(nodes []int32, dst []int) []int {
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
		if depth < len(nodes) && int(nodes[depth]) < len(a.sets)/(2*a.words) {
			holders = a.of(nodes[depth])
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
				dst[w*64+bits.TrailingZeros64(out)] = len(nodes) - depth
			}
		}
		if left == 0 {
			return dst
		}
	}
}
