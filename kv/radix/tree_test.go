package radix

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is a naive prefix cache: every cached prefix is an entry of its own, keyed by its hashes written out.
type model struct {
	page  map[string]int32 // by prefix
	locks map[string]int
}

func key(keys []uint64) string {
	b := make([]byte, len(keys))
	for i, k := range keys {
		b[i] = byte(k)
	}
	return string(b)
}

func (m *model) match(keys []uint64) int {
	for i := range keys {
		if _, ok := m.page[key(keys[:i+1])]; !ok {
			return i
		}
	}
	return len(keys)
}

// lease is a request of the random test: it holds a locked path and the private pages behind it.
type lease struct {
	keys   []uint64
	node   *Node
	pages  []int32
	cached int
}

// TestTreeAgainstModel runs random operations of the kind a scheduler makes and compares content, locks and page
// ownership with the naive cache after each.
func TestTreeAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		total := rapid.IntRange(4, 40).Draw(rt, "pool")
		tree := New(total)
		m := model{page: map[string]int32{}, locks: map[string]int{}}
		var leases []*lease
		lockPath := func(keys []uint64, d int) {
			for i := range keys {
				m.locks[key(keys[:i+1])] += d
			}
		}
		evict := func(n int) {
			can := tree.Evictable()
			gone := tree.Evict(n, nil)
			if want := min(n, can); len(gone) != want {
				rt.Fatalf("evicted %d pages, want %d", len(gone), want)
			}
			var prefixes []string
			for k, p := range m.page {
				if slices.Contains(gone, p) {
					prefixes = append(prefixes, k)
				}
			}
			if len(prefixes) != len(gone) {
				rt.Fatalf("of %d evicted pages only %d were cached", len(gone), len(prefixes))
			}
			for _, k := range prefixes {
				if m.locks[k] > 0 {
					rt.Fatalf("evicted the locked prefix %x", k)
				}
				delete(m.page, k)
			}
			for k := range m.page {
				if len(k) > 1 && !contains(m.page, k[:len(k)-1]) {
					rt.Fatalf("evicted a prefix of %x before its end", k)
				}
			}
		}
		drawKeys := func() []uint64 {
			return rapid.SliceOfN(rapid.Uint64Range(1, 3), 0, 8).Draw(rt, "keys")
		}
		rt.Repeat(map[string]func(*rapid.T){
			"admit": func(*rapid.T) {
				keys := drawKeys()
				if got, want := tree.Peek(keys), m.match(keys); got != want {
					rt.Fatalf("peek %v = %d, want %d", keys, got, want)
				}
				pages, node := tree.Match(keys, nil)
				if len(pages) != m.match(keys) {
					rt.Fatalf("match %v = %d pages, want %d", keys, len(pages), m.match(keys))
				}
				for i, p := range pages {
					if m.page[key(keys[:i+1])] != p {
						rt.Fatalf("match %v gave a page of another prefix at %d", keys, i)
					}
				}
				tree.Lock(node)
				lockPath(keys[:len(pages)], 1)
				need := len(keys) - len(pages)
				if need > tree.Available()+tree.Evictable() {
					tree.Unlock(node)
					lockPath(keys[:len(pages)], -1)
					return
				}
				if short := need - tree.Available(); short > 0 {
					evict(short)
				}
				l := &lease{keys: keys, node: node, cached: len(pages)}
				l.pages = tree.Take(need, pages)
				leases = append(leases, l)
			},
			"cache": func(*rapid.T) {
				if len(leases) == 0 {
					return
				}
				l := leases[rapid.IntRange(0, len(leases)-1).Draw(rt, "lease")]
				n := rapid.IntRange(l.cached, len(l.keys)).Draw(rt, "to")
				lockPath(l.keys[:l.cached], -1)
				node, losers := tree.Insert(l.node, l.keys[l.cached:n], l.pages[l.cached:n], nil)
				if node != l.node {
					tree.Lock(node)
					tree.Unlock(l.node)
				}
				tree.Give(losers)
				for i := l.cached; i < n; i++ {
					if k := key(l.keys[:i+1]); m.page[k] == 0 && !contains(m.page, k) {
						m.page[k] = l.pages[i]
					} else if m.page[k] != l.pages[i] {
						rt.Fatalf("the older page of %x must stay", k)
					}
				}
				l.node, l.cached = node, n
				lockPath(l.keys[:l.cached], 1)
			},
			"release": func(*rapid.T) {
				if len(leases) == 0 {
					return
				}
				i := rapid.IntRange(0, len(leases)-1).Draw(rt, "lease")
				l := leases[i]
				leases = slices.Delete(leases, i, i+1)
				tree.Give(l.pages[l.cached:])
				tree.Unlock(l.node)
				lockPath(l.keys[:l.cached], -1)
			},
			"evict": func(*rapid.T) { evict(rapid.IntRange(0, 5).Draw(rt, "n")) },
			"": func(*rapid.T) {
				check(rt, tree, &m, leases)
			},
		})
	})
}

func contains(m map[string]int32, k string) bool {
	_, ok := m[k]
	return ok
}

// check compares everything that can be seen of the tree with the model.
func check(t *rapid.T, tree *Tree, m *model, leases []*lease) {
	owner := map[int32]string{}
	own := func(p int32, who string) {
		if before, taken := owner[p]; taken {
			t.Fatalf("page %d belongs to %s and to %s", p, before, who)
		}
		owner[p] = who
	}
	for _, p := range tree.free {
		own(p, "the free list")
	}
	for p := tree.fresh; p < tree.total; p++ {
		own(int32(p), "the untouched pages")
	}
	evictable, protected, cached := 0, 0, 0
	tree.Walk(func(n *Node, _ int) {
		if n.parent != tree.root && n.parent.locks < n.locks {
			t.Fatalf("a node has %d locks, its parent %d", n.locks, n.parent.locks)
		}
		if n.locks > 0 {
			protected += len(n.pages)
		} else {
			evictable += len(n.pages)
		}
		cached += len(n.pages)
		for _, p := range n.pages {
			own(p, "the tree")
		}
		if candidate := n.locks == 0 && len(n.children) == 0; candidate != (n.place >= 0) {
			t.Fatalf("candidate for eviction: %v, in the heap: %v", candidate, n.place >= 0)
		}
	})
	for _, l := range leases {
		for _, p := range l.pages[l.cached:] {
			own(p, "a lease")
		}
	}
	if len(owner) != tree.Total() {
		t.Fatalf("%d of %d pages have an owner", len(owner), tree.Total())
	}
	if evictable != tree.Evictable() || protected != tree.Protected() || cached != len(m.page) {
		t.Fatalf("evictable %d protected %d cached %d, tree says %d %d, model %d", evictable, protected, cached,
			tree.Evictable(), tree.Protected(), len(m.page))
	}
	oldest := tree.Oldest()
	if !slices.IsSortedFunc(oldest, func(a, b *Node) int { return cmp.Compare(a.stamp, b.stamp) }) {
		t.Fatal("eviction order is not by age")
	}
}

// A pool costs memory when its pages are used, not before.
func TestAHugePoolIsCheapToMake(t *testing.T) {
	tree := New(math.MaxInt32)
	if tree.Available() != math.MaxInt32 || cap(tree.free) != 0 {
		t.Errorf("%d pages free, room for %d", tree.Available(), cap(tree.free))
	}
}
