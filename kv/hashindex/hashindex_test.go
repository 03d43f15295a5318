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
			h := uint64(rapid.IntRange(0, 200).Draw(t, "hash")) * 64 // the low bits collide
			if _, ok := want[h]; ok && rapid.Bool().Draw(t, "remove") {
				x.Remove(h)
				delete(want, h)
			} else {
				want[h] = int32(len(want))
				x.Put(h, want[h])
			}
		}
		if x.Len() != len(want) {
			t.Fatalf("%d hashes, want %d", x.Len(), len(want))
		}
		for h := range uint64(201) {
			u, ok := x.Get(h * 64)
			if w, has := want[h*64]; ok != has || ok && u != w {
				t.Fatalf("hash %d: got %d, %v, want %d, %v", h*64, u, ok, w, has)
			}
		}
	})
}
