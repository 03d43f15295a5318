package prefixindex

import (
	"math/rand/v2"
	"slices"
	"testing"

	"mockbench/kv"
)

// pinned is a prompt whose nodes are kept.
type pinned struct {
	hashes []uint64
	nodes  []int32
}

// TestPinsAndSets compares pins, holders and the caller's sets with plain maps. The caller keeps in set 0 which ranks
// serve a pinned prompt, as the router does.
func TestPinsAndSets(t *testing.T) {
	for _, ranks := range []int{1, 4, 70} {
		const sets = 2
		r := rand.New(rand.NewPCG(3, uint64(ranks)))
		x := WithSets(ranks, sets)
		held := make([]map[uint64]bool, ranks)
		for i := range held {
			held[i] = map[uint64]bool{}
		}
		pins, users := map[uint64]int{}, map[uint64]map[int]int{} // by block; users by rank
		var prompts []pinned
		var serves []int
		for step := range 1500 {
			rank := r.IntN(ranks)
			switch op := r.IntN(10); {
			case op < 3:
				p := pinned{hashes: chain(r, 1+r.IntN(6))}
				p.nodes = x.Pin(p.hashes, nil)
				for i, h := range p.hashes {
					pins[h]++
					if users[h] == nil {
						users[h] = map[int]int{}
					}
					users[h][rank]++
					x.Set(p.nodes[i], 0)[rank/64] |= 1 << (rank % 64)
				}
				prompts, serves = append(prompts, p), append(serves, rank)
			case op < 6 && len(prompts) > 0:
				i := r.IntN(len(prompts))
				p, by := prompts[i], serves[i]
				for k, h := range p.hashes {
					pins[h]--
					if users[h][by]--; users[h][by] == 0 {
						x.Set(p.nodes[k], 0)[by/64] &^= 1 << (by % 64)
					}
				}
				x.Unpin(p.nodes)
				prompts, serves = slices.Delete(prompts, i, i+1), slices.Delete(serves, i, i+1)
			case op < 8:
				h := chain(r, 1+r.IntN(6))
				last := h[len(h)-1]
				if n := x.StoreHash(rank, kv.Device, last); n != x.Node(last) {
					t.Fatalf("stored in node %d, found in %d", n, x.Node(last))
				}
				held[rank][last] = true
			default:
				h := chain(r, 1+r.IntN(6))
				last := h[len(h)-1]
				n := x.Node(last)
				if n == Unknown != (pins[last] == 0 && !anyHolds(held, last)) {
					t.Fatalf("step %d: block %d has node %d, %d pins", step, last, n, pins[last])
				}
				if n != Unknown && x.Drop(rank, kv.Device, n) != held[rank][last] {
					t.Fatalf("step %d: a drop told something else of block %d", step, last)
				}
				delete(held[rank], last)
			}
			checkPinned(t, x, prompts, users)
		}
	}
}

func anyHolds(held []map[uint64]bool, hash uint64) bool {
	return slices.ContainsFunc(held, func(m map[uint64]bool) bool { return m[hash] })
}

// checkPinned holds that pinned blocks keep their nodes, and that sets say who serves them.
func checkPinned(t *testing.T, x *Index, prompts []pinned, users map[uint64]map[int]int) {
	t.Helper()
	for _, p := range prompts {
		want := make([]int, x.Ranks())
		for rank := range want {
			for want[rank] < len(p.hashes) && users[p.hashes[want[rank]]][rank] > 0 {
				want[rank]++
			}
		}
		if got := x.Leading(0, p.nodes, nil); !slices.Equal(got, want) {
			t.Fatalf("prompt %v is served to depths %v, want %v", p.hashes, got, want)
		}
		for i, n := range p.nodes {
			if x.Node(p.hashes[i]) != n {
				t.Fatalf("block %d moved from node %d to %d while it was pinned", p.hashes[i], n, x.Node(p.hashes[i]))
			}
			for _, word := range x.Set(n, 1) {
				if word != 0 {
					t.Fatalf("a set that nobody wrote to holds %x", word)
				}
			}
		}
		if got, want := x.MatchNodes(p.nodes, nil), x.Match(p.hashes, nil); !slices.Equal(got, want) {
			t.Fatalf("nodes match %v, hashes %v", got, want)
		}
	}
}

func TestPinnedBlocksOutliveTheirHolders(t *testing.T) {
	x := WithSets(2, 1)
	nodes := x.Pin([]uint64{5, 6}, nil)
	if x.Len() != 0 || x.Held(0, kv.Device) != 0 {
		t.Error("pinned blocks count as held")
	}
	x.Store(1, kv.Device, nodes[0])
	x.Store(1, kv.Device, nodes[0])
	if x.Len() != 1 || x.Held(1, kv.Device) != 1 || !x.Has(1, kv.Device, 5) {
		t.Errorf("%d blocks, %d held after a block was stored twice", x.Len(), x.Held(1, kv.Device))
	}
	if !x.Drop(1, kv.Device, nodes[0]) || x.Drop(1, kv.Device, nodes[0]) || x.Len() != 0 || x.Node(5) != nodes[0] {
		t.Error("a pinned block went with its holder, or was dropped twice")
	}
	again := x.Pin([]uint64{5}, nil)
	x.Unpin(nodes)
	if x.Node(6) != Unknown || x.Node(5) != again[0] {
		t.Error("a block went before its last pin, or stayed after it")
	}
	x.Unpin(again)
	if x.Node(5) != Unknown {
		t.Error("a block stayed after its last pin")
	}
	if fresh := x.Pin([]uint64{7, 8}, nil); slices.Max(fresh) > 1 {
		t.Errorf("nodes %v, those that are free are used again", fresh)
	}
}
