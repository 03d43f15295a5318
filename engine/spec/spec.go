// Package spec models speculative decoding: how many draft tokens of a forward are accepted. Its random stream is the
// reference's, bit for bit.
package spec

import "mockbench/engine/random"

// Sampler draws accepted tokens for one rank. It is never reset.
type Sampler struct {
	thresholds []uint64 // a draft is accepted if a draw is below; always is where the rate is 1
	always     []bool
	source     *random.ChaCha12
}

// NewSampler returns a sampler for conditional acceptance rates in [0, 1], one a draft token.
func NewSampler(rates []float64, seed uint64) *Sampler {
	s := &Sampler{source: random.New(seed)}
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
		if !s.always[i] && s.source.Uint64() >= t {
			return 1 + i
		}
	}
	return 1 + len(s.thresholds)
}

// Drafts returns the most draft tokens of a forward.
func (s *Sampler) Drafts() int { return len(s.thresholds) }
