package prefixindex

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"mockbench/kv"
)

// naive is the same index as plain sets.
type naive map[string]bool

func key(rank int, tier kv.Tier, hash uint64) string { return fmt.Sprint(rank, tier, hash) }

func (n naive) match(rank int, hashes []uint64) (m Match) {
	for m.Device < len(hashes) && n[key(rank, kv.Device, hashes[m.Device])] {
		m.Device++
	}
	for m.Device+m.Host < len(hashes) && n[key(rank, kv.HostPinned, hashes[m.Device+m.Host])] {
		m.Host++
	}
	return m
}

// chain is a sequence of block hashes in a small tree: every block has one of two children.
func chain(r *rand.Rand, depth int) []uint64 {
	h, out := uint64(1), make([]uint64, depth)
	for i := range out {
		h = 2*h + uint64(r.IntN(2))
		out[i] = h
	}
	return out
}

func event(kind kv.EventKind, tier kv.Tier, hashes ...uint64) *kv.Events {
	e := &kv.Events{Sequence: hashes, Local: make([]uint64, len(hashes))}
	e.List = []kv.Event{{Kind: kind, Tier: tier, Count: int32(len(hashes))}}
	return e
}

func child(parent uint64, hashes ...uint64) *kv.Events {
	e := event(kv.Stored, kv.Device, hashes...)
	e.List[0].HasParent, e.List[0].Parent = true, parent
	return e
}

func TestRandomOperationsAgainstNaiveSets(t *testing.T) {
	for _, ranks := range []int{1, 3, 64, 70} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(ranks)))
			x, model := New(ranks), naive{}
			var got []Match
			for step := range 3000 {
				rank, tier := r.IntN(ranks), kv.Tier(r.IntN(2))
				switch op := r.IntN(100); {
				case op < 50: // a chain from the root
					hashes := chain(r, 1+r.IntN(7))
					if err := x.Apply(rank, event(kv.Stored, tier, hashes...)); err != nil {
						t.Fatal(err)
					}
					for _, h := range hashes {
						model[key(rank, tier, h)] = true
					}
				case op < 95:
					h := chain(r, 1+r.IntN(7))
					h = h[len(h)-1:]
					err := x.Apply(rank, event(kv.Removed, tier, h...))
					if known := model[key(rank, tier, h[0])]; known != (err == nil) {
						t.Fatalf("step %d: removal of a block held %v gives %v", step, known, err)
					}
					delete(model, key(rank, tier, h[0]))
				default:
					x.Remove(rank)
					for h := range uint64(256) {
						delete(model, key(rank, kv.Device, h))
						delete(model, key(rank, kv.HostPinned, h))
					}
				}
				query := chain(r, r.IntN(9))
				got = x.Match(query, got)
				for rank := range ranks {
					if want := model.match(rank, query); got[rank] != want {
						t.Fatalf("step %d: rank %d matches %v of %v, want %v", step, rank, got[rank], query, want)
					}
				}
			}
			checkCounts(t, x, model)
		})
	}
}

func checkCounts(t *testing.T, x *Index, model naive) {
	t.Helper()
	held, blocks := 0, map[uint64]bool{}
	for rank := range x.Ranks() {
		held += x.Held(rank, kv.Device) + x.Held(rank, kv.HostPinned)
		for h := range uint64(256) {
			if model[key(rank, kv.Device, h)] || model[key(rank, kv.HostPinned, h)] {
				blocks[h] = true
			}
		}
	}
	if held != len(model) || x.Len() != len(blocks) {
		t.Fatalf("index holds %d in %d blocks, model %d in %d", held, x.Len(), len(model), len(blocks))
	}
}

func TestWrongEvents(t *testing.T) {
	x := New(2)
	if err := x.Apply(0, event(kv.Stored, kv.Device, 10, 11)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		rank   int
		events *kv.Events
		want   error
	}{
		{"child of a held block", 0, child(11, 12), nil},
		{"child of another rank's block", 1, child(11, 12), ErrUnknownParent},
		{"own parent", 0, child(12, 13, 12), ErrCycle},
		{"unknown block", 1, event(kv.Removed, kv.Device, 10), ErrUnknownBlock},
		{"duplicate store", 0, event(kv.Stored, kv.Device, 10, 11), nil},
	} {
		if err := x.Apply(c.rank, c.events); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if got := x.Match([]uint64{10, 11, 12, 13}, nil); got[0] != (Match{Device: 3}) || got[1] != (Match{}) {
		t.Errorf("after wrong events ranks match %v", got)
	}
}

// A pool that keeps replacing its blocks must not make the index grow.
func TestChurnKeepsTheIndexSmall(t *testing.T) {
	const live = 1000
	x := New(8)
	for i := range uint64(200_000) {
		rank := int(i % 8)
		if err := x.Apply(rank, event(kv.Stored, kv.Device, i)); err != nil {
			t.Fatal(err)
		}
		if i < live {
			continue
		}
		if err := x.Apply(int((i-live)%8), event(kv.Removed, kv.Device, i-live)); err != nil {
			t.Fatal(err)
		}
	}
	if slots := int(x.nodes.len()); x.Len() != live || slots != live+1 {
		t.Errorf("%d blocks in %d slots, want %d in %d", x.Len(), slots, live, live+1)
	}
}

func BenchmarkMatch(b *testing.B) {
	const ranks, depth = 64, 128
	x := New(ranks)
	hashes := make([]uint64, depth)
	for i := range hashes {
		hashes[i] = rand.Uint64()
	}
	for rank := range ranks {
		if err := x.Apply(rank, event(kv.Stored, kv.Device, hashes[:rank]...)); err != nil {
			b.Fatal(err)
		}
	}
	var got []Match
	for b.Loop() {
		got = x.Match(hashes, got)
	}
}
