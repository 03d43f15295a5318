// Package hashindex maps block hashes to small numbers, such as that of a pool unit.
package hashindex

// Index is an open-addressing table with linear probing, at most three quarters full. Hashes are well mixed already, so
// their low bits choose the slot. The zero value is empty.
type Index struct {
	slots   []slot // a power of two of them
	used    int
	fetched int32 // so that the compiler lets Fetch read
}

// slot is empty if its number is 0; otherwise that is the number plus one. The hash is in two halves so that a slot takes
// 12 bytes, not 16.
type slot struct {
	low, high uint32
	number    int32
}

func (s *slot) holds(hash uint64) bool { return s.low == uint32(hash) && s.high == uint32(hash>>32) }

// Len returns the number of hashes.
func (x *Index) Len() int { return x.used }

// find returns the slot of a hash, or the empty one where it belongs.
func (x *Index) find(hash uint64) int {
	slots := x.slots
	mask := len(slots) - 1
	for i := int(uint32(hash)) & mask; ; i = (i + 1) & mask {
		if s := &slots[i]; s.number == 0 || s.holds(hash) {
			return i
		}
	}
}

// Fetch brings the slots of hashes into the processor's cache, all at the same time, for calls that follow one another.
func (x *Index) Fetch(hashes []uint64) {
	if x.used == 0 {
		return
	}
	mask, sum := len(x.slots)-1, int32(0)
	for _, h := range hashes {
		sum |= x.slots[int(uint32(h))&mask].number
	}
	x.fetched = sum
}

// Get returns the number of a hash.
func (x *Index) Get(hash uint64) (number int32, ok bool) {
	if x.used == 0 {
		return 0, false
	}
	s := &x.slots[x.find(hash)]
	return s.number - 1, s.number != 0
}

// Put sets the number of a hash, new or not.
func (x *Index) Put(hash uint64, number int32) {
	if has, fresh := x.Add(hash, number); !fresh && has != number {
		x.slots[x.find(hash)].number = number + 1
	}
}

// Add gives a hash a number unless it has one, and returns the number it has then.
func (x *Index) Add(hash uint64, number int32) (has int32, fresh bool) {
	if 4*(x.used+1) > 3*len(x.slots) {
		x.grow()
	}
	s := &x.slots[x.find(hash)]
	if s.number != 0 {
		return s.number - 1, false
	}
	*s = slot{low: uint32(hash), high: uint32(hash >> 32), number: number + 1}
	x.used++
	return number, true
}

func (x *Index) grow() {
	old := x.slots
	x.slots = make([]slot, max(64, 2*len(old)))
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
func (x *Index) Remove(hash uint64) {
	mask, slots := len(x.slots)-1, x.slots
	gap := x.find(hash)
	for i := (gap + 1) & mask; slots[i].number != 0; i = (i + 1) & mask {
		home := int(slots[i].low) & mask
		if (i-home)&mask >= (i-gap)&mask {
			slots[gap] = slots[i]
			gap = i
		}
	}
	slots[gap] = slot{}
	x.used--
}
