package trace

import (
	"strconv"

	"mockbench/kv/hashindex"
)

// interner numbers ids in the order of their first appearance.
type interner struct{ numbers hashindex.Index }

func newInterner() interner { return interner{} }

func (n *interner) len() int { return n.numbers.Len() }

func (n *interner) number(id uint64) uint32 {
	number, _ := n.numbers.Add(mix(id), int32(n.numbers.Len()))
	return uint32(number)
}

// mix spreads ids, which often count up, over all bits. No two ids become the same.
func mix(id uint64) uint64 {
	id = (id ^ id>>30) * 0xBF58476D1CE4E5B9
	id = (id ^ id>>27) * 0x94D049BB133111EB
	return id ^ id>>31
}

// all numbers a list of ids.
func (n *interner) all(ids []uint64) []uint32 {
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = n.number(id)
	}
	return out
}

// short writes a number in its shortest form.
func short(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
