package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWidest(t *testing.T) {
	branches := []Branch{
		{Parent: -1, Blocks: 2, Hash: 1}, {Parent: 0, Blocks: 1, Hash: 2}, {Parent: 0, Blocks: 3, Requests: 1, Hash: 3},
		{Parent: -1, Blocks: 7, Requests: 2, Hash: 4}, {Parent: 2, Blocks: 1, Hash: 5},
	}
	want := PrefixTree{All: 5, Blocks: 14, Nodes: []TreeNode{
		{Blocks: 2, Below: 7, Children: 2, Hash: 1},
		{Depth: 1, Start: 2, Blocks: 3, Below: 4, Requests: 1, Children: 1, Hash: 3},
		{Blocks: 7, Below: 7, Requests: 2, Hash: 4},
	}}
	if diff := cmp.Diff(want, Widest(branches, 3)); diff != "" {
		t.Error(diff)
	}
	if got := Widest(branches, 0); len(got.Nodes) != 0 || got.All != 5 {
		t.Errorf("without room: %+v", got)
	}
}

// Whatever the limit, each node follows the one above it, and what is left out is not wider than what is kept.
func TestWidestKeepsTheWayUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		branches := make([]Branch, 1+rng.IntN(40))
		for i := range branches {
			branches[i] = Branch{Parent: rng.IntN(i+1) - 1, Blocks: 1 + rng.IntN(5), Hash: uint64(i + 1)}
		}
		all := Widest(branches, len(branches))
		limit := rng.IntN(len(branches) + 1)
		some := Widest(branches, limit)
		if len(all.Nodes) != len(branches) || len(some.Nodes) != limit {
			t.Fatalf("%d and %d nodes, want %d and %d", len(all.Nodes), len(some.Nodes), len(branches), limit)
		}
		kept, narrowest := map[uint64]bool{}, all.Blocks
		for _, n := range some.Nodes {
			if up := branches[n.Hash-1].Parent; up >= 0 && !kept[branches[up].Hash] {
				t.Fatalf("node %d is listed without the one above it", n.Hash)
			}
			kept[n.Hash] = true
			narrowest = min(narrowest, n.Below)
		}
		for _, n := range all.Nodes {
			if !kept[n.Hash] && limit > 0 && n.Below > narrowest {
				t.Fatalf("node %d with %d blocks is left out, one with %d is kept", n.Hash, n.Below, narrowest)
			}
		}
	}
}
