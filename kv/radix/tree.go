// Package radix is the prefix cache of an SGLang rank: a page pool and a radix tree over page hashes.
//
// A page holds a fixed number of tokens. Edges of the tree carry one or more pages with the local hash of each;
// matching compares local hashes along the path. A request that uses a prefix locks the node where its prefix ends,
// and with it the whole path; unlocked leaves are evicted oldest first, page by page from their end.
package radix

import (
	"container/heap"
	"slices"
)

// Node is a place in the tree. Its identity survives splits: a split inserts a new node above it.
type Node struct {
	parent   *Node
	keys     []uint64 // local hash of each page of the edge
	pages    []int32
	children map[uint64]*Node // by the first key of their edge
	locks    int
	stamp    uint64
	place    int // in the heap of eviction candidates, -1 if none
}

// Tree is the pool and the tree of one rank. Counts are in pages.
type Tree struct {
	root      *Node
	free      []int32 // given back
	fresh     int     // pages from this one on were never taken
	total     int
	evictable int // pages on edges of unlocked nodes
	protected int // pages on edges of locked nodes
	clock     uint64
	victims   candidates
}

// New returns an empty tree over a pool of n pages.
func New(n int) *Tree {
	return &Tree{root: &Node{place: -1}, total: n}
}

// Root is the node of the empty prefix; it is never locked and never evicted.
func (t *Tree) Root() *Node { return t.root }

// Total returns the size of the pool.
func (t *Tree) Total() int { return t.total }

// Available returns the number of free pages.
func (t *Tree) Available() int { return len(t.free) + t.total - t.fresh }

// Evictable returns the pages that eviction could free.
func (t *Tree) Evictable() int { return t.evictable }

// Protected returns the pages on locked paths.
func (t *Tree) Protected() int { return t.protected }

// Take moves n free pages to dst. It panics if there are fewer: callers evict first.
func (t *Tree) Take(n int, dst []int32) []int32 {
	if n > t.Available() {
		panic("radix: more pages taken than are free")
	}
	rest := max(0, len(t.free)-n)
	n -= len(t.free) - rest
	dst = append(dst, t.free[rest:]...)
	t.free = t.free[:rest]
	for ; n > 0; n-- {
		dst = append(dst, int32(t.fresh))
		t.fresh++
	}
	return dst
}

// Give returns pages that are not in the tree to the pool.
func (t *Tree) Give(pages []int32) { t.free = append(t.free, pages...) }

func (t *Tree) tick() uint64 {
	t.clock++
	return t.clock
}

// Match walks down along keys, appends the pages of the matched prefix to dst and returns the node reached. It stamps
// the nodes it passes whole; an edge that matches in part is split and its new upper node, unstamped, is the result.
func (t *Tree) Match(keys []uint64, dst []int32) ([]int32, *Node) {
	now := t.tick()
	n := t.root
	for len(keys) > 0 {
		child := n.children[keys[0]]
		if child == nil {
			break
		}
		k := common(child.keys, keys)
		dst = append(dst, child.pages[:k]...)
		if k < len(child.keys) {
			return dst, t.split(child, k)
		}
		t.touch(child, now)
		n, keys = child, keys[k:]
	}
	return dst, n
}

// Peek returns the length of the prefix that Match would find and changes nothing.
func (t *Tree) Peek(keys []uint64) int {
	n, matched := t.root, 0
	for matched < len(keys) {
		child := n.children[keys[matched]]
		if child == nil {
			break
		}
		k := common(child.keys, keys[matched:])
		matched += k
		if k < len(child.keys) {
			break
		}
		n = child
	}
	return matched
}

// Lock keeps n and its path from being evicted. Each Lock is undone by one Unlock.
func (t *Tree) Lock(n *Node) {
	for ; n != t.root; n = n.parent {
		n.locks++
		if n.locks == 1 {
			t.evictable -= len(n.keys)
			t.protected += len(n.keys)
			t.review(n)
		}
	}
}

// Unlock undoes one Lock.
func (t *Tree) Unlock(n *Node) {
	for ; n != t.root; n = n.parent {
		n.locks--
		if n.locks == 0 {
			t.protected -= len(n.keys)
			t.evictable += len(n.keys)
			t.review(n)
		}
	}
}

