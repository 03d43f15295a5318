package prefixindex

import (
	"math/bits"

	"mockbench/kv"
)

// Match is how much of a prompt one rank holds, in blocks.
type Match struct {
	Device int // leading blocks in the device tier
	Host   int // blocks that follow them without a gap in the host tier
}

// Match returns in dst, by rank, how much of the blocks given by their sequence hashes each rank holds. dst is grown as
// needed.
func (x *Index) Match(hashes []uint64, dst []Match) []Match {
	x.found = x.found[:0]
	for _, h := range hashes {
		n, ok := x.slots.Get(h)
		if !ok {
			break
		}
		x.found = append(x.found, n)
	}
	return x.MatchNodes(x.found, dst)
}

// MatchNodes is Match for the nodes of a prompt's blocks.
func (x *Index) MatchNodes(nodes []int32, dst []Match) []Match {
	dst = resize(dst, x.ranks)
	x.depths = x.leading(device, nodes, x.depths)
	for rank, depth := range x.depths {
		dst[rank].Device = depth
		if x.total[kv.HostPinned] == 0 {
			continue
		}
		for depth < len(nodes) && x.holds(rank, kv.HostPinned, nodes[depth]) {
			depth++
		}
		dst[rank].Host = depth - dst[rank].Device
	}
	return dst
}

// Leading returns in dst, by rank, in how many of the nodes' sets with a number a rank is without a gap, from the first
// node on.
func (x *Index) Leading(number int, nodes []int32, dst []int) []int {
	return x.leading(device+(1+number)*x.words, nodes, dst)
}

// leading follows the nodes with the set of ranks that were in all sets so far. Those that drop out have their result, so
// the cost is that of nodes and ranks, not of their product.
func (x *Index) leading(offset int, nodes []int32, dst []int) []int {
	dst = resize(dst, x.ranks)
	alive := x.alive
	for w := range alive {
		alive[w] = ^uint64(0)
	}
	if rest := x.ranks % 64; rest != 0 {
		alive[len(alive)-1] = 1<<rest - 1
	}
	for depth, n := range nodes {
		left := uint64(0)
		for w, members := range x.nodes.row(n)[offset:][:len(alive)] {
			out := alive[w] &^ members
			alive[w] &= members
			left |= alive[w]
			for ; out != 0; out &= out - 1 {
				dst[w*64+bits.TrailingZeros64(out)] = depth
			}
		}
		if left == 0 {
			return dst
		}
	}
	for w, out := range alive {
		for ; out != 0; out &= out - 1 {
			dst[w*64+bits.TrailingZeros64(out)] = len(nodes)
		}
	}
	return dst
}

func resize[T any](dst []T, n int) []T {
	if cap(dst) < n {
		return make([]T, n)
	}
	dst = dst[:n]
	clear(dst)
	return dst
}
