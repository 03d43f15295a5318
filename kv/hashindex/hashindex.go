// Package hashindex maps block hashes to small numbers, such as that of a pool unit.
package hashindex

// Index is an open-addressing table with linear probing, at most half full. Hashes are well mixed already, so their low
// bits choose the slot. The zero value is empty.
type Index struct {
	slots []slot // a power of two of them
	used  int
}

// slot is empty if its number is 0; otherwise that is the number plus one.
type slot struct {
	hash   uint64
	number int32
}

// Len returns the number of hashes.
func (x *Index) Len() int { return x.used }

// find returns the slot of a hash, or the empty one where it belongs.
func (x *Index) find(hash uint64) int {
	mask := uint64(len(x.slots) - 1)
	i := hash & mask
	for x.slots[i].number != 0 && x.slots[i].hash != hash {
		i = (i + 1) & mask
	}
	return int(i)
}

// Get returns the number of a hash.
func (x *Index) Get(hash uint64) (number int32, ok bool) {
	if x.used == 0 {
		return 0, false
	}
	s := x.slots[x.find(hash)]
	return s.number - 1, s.number != 0
}

// Put sets the number of a hash, new or not.
func (x *Index) Put(hash uint64, number int32) {
	if 2*(x.used+1) > len(x.slots) {
		x.grow()
	}
	s := &x.slots[x.find(hash)]
	if s.number == 0 {
		x.used++
	}
	*s = slot{hash: hash, number: number + 1}
}

func (x *Index) grow() {
	old := x.slots
	x.slots = make([]slot, max(64, 2*len(old)))
	for _, s := range old {
		if s.number != 0 {
			x.slots[x.find(s.hash)] = s
		}
	}
}

// Remove takes out a hash that is present and moves later ones of its run back, so that no gap cuts them off.
func (x *Index) Remove(hash uint64) {
	mask := len(x.slots) - 1
	gap := x.find(hash)
	for i := (gap + 1) & mask; x.slots[i].number != 0; i = (i + 1) & mask {
		home := int(x.slots[i].hash) & mask
		if (i-home)&mask >= (i-gap)&mask {
			x.slots[gap] = x.slots[i]
			gap = i
		}
	}
	x.slots[gap] = slot{}
	x.used--
}
