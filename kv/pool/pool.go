// Package pool is the block pool of one vLLM-style rank: a fixed number of units that hold KV blocks.
//
// A unit is free, or private to one sequence, or cached: complete, findable by its sequence hash and referenced by any
// number of sequences. Cached units without references are inactive: kept until their room is needed, least recently
// released first. Several units may hold the same hash; a lookup finds the oldest of them, the primary copy.
package pool

import "mockbench/kv/hashindex"

// none is the null link.
const none = -1

// unit is one block of memory. A unit is cached if and only if it is in a ring of copies.
type unit struct {
	hash         uint64 // of a cached unit
	refs         int32  // sequences that use it
	prev, next   int32  // neighbours in the inactive list
	older, newer int32  // ring of copies of the same hash; none if the unit is not cached
	hits         int32  // times it was reused
}

// note is what only people ask about a unit.
type note struct {
	parent   uint64  // sequence hash of the block before it
	since    float64 // time of the last change of state
	position int32   // index in its sequence
}

// pageUnits is the number of units that get their memory together, when the first of them is used.
const pageUnits = 512

// Pool is the block pool. Units are named by their number; numbers at or above used were never used.
type Pool struct {
	Now float64 // time of what happens next, kept for people

	capacity int
	pages    []*[pageUnits]unit
	used     int             // units that were used so far
	notes    []note          // nil if nobody looks
	free     []int32         // stack of units that were used before
	index    hashindex.Index // primary copy of each hash
	inactive struct {
		head, tail int32
		n          int
	}
	removed []int32  // units whose hashes left since TakeRemoved
	gone    []uint64 // scratch: hashes
	evicted recent
}

// New returns an empty pool of capacity units.
func New(capacity int) *Pool {
	p := Bare(capacity)
	p.notes = []note{}
	return p
}

// Bare returns a pool that nobody looks into: Info and TakeEvicted know nothing of its units.
func Bare(capacity int) *Pool {
	p := &Pool{capacity: capacity}
	p.inactive.head, p.inactive.tail = none, none
	return p
}

func (p *Pool) at(u int32) *unit { return &p.pages[uint32(u)/pageUnits][uint32(u)%pageUnits] }

// Capacity returns the number of units.
func (p *Pool) Capacity() int { return p.capacity }

// Free returns the number of units that hold nothing.
func (p *Pool) Free() int { return len(p.free) + p.capacity - p.used }

// Inactive returns the number of cached units without references.
func (p *Pool) Inactive() int { return p.inactive.n }

// Active returns the number of units that are private or referenced.
func (p *Pool) Active() int { return p.capacity - p.inactive.n - p.Free() }

// Match appends the primary copies of the longest resident prefix of hashes to dst and returns it, with the number of
// them that are referenced. It changes nothing.
func (p *Pool) Match(hashes []uint64, dst []int32) (units []int32, referenced int) {
	p.index.Fetch(hashes) // those that are not found will be published soon
	for _, h := range hashes {
		u, ok := p.index.Get(h)
		if !ok {
			break
		}
		dst = append(dst, u)
		if p.at(u).refs > 0 {
			referenced++
		}
	}
	return dst, referenced
}

// Reserve references hits, which Match found, and appends them and n private units to dst. It evicts if free units do
// not suffice, and changes nothing if there is not enough to evict besides the hits.
func (p *Pool) Reserve(hits []int32, n int, dst []int32) ([]int32, bool) {
	missing := n - p.Free()
	if missing > 0 && missing > p.inactive.n-p.countInactive(hits) {
		return dst, false
	}
	for _, u := range hits {
		p.reuse(u)
	}
	p.evict(missing)
	dst = append(dst, hits...)
	for range n {
		dst = append(dst, p.take())
	}
	return dst, true
}

func (p *Pool) countInactive(units []int32) (n int) {
	for _, u := range units {
		if p.at(u).refs == 0 {
			n++
		}
	}
	return n
}

func (p *Pool) reuse(u int32) {
	t := p.at(u)
	if t.refs == 0 {
		p.unlink(u)
		p.stamp(u)
	}
	t.refs++
	t.hits++
}

// stamp notes the time of a change of state.
func (p *Pool) stamp(u int32) {
	if p.notes != nil {
		p.notes[u].since = p.Now
	}
}

