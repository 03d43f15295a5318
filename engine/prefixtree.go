package engine

import (
	"cmp"
	"slices"
)

// PrefixTree is a prefix cache seen as a tree: each way down from the top is a sequence of blocks that somebody can
// reuse.
type PrefixTree struct {
	Nodes  []TreeNode // depth first, the widest of siblings first
	All    int        // nodes there are; Nodes are those with most below them
	Blocks int        // of all nodes
}

// TreeNode is a run of blocks without a branch.
type TreeNode struct {
	Depth    int    // nodes above it
	Start    int    // blocks above it
	Blocks   int    // its own
	Below    int    // its own and those of all nodes under it
	Requests int    // that use it at present; 0: it can be evicted when nothing under it is used
	Children int    // nodes directly under it, whether they are listed or not
	Hash     uint64 // sequence hash of its last block, 0 if that is not known
}

// TreeInspector is a scheduler whose prefix cache can be seen as a tree.
type TreeInspector interface {
	// Tree returns at most limit nodes.
	Tree(limit int) PrefixTree
}

// Branch is a node of a tree of which only the way up is known.
type Branch struct {
	Parent   int // index of the node above, always a smaller one; -1 for none
	Blocks   int
	Requests int
	Hash     uint64
}

// Widest makes a tree of branches and keeps the nodes with most blocks below them, at most limit. With a node its way
// up is kept.
func Widest(branches []Branch, limit int) PrefixTree {
	t := PrefixTree{All: len(branches)}
	nodes := make([]TreeNode, len(branches))
	for i, b := range branches {
		nodes[i] = TreeNode{Blocks: b.Blocks, Below: b.Blocks, Requests: b.Requests, Hash: b.Hash}
		t.Blocks += b.Blocks
		if b.Parent >= 0 {
			up := &nodes[b.Parent]
			nodes[i].Depth, nodes[i].Start = up.Depth+1, up.Start+up.Blocks
			up.Children++
		}
	}
	for i := len(branches) - 1; i >= 0; i-- {
		if up := branches[i].Parent; up >= 0 {
			nodes[up].Below += nodes[i].Below
		}
	}
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(nodes[b].Below, nodes[a].Below) })
	order = order[:min(max(limit, 0), len(order))]

	children := make(map[int][]int, len(order)) // by the node above, widest first
	for _, i := range order {
		children[branches[i].Parent] = append(children[branches[i].Parent], i)
	}
	t.Nodes = make([]TreeNode, 0, len(order))
	for stack := reversed(nil, children[-1]); len(stack) > 0; {
		i := stack[len(stack)-1]
		t.Nodes = append(t.Nodes, nodes[i])
		stack = reversed(stack[:len(stack)-1], children[i])
	}
	return t
}

func reversed(dst, list []int) []int {
	for _, i := range slices.Backward(list) {
		dst = append(dst, i)
	}
	return dst
}
