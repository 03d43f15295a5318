// Package hostcache is the host tier of KV blocks (G2): which blocks it holds, in which order it forgets them, and the
// transfers between host and device with their modelled times.
//
// A [Pool] belongs to one rank or is shared by several. Each rank reaches it through a [Port], which has the rank's
// bandwidths and collects what the rank has to be told. Times are milliseconds.
package hostcache

import (
	"slices"

	"mockbench/kv/hashindex"
)

const none = -1

// entry is one block of the host cache.
type entry struct {
	block    Block
	resident bool  // else a store is under way
	pins     int32 // loads that read it
	listed   bool  // is in the list of evictable entries
	prev     int32 // its neighbours there
	next     int32
}

// Block is the identity of a block as KV events tell it.
type Block struct {
	Key       uint64 // sequence hash
	Local     uint64 // hash of its tokens alone
	Parent    uint64 // sequence hash of the block before it, if HasParent
	HasParent bool
	Position  int // index in the prompt
}

// State says whether a block is in the host cache.
type State uint8

const (
	Absent   State = iota
	Pending        // being stored, not usable yet
	Resident       // usable
)

// cache is the contents of a pool. Resident entries that nobody reads form a list, least recently used first.
type cache struct {
	capacity   int
	entries    []entry
	free       []int32
	index      hashindex.Index
	head, tail int32
	evictable  int
	resident   int
	pinned     int
	scratch    []int32
}

func newCache(capacity int) cache { return cache{capacity: capacity, head: none, tail: none} }

// State returns whether a block is here.
func (c *cache) State(key uint64) State {
	i, ok := c.index.Get(key)
	switch {
	case !ok:
		return Absent
	case c.entries[i].resident:
		return Resident
	}
	return Pending
}

// Touch makes a block the most recently used one. It does nothing to blocks that are missing, being stored or read.
func (c *cache) Touch(key uint64) {
	if i, ok := c.index.Get(key); ok && c.entries[i].listed && c.tail != i {
		c.unlink(i)
		c.link(i)
	}
}

// touchTogether makes entries the most recently used ones, all of the same age: those with the smaller keys go first.
func (c *cache) touchTogether(list []int32) {
	slices.SortFunc(list, func(a, b int32) int {
		if c.entries[a].block.Key < c.entries[b].block.Key {
			return -1
		}
		return 1
	})
	for _, i := range list {
		if c.entries[i].listed {
			c.unlink(i)
		}
		c.link(i)
	}
}

func (c *cache) link(i int32) {
	e := &c.entries[i]
	e.prev, e.next, e.listed = c.tail, none, true
	if c.tail == none {
		c.head = i
	} else {
		c.entries[c.tail].next = i
	}
	c.tail = i
	c.evictable++
}

func (c *cache) unlink(i int32) {
	e := &c.entries[i]
	if e.prev == none {
		c.head = e.next
	} else {
		c.entries[e.prev].next = e.next
	}
	if e.next == none {
		c.tail = e.prev
	} else {
		c.entries[e.next].prev = e.prev
	}
	e.listed = false
	c.evictable--
}

// room finds the entries to evict so that n more fit, oldest first and none of the kept keys. ok is false if there are
// not enough.
func (c *cache) room(n int, keep []uint64) (victims []int32, ok bool) {
	missing := n - (c.capacity - c.index.Len())
	if missing > c.evictable {
		return nil, false
	}
	for i := c.head; i != none && len(victims) < missing; i = c.entries[i].next {
		if !slices.Contains(keep, c.entries[i].block.Key) {
			victims = append(victims, i)
		}
	}
	return victims, len(victims) >= missing
}

// evict forgets an entry.
func (c *cache) evict(i int32) {
	c.unlink(i)
	c.index.Remove(c.entries[i].block.Key)
	c.free = append(c.free, i)
	c.resident--
}

// add makes a pending entry.
func (c *cache) add(b Block) {
	i := int32(len(c.entries))
	if last := len(c.free) - 1; last >= 0 {
		i, c.free = c.free[last], c.free[:last]
	} else {
		c.entries = append(c.entries, entry{})
	}
	c.entries[i] = entry{block: b}
	c.index.Put(b.Key, i)
}

// settle makes pending entries resident.
func (c *cache) settle(blocks []Block) {
	list := c.scratch[:0]
	for _, b := range blocks {
		i, _ := c.index.Get(b.Key)
		c.entries[i].resident = true
		list = append(list, i)
	}
	c.resident += len(list)
	c.touchTogether(list)
	c.scratch = list
}

// pin takes entries out of the list while a load reads them.
func (c *cache) pin(blocks []Block) {
	for _, b := range blocks {
		i, _ := c.index.Get(b.Key)
		e := &c.entries[i]
		if e.pins == 0 {
			c.unlink(i)
			c.pinned++
		}
		e.pins++
	}
}

// unpin ends a load.
func (c *cache) unpin(blocks []Block) {
	list := c.scratch[:0]
	for _, b := range blocks {
		i, _ := c.index.Get(b.Key)
		if c.entries[i].pins--; c.entries[i].pins == 0 {
			list = append(list, i)
		}
	}
	c.pinned -= len(list)
	c.touchTogether(list)
	c.scratch = list
}

// Usage is how full a host cache is.
type Usage struct {
	Capacity int
	Resident int // usable blocks
	Pending  int // blocks being stored
	Pinned   int // resident blocks being loaded
}

// Usage returns how full the cache is.
func (c *cache) Usage() Usage {
	return Usage{Capacity: c.capacity, Resident: c.resident, Pending: c.index.Len() - c.resident, Pinned: c.pinned}
}

// blocks lists the resident blocks by position and key.
func (c *cache) blocks() (list []Block) {
	for i := range c.entries {
		e := &c.entries[i]
		if j, ok := c.index.Get(e.block.Key); ok && int(j) == i && e.resident {
			list = append(list, e.block)
		}
	}
	slices.SortFunc(list, func(a, b Block) int {
		if a.Position != b.Position {
			return a.Position - b.Position
		}
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return list
}
