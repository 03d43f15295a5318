package trace

import "math/bits"

// Random is the generator that the reference's workloads draw from: ChaCha with 12 rounds, its key made of a seed. It can
// be placed anywhere in its stream of words.
type Random struct {
	key   [8]uint32
	block uint64
	words [16]uint32
	next  int // in words; 16 if the next block must be made
}

// NewRandom returns the generator of a seed.
func NewRandom(seed uint64) *Random {
	r := &Random{next: 16}
	for i := range r.key {
		seed = seed*6364136223846793005 + 11634580027462260723
		x := uint32(((seed >> 18) ^ seed) >> 27)
		r.key[i] = bits.RotateLeft32(x, -int(seed>>59))
	}
	return r
}

// Seek places the generator before a word of its stream.
func (r *Random) Seek(word uint64) {
	block := word / 16
	if r.next == 16 || r.block != block+1 {
		r.block = block
		r.make()
	}
	r.next = int(word % 16)
}

// Uint32 returns the next word.
func (r *Random) Uint32() uint32 {
	if r.next == 16 {
		r.make()
	}
	r.next++
	return r.words[r.next-1]
}

// Uint64 returns the next two words, the low one first.
func (r *Random) Uint64() uint64 {
	low := uint64(r.Uint32())
	return low | uint64(r.Uint32())<<32
}

// Float64 returns a number in [0, 1).
func (r *Random) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Below returns a number in [0, n).
func (r *Random) Below(n uint32) uint32 {
	m := uint64(r.Uint32()) * uint64(n)
	high, low := uint32(m>>32), uint32(m)
	if low > -n {
		again := uint64(r.Uint32()) * uint64(n)
		if _, carry := bits.Add32(low, uint32(again>>32), 0); carry != 0 {
			high++
		}
	}
	return high
}

// make computes the block of words at r.block and moves on.
func (r *Random) make() {
	start := [16]uint32{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}
	copy(start[4:], r.key[:])
	start[12], start[13] = uint32(r.block), uint32(r.block>>32)
	x := start
	for range 6 {
		quarter(&x, 0, 4, 8, 12)
		quarter(&x, 1, 5, 9, 13)
		quarter(&x, 2, 6, 10, 14)
		quarter(&x, 3, 7, 11, 15)
		quarter(&x, 0, 5, 10, 15)
		quarter(&x, 1, 6, 11, 12)
		quarter(&x, 2, 7, 8, 13)
		quarter(&x, 3, 4, 9, 14)
	}
	for i := range x {
		r.words[i] = x[i] + start[i]
	}
	r.block++
	r.next = 0
}

func quarter(x *[16]uint32, a, b, c, d int) {
	x[a] += x[b]
	x[d] = bits.RotateLeft32(x[d]^x[a], 16)
	x[c] += x[d]
	x[b] = bits.RotateLeft32(x[b]^x[c], 12)
	x[a] += x[b]
	x[d] = bits.RotateLeft32(x[d]^x[a], 8)
	x[c] += x[d]
	x[b] = bits.RotateLeft32(x[b]^x[c], 7)
}

// planSeed is the seed of planned outputs.
const planSeed = 0xD37A0A7E5EED

// Planner makes the planned outputs of a trace, each when it is asked for.
type Planner struct{ random *Random }

// NewPlanner returns a planner.
func NewPlanner() *Planner { return &Planner{NewRandom(planSeed)} }

// Append appends the output of a turn.
func (p *Planner) Append(dst []uint32, u *Turn) []uint32 {
	if u.Extra != nil && u.Extra.Tokens != nil {
		return append(dst, u.Extra.Tokens...)
	}
	p.random.Seek(u.Plan)
	for range u.Output {
		dst = append(dst, p.random.Uint32())
	}
	return dst
}
