package prefixindex

import (
	"math/bits"

	"mockbench/kv"
)

// Unknown is the node of a block that the index does not know.
const Unknown = -1

// node returns the node of a block, a new one if there is none.
func (x *Index) node(hash uint64) int32 {
	if len(x.free) == 0 {
		x.extend()
	}
	last := len(x.free) - 1
	n := x.free[last]
	x.hashes[n] = hash
	has, fresh := x.nodes.Add(hash, n, x.hashes)
	if fresh {
		x.free = x.free[:last]
	}
	return has
}

// extend adds a free node.
func (x *Index) extend() {
	x.free = append(x.free, int32(len(x.hashes)))
	x.hashes = append(x.hashes, 0)
	x.pins = append(x.pins, 0)
	for t := range x.sets {
		for w := 0; w < x.words && (t == int(kv.Device) || x.sets[t] != nil); w++ {
			x.sets[t] = append(x.sets[t], 0)
		}
	}
}

// Pin appends the nodes of blocks to dst. They keep their numbers until as many calls of Unpin.
func (x *Index) Pin(hashes []uint64, dst []int32) []int32 {
	for _, h := range hashes {
		n := x.node(h)
		x.pins[n]++
		dst = append(dst, n)
	}
	return dst
}

// Unpin takes back a Pin.
func (x *Index) Unpin(nodes []int32) {
	for _, n := range nodes {
		if x.pins[n]--; x.pins[n] == 0 {
			x.forget(n)
		}
	}
}

// Node returns the node of a block, Unknown if nobody holds or pins it.
func (x *Index) Node(hash uint64) int32 {
	n, ok := x.nodes.Get(hash, x.hashes)
	if !ok {
		return Unknown
	}
	return n
}

// StoreHash is Store for a block that is not pinned, and returns its node.
func (x *Index) StoreHash(rank int, tier kv.Tier, hash uint64) int32 {
	n := x.node(hash)
	x.Store(rank, tier, n)
	return n
}

// Store notes that a rank holds a block. The node keeps its number as long as any rank does.
func (x *Index) Store(rank int, tier kv.Tier, node int32) {
	if x.sets[tier] == nil {
		x.sets[tier] = make([]uint64, len(x.hashes)*x.words)
	}
	word, bit := x.spot(rank, tier, node)
	if *word&bit != 0 {
		return
	}
	if !x.anyHolder(node) {
		x.blocks++
	}
	*word |= bit
	x.held[tier][rank]++
	x.total[tier]++
}

// Drop notes that a rank does not hold a block any more, and reports whether it did.
func (x *Index) Drop(rank int, tier kv.Tier, node int32) bool {
	if !x.holds(rank, tier, node) {
		return false
	}
	word, bit := x.spot(rank, tier, node)
	*word &^= bit
	x.held[tier][rank]--
	x.total[tier]--
	if !x.anyHolder(node) {
		x.blocks--
		x.forget(node)
	}
	return true
}

// forget frees a node that nobody needs.
func (x *Index) forget(node int32) {
	if x.pins[node] == 0 && !x.anyHolder(node) {
		x.nodes.Remove(x.hashes[node], x.hashes)
		x.free = append(x.free, node)
	}
}

func (x *Index) anyHolder(node int32) bool {
	for t := range x.sets {
		if x.sets[t] == nil {
			continue
		}
		for _, word := range x.sets[t][int(node)*x.words:][:x.words] {
			if word != 0 {
				return true
			}
		}
	}
	return false
}

func (x *Index) holds(rank int, tier kv.Tier, node int32) bool {
	if x.sets[tier] == nil {
		return false
	}
	word, bit := x.spot(rank, tier, node)
	return *word&bit != 0
}

func (x *Index) spot(rank int, tier kv.Tier, node int32) (word *uint64, bit uint64) {
	return &x.sets[tier][int(node)*x.words+rank/64], 1 << (rank % 64)
}

// MatchNodes is Match for the nodes of a prompt's blocks.
func (x *Index) MatchNodes(nodes []int32, dst []Match) []Match {
	dst = resize(dst, x.ranks)
	for w := range x.alive {
		x.alive[w] = ^uint64(0)
	}
	if rest := x.ranks % 64; rest != 0 {
		x.alive[x.words-1] = 1<<rest - 1
	}
	left := true
	for depth := 0; left; depth++ {
		if depth == len(nodes) || len(x.sets[kv.Device]) == 0 {
			x.fallOut(nil, depth, dst)
			break
		}
		left = x.fallOut(x.sets[kv.Device][int(nodes[depth])*x.words:], depth, dst)
	}
	if x.total[kv.HostPinned] > 0 {
		x.matchHost(nodes, dst)
	}
	return dst
}

// fallOut gives the ranks that are alive and not among the holders of a block their score, and reports whether any is
// left.
func (x *Index) fallOut(holders []uint64, depth int, dst []Match) bool {
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
	return left != 0
}

func (x *Index) matchHost(nodes []int32, dst []Match) {
	for rank := range dst {
		depth := dst[rank].Device
		for depth < len(nodes) && x.holds(rank, kv.HostPinned, nodes[depth]) {
			depth++
		}
		dst[rank].Host = depth - dst[rank].Device
	}
}

func resize(dst []Match, n int) []Match {
	if cap(dst) < n {
		return make([]Match, n)
	}
	dst = dst[:n]
	clear(dst)
	return dst
}
