// Package random is the generator that the reference draws workloads, planned outputs and draft acceptance from: ChaCha
// with 12 rounds and a 64-bit block counter, its key made of a seed.
package random

import "math/bits"

// blockWords is the number of words that one block of the stream has.
const blockWords = 16

// ChaCha12 is a position in the stream of one seed.
type ChaCha12 struct {
	key   [8]uint32
	block uint64             // number of the next block
	words [blockWords]uint32 // the block before it
	next  int                // in words; blockWords if the next block must be made
}

// New returns the generator of a seed, at the beginning of its stream.
func New(seed uint64) *ChaCha12 {
	r := &ChaCha12{next: blockWords}
	for i := range r.key {
		seed = seed*6364136223846793005 + 11634580027462260723
		x := uint32(((seed >> 18) ^ seed) >> 27)
		r.key[i] = bits.RotateLeft32(x, -int(seed>>59))
	}
	return r
}

// Seek places the generator before a word of its stream.
func (r *ChaCha12) Seek(word uint64) {
	block := word / blockWords
	if r.block != block+1 {
		r.block = block
		r.fill()
	}
	r.next = int(word % blockWords)
}

// Uint32 returns the next word.
func (r *ChaCha12) Uint32() uint32 {
	if r.next == blockWords {
		r.fill()
	}
	r.next++
	return r.words[r.next-1]
}

// Uint64 returns the next two words, the low one first.
func (r *ChaCha12) Uint64() uint64 {
	low := uint64(r.Uint32())
	return low | uint64(r.Uint32())<<32
}

// Float64 returns a number in [0, 1).
func (r *ChaCha12) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Below returns a number in [0, n).
func (r *ChaCha12) Below(n uint32) uint32 {
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

// Read fills dst with the next words.
func (r *ChaCha12) Read(dst []uint32) {
	for len(dst) > 0 {
		if r.next == blockWords {
			r.fill()
		}
		n := copy(dst, r.words[r.next:])
		r.next += n
		dst = dst[n:]
	}
}

// constants are the first words of every state: the text "expand 32-byte k".
var constants = [4]uint32{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}

// fill makes the block of words at r.block and moves on. The state is kept in variables, not in an array, so that the
// compiler can keep it in registers.
func (r *ChaCha12) fill() {
	k := &r.key
	c12, c13 := uint32(r.block), uint32(r.block>>32)
	x0, x1, x2, x3 := constants[0], constants[1], constants[2], constants[3]
	x4, x5, x6, x7 := k[0], k[1], k[2], k[3]
	x8, x9, x10, x11 := k[4], k[5], k[6], k[7]
	x12, x13, x14, x15 := c12, c13, uint32(0), uint32(0)
	for range 6 {
		x0, x4, x8, x12 = quarter(x0, x4, x8, x12)
		x1, x5, x9, x13 = quarter(x1, x5, x9, x13)
		x2, x6, x10, x14 = quarter(x2, x6, x10, x14)
		x3, x7, x11, x15 = quarter(x3, x7, x11, x15)
		x0, x5, x10, x15 = quarter(x0, x5, x10, x15)
		x1, x6, x11, x12 = quarter(x1, x6, x11, x12)
		x2, x7, x8, x13 = quarter(x2, x7, x8, x13)
		x3, x4, x9, x14 = quarter(x3, x4, x9, x14)
	}
	r.words = [blockWords]uint32{
		x0 + constants[0], x1 + constants[1], x2 + constants[2], x3 + constants[3],
		x4 + k[0], x5 + k[1], x6 + k[2], x7 + k[3],
		x8 + k[4], x9 + k[5], x10 + k[6], x11 + k[7],
		x12 + c12, x13 + c13, x14, x15,
	}
	r.block++
	r.next = 0
}

func quarter(a, b, c, d uint32) (uint32, uint32, uint32, uint32) {
	a += b
	d = bits.RotateLeft32(d^a, 16)
	c += d
	b = bits.RotateLeft32(b^c, 12)
	a += b
	d = bits.RotateLeft32(d^a, 8)
	c += d
	b = bits.RotateLeft32(b^c, 7)
	return a, b, c, d
}
