package radix

import (
	"slices"
	"testing"
)

// cache puts a prefix into the tree the way a finished request does, and returns its end.
func cache(t *testing.T, tree *Tree, keys ...uint64) *Node {
	t.Helper()
	pages, node := tree.Match(keys, nil)
	tree.Lock(node)
	fresh := tree.Take(len(keys)-len(pages), nil)
	end, losers := tree.Insert(node, keys[len(pages):], fresh, nil)
	tree.Give(losers)
	tree.Unlock(node)
	return end
}

func TestInsertStampsAncestors(t *testing.T) {
	tree := New(20)
	short := cache(t, tree, 1)
	cache(t, tree, 2)
	tree.Lock(short)
	tree.Lock(short) // two users: the suffix becomes a child
	end, _ := tree.Insert(short, []uint64{3}, tree.Take(1, nil), nil)
	tree.Unlock(short)
	tree.Unlock(short)
	if end == short || short.stamp >= end.stamp {
		t.Fatalf("the new leaf must be younger than the insert that stamps its parent: %d, %d", end.stamp, short.stamp)
	}
	if oldest := tree.Oldest(); oldest[0].keys[0] != 2 {
		t.Errorf("the prefix that nobody touched is the oldest, got %v", oldest[0].keys)
	}
}

func TestGrownLeafIsStamped(t *testing.T) {
	tree := New(20)
	leaf := cache(t, tree, 1)
	cache(t, tree, 2)
	tree.Lock(leaf)
	end, _ := tree.Insert(leaf, []uint64{3, 4}, tree.Take(2, nil), nil)
	tree.Unlock(leaf)
	if end != leaf || len(leaf.keys) != 3 {
		t.Fatalf("the only user's leaf grows in place, got %v", end.keys)
	}
	if oldest := tree.Oldest(); oldest[0] == leaf {
		t.Error("growing a leaf makes it young")
	}
}

// TestSplitKeepsTheStamp ends a match inside an edge: neither part gets younger by it.
func TestSplitKeepsTheStamp(t *testing.T) {
	tree := New(20)
	long := cache(t, tree, 1, 2, 3)
	before := long.stamp
	_, upper := tree.Match([]uint64{1, 2}, nil)
	if upper == long || upper.stamp != before || long.stamp != before || !slices.Equal(upper.keys, []uint64{1, 2}) {
		t.Errorf("upper %v stamp %d, lower stamp %d, want %d", upper.keys, upper.stamp, long.stamp, before)
	}
	cache(t, tree, 9)
	if oldest := tree.Oldest(); oldest[0] != long {
		t.Errorf("the rest of the split edge is the oldest leaf, got %v", oldest[0].keys)
	}
}

func TestInsertSplitKeepsTheStampOfTheUpperNode(t *testing.T) {
	tree := New(20)
	long := cache(t, tree, 1, 2, 3)
	before := long.stamp
	end := cache(t, tree, 1, 2, 4)
	if end.parent.stamp < before || end.stamp <= end.parent.stamp || long.stamp != before {
		t.Errorf("upper %d, new leaf %d, old rest %d of %d", end.parent.stamp, end.stamp, long.stamp, before)
	}
}

// TestEvictTrimsTheTail takes pages from the end of an edge, then whole nodes, then parents left without children.
func TestEvictTrimsTheTail(t *testing.T) {
	tree := New(10)
	cache(t, tree, 1, 2, 3, 4)
	cache(t, tree, 1, 2, 7, 8)
	pages, _ := tree.Match([]uint64{1, 2, 3, 4}, nil)
	tree.Match([]uint64{1, 2, 7, 8}, nil)
	if gone := tree.Evict(1, nil); !slices.Equal(gone, pages[3:]) {
		t.Errorf("evicted %v, want the last page of the oldest leaf %v", gone, pages[3:])
	}
	if gone := tree.Evict(2, nil); len(gone) != 2 || gone[0] != pages[2] {
		t.Errorf("evicted %v, want the rest of the leaf first: %v", gone, pages[2])
	}
	if gone := tree.Evict(100, nil); len(gone) != 3 || tree.Available() != 10 || tree.Evictable() != 0 {
		t.Errorf("evicted %v, %d free", gone, tree.Available())
	}
}