// take turns a free unit into a private one.
func (p *Pool) take() int32 {
	var u int32
	if last := len(p.free) - 1; last >= 0 {
		u, p.free = p.free[last], p.free[:last]
	} else {
		if p.used == len(p.pages)*pageUnits {
			p.pages = append(p.pages, new([pageUnits]unit))
		}
		u = int32(p.used)
		p.used++
		*p.at(u) = unit{older: none, newer: none, prev: none, next: none}
		if p.notes != nil {
			p.notes = append(p.notes, note{})
		}
	}
	p.at(u).refs, p.at(u).hits = 1, 0
	p.stamp(u)
	return u
}

// Cached reports whether the contents of a unit can be found.
func (p *Pool) Cached(u int32) bool { return p.at(u).newer != none }

// Publish makes a private unit findable: it now holds the block of a sequence at position (from 0) with this hash,
// after a block with the hash parent. fresh is false if the hash was resident already.
func (p *Pool) Publish(u int32, hash, parent uint64, position int) (fresh bool) {
	t := p.at(u)
	t.hash = hash
	if p.notes != nil {
		p.notes[u] = note{parent: parent, since: p.Now, position: int32(position)}
	}
	primary, fresh := p.index.Add(hash, u)
	if fresh {
		t.older, t.newer = u, u
		return true
	}
	newest := p.at(primary).older
	t.older, t.newer = newest, primary
	p.at(newest).newer, p.at(primary).older = u, u
	return false
}

// Hold adds a reference to a unit in use, so that its contents stay after its sequences let go of it.
func (p *Pool) Hold(u int32) { p.at(u).refs++ }

// Release drops one reference. The last one makes a private unit free and a cached one inactive.
func (p *Pool) Release(u int32) {
	t := p.at(u)
	t.refs--
	if t.refs > 0 {
		return
	}
	p.stamp(u)
	if t.newer == none {
		p.free = append(p.free, u)
		return
	}
	t.prev, t.next = p.inactive.tail, none
	if p.inactive.tail == none {
		p.inactive.head = u
	} else {
		p.at(p.inactive.tail).next = u
	}
	p.inactive.tail = u
	p.inactive.n++
}

// TakeRemoved returns the hashes whose last copy was evicted since the last call, in order. The slice is valid until
// the next call.
func (p *Pool) TakeRemoved() []uint64 {
	p.gone = p.gone[:0]
	for _, u := range p.removed {
		p.gone = append(p.gone, p.at(u).hash)
	}
	p.removed = p.removed[:0]
	return p.gone
}

// TakeRemovedUnits is TakeRemoved for a caller that knows what the units held.
func (p *Pool) TakeRemovedUnits() []int32 {
	r := p.removed
	p.removed = p.removed[:0]
	return r
}

// evict frees the n units at the head of the inactive list.
func (p *Pool) evict(n int) {
	if n > 1 {
		p.gone = p.gone[:0]
		for u := p.inactive.head; len(p.gone) < n; u = p.at(u).next {
			p.gone = append(p.gone, p.at(u).hash)
		}
		p.index.Fetch(p.gone)
	}
	for ; n > 0; n-- {
		p.evictFirst()
	}
}

func (p *Pool) evictFirst() {
	u := p.inactive.head
	p.unlink(u)
	t := p.at(u)
	if t.newer == u {
		p.index.Remove(t.hash)
		p.removed = append(p.removed, u)
	} else {
		if primary, _ := p.index.Get(t.hash); primary == u {
			p.index.Put(t.hash, t.newer)
		}
		p.at(t.older).newer, p.at(t.newer).older = t.newer, t.older
	}
	t.older, t.newer = none, none
	p.free = append(p.free, u)
	if p.notes != nil {
		p.stamp(u)
		p.evicted.add(u)
	}
}

// unlink takes a unit out of the inactive list.
func (p *Pool) unlink(u int32) {
	t := p.at(u)
	if t.prev == none {
		p.inactive.head = t.next
	} else {
		p.at(t.prev).next = t.next
	}
	if t.next == none {
		p.inactive.tail = t.prev
	} else {
		p.at(t.next).prev = t.prev
	}
	t.prev, t.next = none, none
	p.inactive.n--
}

// Hash returns the hash of a cached unit, or the last one of a unit that is not cached.
func (p *Pool) Hash(u int32) uint64 { return p.at(u).hash }
