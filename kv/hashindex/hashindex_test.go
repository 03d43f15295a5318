package hashindex

import (
	"testing"

	"pgregory.net/rapid"
)

func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		want := map[uint64]int32{}
		for range rapid.IntRange(0, 300).Draw(t, "operations") {
			// Low bits collide, and some hashes differ in their high halves only.
			h := uint64(rapid.IntRange(0, 100).Draw(t, "low"))*64 | uint64(rapid.IntRange(0, 1).Draw(t, "high"))<<40
			has, known := want[h]
			switch op := rapid.IntRange(0, 2).Draw(t, "operation"); {
			case known && op == 0:
				x.Remove(h)
				delete(want, h)
			case op == 1:
				got, fresh := x.Add(h, 7)
				if fresh == known || known && got != has || !known && got != 7 {
					t.Fatalf("adding %x: got %d, %v, it had %d, %v", h, got, fresh, has, known)
				}
				want[h] = got
			default:
				want[h] = int32(len(want))
				x.Put(h, want[h])
			}
		}
		if x.Len() != len(want) {
			t.Fatalf("%d hashes, want %d", x.Len(), len(want))
		}
		for i := range uint64(202) {
			h := i/2*64 | i%2<<40
			u, ok := x.Get(h)
			if w, has := want[h]; ok != has || ok && u != w {
				t.Fatalf("hash %x: got %d, %v, want %d, %v", h, u, ok, w, has)
			}
		}
	})
}
