package fast

import (
	"mockbench/kv"
	"mockbench/kv/pool"
	"mockbench/kv/prefixindex"
)

// changes are what happened to the cache of one rank in a pass. A router learns of it at the end of the pass.
type changes struct {
	rank  int
	pool  *pool.Pool
	index *prefixindex.Index
	nodes []int32 // of the blocks in the units, as far as they are known
	list  []change

	hashes []uint64 // scratch of apply
	known  []int32  // scratch of apply
}

// change is a block that a rank holds since the pass, or not any more.
type change struct {
	hash   uint64
	node   int32 // prefixindex.Unknown: to be found by its hash
	unit   int32
	stored bool
}

func (c *changes) empty() bool { return c == nil || len(c.list) == 0 }

// published notes that a unit holds block b of a request. The nodes of prompt blocks are known: the router has pinned them.
func (c *changes) published(unit int32, q *request, b int, fresh bool) {
	node := int32(prefixindex.Unknown)
	if b < len(q.ticket.Nodes) {
		node = q.ticket.Nodes[b]
	}
	for int(unit) >= len(c.nodes) {
		c.nodes = append(c.nodes, prefixindex.Unknown)
	}
	c.nodes[unit] = node
	if fresh {
		c.list = append(c.list, change{hash: q.sequence[b], node: node, unit: unit, stored: true})
	}
}

// removed notes that the last copy of a block was evicted from a unit.
func (c *changes) removed(unit int32, hash uint64) {
	c.list = append(c.list, change{hash: hash, node: c.nodes[unit]})
}

// apply makes the changes known, in order.
func (c *changes) apply() {
	if len(c.list) == 0 {
		return
	}
	x := c.index
	c.hashes, c.known = c.hashes[:0], c.known[:0]
	for i := range c.list {
		e := &c.list[i]
		c.known = append(c.known, e.node)
		if !e.stored || e.node == prefixindex.Unknown {
			c.hashes = append(c.hashes, e.hash) // to be looked up, or to be forgotten
		}
	}
	x.Fetch(c.hashes, c.known)
	for i := range c.list {
		e := &c.list[i]
		switch {
		case e.stored && e.node != prefixindex.Unknown:
			x.Store(c.rank, kv.Device, e.node)
		case e.stored:
			node := x.StoreHash(c.rank, kv.Device, e.hash)
			if c.pool.Hash(e.unit) == e.hash {
				c.nodes[e.unit] = node
			}
		default:
			if e.node == prefixindex.Unknown {
				e.node = x.Node(e.hash)
			}
			x.Drop(c.rank, kv.Device, e.node)
		}
	}
	c.list = c.list[:0]
}
