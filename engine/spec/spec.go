// Package spec models speculative decoding: how many draft tokens of a forward are accepted. Its random stream is the
// reference's, bit for bit.
package spec

import "math/bits"

// Sampler draws accepted tokens for one rank. It is never reset.
type Sampler struct {
	thresholds []uint64 // a draft is accepted if a draw is below; always is where the rate is 1
	always     []bool
	source     source
}

// NewSampler returns a sampler for conditional acceptance rates in [0, 1], one a draft token.
func NewSampler(rates []float64, seed uint64) *Sampler {
	s := &Sampler{source: newSource(seed)}
	for _, p := range rates {
		s.always = append(s.always, p >= 1)
		s.thresholds = append(s.thresholds, threshold(p))
	}
	return s
}

func threshold(p float64) uint64 {
	if p >= 1 {
		return 0
	}
	return uint64(p * 18446744073709551616.0)
}

// Accept returns the tokens of one forward: the base token and the drafts accepted before the first refusal.
func (s *Sampler) Accept() int {
	for i, t := range s.thresholds {
		if !s.always[i] && s.source.next() >= t {
			return 1 + i
		}
	}
	return 1 + len(s.thresholds)
}

// Drafts returns the most draft tokens of a forward.
func (s *Sampler) Drafts() int { return len(s.thresholds) }

// source is a ChaCha stream with 12 rounds, read as 64-bit words.
type source struct {
	key     [8]uint32
	counter uint64
	block   [16]uint32
	used    int // words of block
}

// newSource expands a 64-bit seed to a key with one step of a permuted congruential generator a word.
func newSource(seed uint64) source {
	s := source{used: 16}
	for i := range s.key {
		seed = seed*6364136223846793005 + 11634580027462260723
		s.key[i] = bits.RotateLeft32(uint32(((seed>>18)^seed)>>27), -int(seed>>59))
	}
	return s
}

func (s *source) next() uint64 {
	if s.used == len(s.block) {
		s.refill()
	}
	low, high := s.block[s.used], s.block[s.used+1]
	s.used += 2
	return uint64(high)<<32 | uint64(low)
}

func (s *source) refill() {
	start := [16]uint32{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}
	copy(start[4:12], s.key[:])
	start[12], start[13] = uint32(s.counter), uint32(s.counter>>32)
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
		s.block[i] = x[i] + start[i]
	}
	s.counter++
	s.used = 0
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
