package live

import (
	"testing"
)

func TestCancelHead(t *testing.T) {
	var told journal
	inBubble(t, 10, 1, stuckWith(&told, exhausted), func(b *bench) {
		if _, ok := b.w.CancelHead(0); ok {
			t.Error("a rank that does not stall has a head to cancel")
		}
		big, small := b.submit("big", 5), b.submit("small", 1)
		b.at(10)
		equal(t, "stalls", len(b.w.Stalled()), 1)
		label, ok := b.w.CancelHead(0)
		equal(t, "label", label, "big")
		equal(t, "cancelled", ok, true)
		_, end, _ := b.next(big)
		equal(t, "end of the head", end, Rejected)
		_, end, _ = b.next(small)
		equal(t, "end of the next one", end, Finished)
		equal(t, "stalls", len(b.w.Stalled()), 0)
		if _, ok := b.w.CancelHead(1); ok {
			t.Error("a rank that does not exist has a head to cancel")
		}
	})
}

// An engine that keeps no tree says so.
func TestNoTree(t *testing.T) {
	inBubble(t, 10, 1, nil, func(b *bench) {
		tree, ok, err := b.w.Tree(0, 10)
		if ok || err != nil || len(tree.Nodes) > 0 {
			t.Errorf("got %v, %v, %v", tree, ok, err)
		}
		if _, _, err := b.w.Tree(1, 10); err == nil {
			t.Error("a rank that does not exist has a tree")
		}
	})
}
