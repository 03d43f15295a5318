package pool

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naive is the pool in its simplest form: every state is a list.
type naive struct {
	capacity int
	private  map[int32]int // references
	refs     map[int32]int // references of cached units
	copies   map[uint64][]int32
	hash     map[int32]uint64
	inactive []int32
	removed  []uint64
}

func newNaive(capacity int) *naive {
	return &naive{capacity: capacity, private: map[int32]int{}, refs: map[int32]int{}, copies: map[uint64][]int32{}, hash: map[int32]uint64{}}
}

func (p *naive) freeUnits() int { return p.capacity - len(p.private) - len(p.refs) }

func (p *naive) match(hashes []uint64) (units []int32, referenced int) {
	for _, h := range hashes {
		if len(p.copies[h]) == 0 {
			break
		}
		u := p.copies[h][0]
		units = append(units, u)
		if p.refs[u] > 0 {
			referenced++
		}
	}
	return units, referenced
}

// reserve takes the numbers of fresh units as the pool chose them, since the choice is free.
func (p *naive) reserve(hits []int32, n int, chosen []int32) bool {
	idle := 0
	for _, u := range hits {
		if p.refs[u] == 0 {
			idle++
		}
	}
	missing := n - p.freeUnits()
	if missing > len(p.inactive)-idle {
		return false
	}
	for _, u := range hits {
		if p.refs[u] == 0 {
			p.inactive = slices.DeleteFunc(p.inactive, func(v int32) bool { return v == u })
		}
		p.refs[u]++
	}
	for ; missing > 0; missing-- {
		u := p.inactive[0]
		p.inactive = p.inactive[1:]
		h := p.hash[u]
		p.copies[h] = slices.DeleteFunc(p.copies[h], func(v int32) bool { return v == u })
		if len(p.copies[h]) == 0 {
			p.removed = append(p.removed, h)
		}
		delete(p.refs, u)
		delete(p.hash, u)
	}
	for _, u := range chosen {
		p.private[u] = 1
	}
	return true
}

func (p *naive) publish(u int32, h uint64) bool {
	p.refs[u] = p.private[u]
	delete(p.private, u)
	p.hash[u] = h
	p.copies[h] = append(p.copies[h], u)
	return len(p.copies[h]) == 1
}

func (p *naive) release(u int32) {
	if n, ok := p.private[u]; ok {
		p.private[u]--
		if n == 1 {
			delete(p.private, u)
		}
		return
	}
	p.refs[u]--
	if p.refs[u] == 0 {
		p.inactive = append(p.inactive, u)
	}
}

func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 24).Draw(t, "capacity")
		p, n := New(capacity), newNaive(capacity)
		var tables [][]int32 // units held, one table a sequence
		var removed []uint64
		chain := func(seed, length int) (hashes []uint64) {
			for i := range length {
				hashes = append(hashes, uint64(seed*100+i)*7919)
			}
			return hashes
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				hashes := chain(rapid.IntRange(0, 4).Draw(t, "seed"), rapid.IntRange(0, 8).Draw(t, "length"))
				hits, referenced := p.Match(hashes, nil)
				wantHits, wantReferenced := n.match(hashes)
				if !slices.Equal(hits, wantHits) || referenced != wantReferenced {
					t.Fatalf("match %v, %d, want %v, %d", hits, referenced, wantHits, wantReferenced)
				}
				fresh := rapid.IntRange(0, 8).Draw(t, "fresh")
				units, ok := p.Reserve(hits, fresh, nil)
				var chosen []int32
				if ok {
					chosen = units[len(hits):]
				}
				if want := n.reserve(hits, fresh, chosen); ok != want {
					t.Fatalf("reserve %v, want %v", ok, want)
				}
				if ok && (len(chosen) != fresh || !slices.Equal(units[:len(hits)], hits)) {
					t.Fatalf("reserved %v for %d fresh units after %v", units, fresh, hits)
				}
				removed = append(removed, p.TakeRemoved()...)
				if !slices.Equal(removed, n.removed) {
					t.Fatalf("removed %v, want %v", removed, n.removed)
				}
				if ok && len(units) > 0 {
					tables = append(tables, units)
				}
			},
			"publish": func(t *rapid.T) {
				if len(tables) == 0 {
					return
				}
				table := rapid.SampledFrom(tables).Draw(t, "table")
				i := rapid.IntRange(0, len(table)-1).Draw(t, "block")
				if p.Cached(table[i]) {
					return
				}
				h := chain(rapid.IntRange(0, 4).Draw(t, "seed"), i+1)[i]
				if got, want := p.Publish(table[i], h, 0, i), n.publish(table[i], h); got != want {
					t.Fatalf("fresh %v, want %v", got, want)
				}
			},
			"release": func(t *rapid.T) {
				if len(tables) == 0 {
					return
				}
				i := rapid.IntRange(0, len(tables)-1).Draw(t, "table")
				for _, u := range slices.Backward(tables[i]) {
					p.Release(u)
					n.release(u)
				}
				tables = slices.Delete(tables, i, i+1)
			},
			"": func(t *rapid.T) {
				if err := consistent(p, n); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// consistent compares all that can be seen of both pools.
func consistent(p *Pool, n *naive) error {
	if p.Active()+p.Inactive()+p.Free() != p.Capacity() {
		return fmt.Errorf("%d active, %d inactive, %d free of %d", p.Active(), p.Inactive(), p.Free(), p.Capacity())
	}
	if p.Inactive() != len(n.inactive) || p.Free() != n.freeUnits() {
		return fmt.Errorf("%d inactive, %d free, want %d, %d", p.Inactive(), p.Free(), len(n.inactive), n.freeUnits())
	}
	order := []int32{}
	for u := p.inactive.head; u != none; u = p.at(u).next {
		order = append(order, u)
	}
	if !slices.Equal(order, n.inactive) {
		return fmt.Errorf("eviction order %v, want %v", order, n.inactive)
	}
	for u := range int32(p.Capacity()) {
		i := p.Info(u)
		h, cached := n.hash[u]
		if i.Cached != cached || i.Hash != h || i.Refs != n.refs[u]+n.private[u] {
			return fmt.Errorf("unit %d: %+v, want hash %d, %d references", u, i, h, n.refs[u]+n.private[u])
		}
	}
	want := 0
	for h, c := range n.copies {
		if len(c) == 0 {
			continue
		}
		want++
		if u, ok := p.index.Get(h); !ok || u != c[0] {
			return fmt.Errorf("hash %d: primary copy %d, %v, want %d", h, u, ok, c[0])
		}
	}
	if p.index.Len() != want {
		return fmt.Errorf("%d hashes resident, want %d", p.index.Len(), want)
	}
	return nil
}

func TestOnlyTheNewestEvictionsAreRemembered(t *testing.T) {
	p := New(1)
	for i := range 1500 {
		units, ok := p.Reserve(nil, 1, nil)
		if !ok {
			t.Fatal("no room")
		}
		p.Publish(units[0], uint64(i+1), 0, 0)
		p.Release(units[0])
	}
	if got := len(p.TakeEvicted(nil)); got != 1024 {
		t.Errorf("%d evictions remembered", got)
	}
	if got := len(p.TakeEvicted(nil)); got != 0 {
		t.Errorf("%d evictions told twice", got)
	}
}
