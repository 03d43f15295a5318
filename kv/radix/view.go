package radix

import (
	"cmp"
	"slices"
)

// Walk visits every node but the root, depth first, children in the order of their first key. depth counts from 0.
func (t *Tree) Walk(visit func(n *Node, depth int)) { walk(t.root, 0, visit) }

func walk(n *Node, depth int, visit func(*Node, int)) {
	for _, child := range n.sorted() {
		visit(child, depth)
		walk(child, depth+1, visit)
	}
}

func (n *Node) sorted() []*Node {
	list := make([]*Node, 0, len(n.children))
	for _, child := range n.children {
		list = append(list, child)
	}
	slices.SortFunc(list, func(a, b *Node) int { return cmp.Compare(a.keys[0], b.keys[0]) })
	return list
}

// Oldest returns the candidates for eviction, oldest first.
func (t *Tree) Oldest() []*Node {
	list := slices.Clone(t.victims)
	slices.SortFunc(list, func(a, b *Node) int { return cmp.Compare(a.stamp, b.stamp) })
	return list
}

// Parent returns the node above, nil for the root.
func (n *Node) Parent() *Node { return n.parent }

// Pages returns the pages of the edge; the caller does not change them.
func (n *Node) Pages() []int32 { return n.pages }

// Locks returns how many requests use the path through n.
func (n *Node) Locks() int { return n.locks }
