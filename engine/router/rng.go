package router

import "math/bits"

// rng is the wyrand generator. Its value is its state and its seed.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x2d358dccaa6c78a5
	s := uint64(*r)
	hi, lo := bits.Mul64(s, s^0x8bb84b93962eacc9)
	return hi ^ lo
}

// below returns a number in [0, n), n > 0, every one equally likely.
func (r *rng) below(n uint64) uint64 {
	hi, lo := bits.Mul64(r.next(), n)
	if lo < n {
		for biased := -n % n; lo < biased; {
			hi, lo = bits.Mul64(r.next(), n)
		}
	}
	return hi
}

// float returns a number in [0, 1).
func (r *rng) float() float64 {
	for {
		if f := float64(r.next()>>1) * 0x1p-63; f < 1 {
			return f
		}
	}
}
