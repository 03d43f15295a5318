package pool

// index maps hashes to units: an open-addressing table with linear probing, at most half full. Hashes are well mixed
// already, so their low bits choose the slot.
type index struct {
	slots []slot // a power of two of them
	used  int
}

// slot is empty if its unit is 0; otherwise unit is the number of the unit plus one.
type slot struct {
	hash uint64
	unit int32
}

// find returns the slot of a hash, or the empty one where it belongs.
func (x *index) find(hash uint64) int {
	mask := uint64(len(x.slots) - 1)
	i := hash & mask
	for x.slots[i].unit != 0 && x.slots[i].hash != hash {
		i = (i + 1) & mask
	}
	return int(i)
}

func (x *index) get(hash uint64) (unit int32, ok bool) {
	if x.used == 0 {
		return 0, false
	}
	s := x.slots[x.find(hash)]
	return s.unit - 1, s.unit != 0
}

// put sets the unit of a hash, new or not.
func (x *index) put(hash uint64, unit int32) {
	if 2*(x.used+1) > len(x.slots) {
		x.grow()
	}
	s := &x.slots[x.find(hash)]
	if s.unit == 0 {
		x.used++
	}
	*s = slot{hash: hash, unit: unit + 1}
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]slot, max(64, 2*len(old)))
	for _, s := range old {
		if s.unit != 0 {
			x.slots[x.find(s.hash)] = s
		}
	}
}

// remove takes out a hash that is present and moves later ones of its run back, so that no gap cuts them off.
func (x *index) remove(hash uint64) {
	mask := len(x.slots) - 1
	gap := x.find(hash)
	for i := (gap + 1) & mask; x.slots[i].unit != 0; i = (i + 1) & mask {
		home := int(x.slots[i].hash) & mask
		if (i-home)&mask >= (i-gap)&mask {
			x.slots[gap] = x.slots[i]
			gap = i
		}
	}
	x.slots[gap] = slot{}
	x.used--
}
