package hashindex

import (
	"testing"

	"pgregory.net/rapid"
)

func TestRandomOperationsOnCompact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Compact
		var keys []uint64
		want := map[uint64]int32{}
		for range rapid.IntRange(0, 300).Draw(t, "operations") {
			// Runs collide, and some hashes differ in their high halves only.
			h := uint64(rapid.IntRange(0, 99).Draw(t, "low"))*64 | uint64(rapid.IntRange(0, 1).Draw(t, "high"))<<40
			has, known := want[h]
			keys = append(keys, h)
			number := int32(len(keys) - 1)
			switch op := rapid.IntRange(0, 2).Draw(t, "operation"); {
			case known && op == 0:
				x.Remove(h, keys)
				delete(want, h)
			case known && op == 1:
				x.Replace(h, number, keys)
				want[h] = number
			default:
				got, fresh := x.Add(h, number, keys)
				if fresh == known || known && got != has || !known && got != number {
					t.Fatalf("adding %x: got %d, %v, it had %d, %v", h, got, fresh, has, known)
				}
				want[h] = got
			}
		}
		if x.Len() != len(want) {
			t.Fatalf("%d hashes, want %d", x.Len(), len(want))
		}
		for low := range uint64(100) {
			for high := range uint64(2) {
				h := low*64 | high<<40
				u, ok := x.Get(h, keys)
				if w, has := want[h]; ok != has || ok && u != w {
					t.Fatalf("hash %x: got %d, %v, want %d, %v", h, u, ok, w, has)
				}
			}
		}
	})
}
