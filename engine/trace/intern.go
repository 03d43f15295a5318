package trace

import "strconv"

// interner numbers ids in the order of their first appearance.
type interner struct{ numbers map[uint64]uint32 }

func newInterner() interner { return interner{map[uint64]uint32{}} }

func (n *interner) len() int { return len(n.numbers) }

func (n *interner) number(id uint64) uint32 {
	i, ok := n.numbers[id]
	if !ok {
		i = uint32(len(n.numbers))
		n.numbers[id] = i
	}
	return i
}

// short writes a number in its shortest form.
func short(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// all numbers a list of ids.
func (n *interner) all(ids []uint64) []uint32 {
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = n.number(id)
	}
	return out
}
