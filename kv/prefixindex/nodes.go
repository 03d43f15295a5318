package prefixindex

import "mockbench/kv"

// Unknown is the node of a block that the index does not know.
const Unknown = -1

// nodes is what is known of blocks, each in a row of 64-bit words, so that all of it comes with one cache line: its
// hash, the number of its pins, the set of ranks that hold it in the device tier, the sets of the caller.
type nodes struct {
	stride int
	pages  [][]uint64 // pageRows rows each
	used   int32
	free   []int32
}

// pageRows is the number of rows that get their memory together.
const pageRows = 1024

// Words of a row.
const (
	hash = iota
	pins
	device
)

func (n *nodes) row(node int32) []uint64 {
	return n.pages[uint32(node)/pageRows][int(uint32(node)%pageRows)*n.stride:][:n.stride]
}

// len returns the number of nodes, free ones included.
func (n *nodes) len() int32 { return n.used }

// take returns a free node.
func (n *nodes) take() int32 {
	if last := len(n.free) - 1; last >= 0 {
		node := n.free[last]
		n.free = n.free[:last]
		return node
	}
	if int(n.used) == len(n.pages)*pageRows {
		n.pages = append(n.pages, make([]uint64, pageRows*n.stride))
	}
	n.used++
	return n.used - 1
}

// node returns the node of a block, a new one if there is none.
func (x *Index) node(h uint64) int32 {
	n := x.nodes.take()
	has, fresh := x.slots.Add(h, n)
	if !fresh {
		x.nodes.free = append(x.nodes.free, n)
		return has
	}
	x.nodes.row(n)[hash] = h
	return n
}

// Pin appends the nodes of blocks to dst. They keep their numbers until as many calls of Unpin.
func (x *Index) Pin(hashes []uint64, dst []int32) []int32 {
	x.slots.Fetch(hashes)
	for _, h := range hashes {
		n := x.node(h)
		x.nodes.row(n)[pins]++
		dst = append(dst, n)
	}
	return dst
}

// Unpin takes back a Pin.
func (x *Index) Unpin(nodes []int32) {
	for _, n := range nodes {
		row := x.nodes.row(n)
		if row[pins]--; row[pins] == 0 {
			x.forget(n)
		}
	}
}

// Fetch brings what is known of blocks into the processor's cache, all at the same time, for stores and drops that follow
// one another. Nodes may be Unknown.
func (x *Index) Fetch(hashes []uint64, nodes []int32) {
	x.slots.Fetch(hashes)
	sum := uint64(0)
	for _, n := range nodes {
		if n != Unknown {
			sum |= x.nodes.row(n)[device]
		}
	}
	x.fetched = sum
}

// Set returns a set of ranks that is the caller's. The sets of a node that is neither pinned nor held must be empty.
func (x *Index) Set(node int32, number int) []uint64 {
	return x.nodes.row(node)[device+(1+number)*x.words:][:x.words]
}

// Node returns the node of a block, Unknown if nobody holds or pins it.
func (x *Index) Node(hash uint64) int32 {
	n, ok := x.slots.Get(hash)
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

// holders returns the ranks that hold a block in a tier; nil if nobody holds anything there.
func (x *Index) holders(tier kv.Tier, node int32) []uint64 {
	if tier == kv.Device {
		return x.nodes.row(node)[device:][:x.words]
	}
	if at := int(node) * x.words; at < len(x.host) {
		return x.host[at:][:x.words]
	}
	return nil
}

// Store notes that a rank holds a block. The node keeps its number as long as any rank does.
func (x *Index) Store(rank int, tier kv.Tier, node int32) {
	for tier == kv.HostPinned && len(x.host) < int(node+1)*x.words {
		x.host = append(x.host, 0)
	}
	word, bit := &x.holders(tier, node)[rank/64], uint64(1)<<(rank%64)
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
	x.holders(tier, node)[rank/64] &^= 1 << (rank % 64)
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
	if row := x.nodes.row(node); row[pins] == 0 && !x.anyHolder(node) {
		x.slots.Remove(row[hash])
		x.nodes.free = append(x.nodes.free, node)
	}
}

func (x *Index) anyHolder(node int32) bool {
	for tier := range kv.Tier(tiers) {
		for _, word := range x.holders(tier, node) {
			if word != 0 {
				return true
			}
		}
	}
	return false
}

func (x *Index) holds(rank int, tier kv.Tier, node int32) bool {
	set := x.holders(tier, node)
	return set != nil && set[rank/64]&(1<<(rank%64)) != 0
}