// Insert adds a suffix below start, a node the caller has locked or the root. Where the tree already holds a key, the
// tree's page replaces the given one in pages and the given one is appended to losers: it belongs to nobody any more.
// It returns the node at the end of the suffix.
func (t *Tree) Insert(start *Node, keys []uint64, pages, losers []int32) (*Node, []int32) {
	if len(keys) == 0 {
		return start, losers
	}
	now := t.tick()
	for n := start; n != t.root; n = n.parent {
		t.touch(n, now)
	}
	for n := start; ; {
		if n != t.root && len(n.children) == 0 && (n.locks == 0 || n.locks == 1 && n == start) {
			t.grow(n, keys, pages, now)
			return n, losers
		}
		child := n.children[keys[0]]
		if child == nil {
			return t.leaf(n, keys, pages), losers
		}
		k := common(child.keys, keys)
		losers = adopt(pages[:k], child.pages[:k], losers)
		whole := k == len(child.keys)
		if whole {
			t.touch(child, now)
		} else {
			child = t.split(child, k)
		}
		keys, pages = keys[k:], pages[k:]
		switch {
		case len(keys) == 0:
			return child, losers
		case !whole:
			return t.leaf(child, keys, pages), losers
		}
		n = child
	}
}

// Evict removes up to n pages, from the oldest unlocked leaf on, and appends them to dst in the order of removal. They
// are free afterwards.
func (t *Tree) Evict(n int, dst []int32) []int32 {
	first := len(dst)
	for len(dst)-first < n && len(t.victims) > 0 {
		v := t.victims[0]
		k := min(len(v.keys), n-(len(dst)-first))
		rest := len(v.keys) - k
		dst = append(dst, v.pages[rest:]...)
		t.evictable -= k
		if rest > 0 {
			v.keys, v.pages = v.keys[:rest], v.pages[:rest]
			continue
		}
		delete(v.parent.children, v.keys[0])
		heap.Pop(&t.victims)
		t.review(v.parent)
	}
	t.free = append(t.free, dst[first:]...)
	return dst
}

// adopt replaces own pages by the tree's and collects those that lost.
func adopt(own, tree, losers []int32) []int32 {
	for i, p := range tree {
		if own[i] != p {
			losers = append(losers, own[i])
			own[i] = p
		}
	}
	return losers
}

// grow appends a suffix to the edge of n.
func (t *Tree) grow(n *Node, keys []uint64, pages []int32, now uint64) {
	n.keys, n.pages = append(n.keys, keys...), append(n.pages, pages...)
	if n.locks > 0 {
		t.protected += len(keys)
	} else {
		t.evictable += len(keys)
	}
	t.touch(n, now)
}

// leaf hangs a new unlocked node below parent. Its stamp is later than that of the insert that makes it.
func (t *Tree) leaf(parent *Node, keys []uint64, pages []int32) *Node {
	n := &Node{parent: parent, keys: slices.Clone(keys), pages: slices.Clone(pages), stamp: t.tick(), place: -1}
	parent.adopt(n)
	t.evictable += len(keys)
	t.review(parent)
	t.review(n)
	return n
}

// split puts a new node with the first k pages above n. Both carry n's locks and stamp.
func (t *Tree) split(n *Node, k int) *Node {
	upper := &Node{parent: n.parent, locks: n.locks, stamp: n.stamp, place: -1,
		keys: slices.Clone(n.keys[:k]), pages: slices.Clone(n.pages[:k])}
	n.parent.children[n.keys[0]] = upper
	n.keys, n.pages = n.keys[k:], n.pages[k:]
	n.parent = upper
	upper.adopt(n)
	return upper
}

func (n *Node) adopt(child *Node) {
	if n.children == nil {
		n.children = make(map[uint64]*Node)
	}
	n.children[child.keys[0]] = child
}

func (t *Tree) touch(n *Node, now uint64) {
	n.stamp = now
	if n.place >= 0 {
		heap.Fix(&t.victims, n.place)
	}
}

// review puts n among the candidates for eviction, or takes it out.
func (t *Tree) review(n *Node) {
	is := n != t.root && n.locks == 0 && len(n.children) == 0
	switch {
	case is && n.place < 0:
		heap.Push(&t.victims, n)
	case !is && n.place >= 0:
		heap.Remove(&t.victims, n.place)
	}
}

func common(a, b []uint64) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// candidates is a heap of nodes, oldest first. No two nodes that can be evicted share a stamp.
type candidates []*Node

func (c candidates) Len() int           { return len(c) }
func (c candidates) Less(i, j int) bool { return c[i].stamp < c[j].stamp }
func (c candidates) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].place, c[j].place = i, j
}
func (c *candidates) Push(x any) {
	n := x.(*Node)
	n.place = len(*c)
	*c = append(*c, n)
}
func (c *candidates) Pop() any {
	last := len(*c) - 1
	n := (*c)[last]
	*c = (*c)[:last]
	n.place = -1
	return n
}
