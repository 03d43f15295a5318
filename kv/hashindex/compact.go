package hashindex

// Compact is an Index of half the size. It keeps only the low half of each hash; the caller keeps the whole of it, by
// number, and hands that list to every call: keys[n] is the hash whose number is n. The zero value is empty.
type Compact struct {
	slots []compactSlot // a power of two of them, at most three quarters full
	used  int
}

// compactSlot is empty if its number is 0; otherwise that is the number plus one.
type compactSlot struct {
	low    uint32
	number int32
}

// Len returns the number of hashes.
func (x *Compact) Len() int { return x.used }

// find returns the slot of a hash, or the empty one where it belongs.
func (x *Compact) find(hash uint64, keys []uint64) int {
	mask := len(x.slots) - 1
	slots, low := x.slots, uint32(hash)
	i := int(low) & mask
	for {
		s := slots[i]
		if s.number == 0 || s.low == low && keys[s.number-1] == hash {
			return i
		}
		i = (i + 1) & mask
	}
}

// Get returns the number of a hash.
func (x *Compact) Get(hash uint64, keys []uint64) (number int32, ok bool) {
	if x.used == 0 {
		return 0, false
	}
	s := x.slots[x.find(hash, keys)]
	return s.number - 1, s.number != 0
}

// Add gives a hash a number unless it has one, and returns the number it has then. keys[number] must be the hash.
func (x *Compact) Add(hash uint64, number int32, keys []uint64) (has int32, fresh bool) {
	if 4*(x.used+1) > 3*len(x.slots) {
		x.grow()
	}
	s := &x.slots[x.find(hash, keys)]
	if s.number != 0 {
		return s.number - 1, false
	}
	*s = compactSlot{low: uint32(hash), number: number + 1}
	x.used++
	return number, true
}

// Replace changes the number of a hash that is present. Both numbers have it as key.
func (x *Compact) Replace(hash uint64, number int32, keys []uint64) {
	x.slots[x.find(hash, keys)].number = number + 1
}

func (x *Compact) grow() {
	old := x.slots
	x.slots = make([]compactSlot, max(64, 2*len(old)))
	mask := len(x.slots) - 1
	for _, s := range old {
		if s.number == 0 {
			continue
		}
		i := int(s.low) & mask
		for x.slots[i].number != 0 {
			i = (i + 1) & mask
		}
		x.slots[i] = s
	}
}

// Remove takes out a hash that is present and moves later ones of its run back, so that no gap cuts them off.
func (x *Compact) Remove(hash uint64, keys []uint64) {
	mask, slots := len(x.slots)-1, x.slots
	gap := x.find(hash, keys)
	for i := (gap + 1) & mask; slots[i].number != 0; i = (i + 1) & mask {
		home := int(slots[i].low) & mask
		if (i-home)&mask >= (i-gap)&mask {
			slots[gap] = slots[i]
			gap = i
		}
	}
	slots[gap] = compactSlot{}
	x.used--
}
