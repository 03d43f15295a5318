package report

import "math"

// A sketch keeps the relative error of percentiles below accuracy. Its constants and its rank rule are those of the
// sketch that the reference's reports use, so that both give the same percentiles for the same samples.
const (
	accuracy = 0.001
	maxBins  = 32768
	base     = 1 + 2*accuracy/(1-accuracy)
)

var (
	keysPerE     = 1 / math.Log1p(2*accuracy/(1-accuracy))
	smallestReal = 2.2250738585072014e-308 * base
)

// sketch is a streaming distribution of values that are not negative. Count, mean, deviation, least and greatest value
// are exact. The zero value is empty.
type sketch struct {
	n        uint64
	mean, m2 float64 // m2 is the sum of squared distances from the mean
	min, max float64
	zeros    uint64
	low      int      // key of bins[0]
	bins     []uint64 // bins[i] counts values whose key is low+i
}

// add takes in a value n times.
func (s *sketch) add(x float64, n uint64) {
	if s.n == 0 || x < s.min {
		s.min = x
	}
	if s.n == 0 || x > s.max {
		s.max = x
	}
	before := float64(s.n)
	s.n += n
	d, share := x-s.mean, float64(n)/float64(s.n)
	s.mean += d * share
	s.m2 += d * d * before * share
	if x < smallestReal {
		s.zeros += n
		return
	}
	s.count(int(math.Ceil(math.Log(x)*keysPerE)), n)
}

// count adds to one bin. The bins span the keys seen; beyond maxBins the lowest ones are one.
func (s *sketch) count(key int, n uint64) {
	if len(s.bins) == 0 {
		s.low = key
	}
	for ; key < s.low && len(s.bins) < maxBins; s.low -= grow {
		s.bins = append(make([]uint64, grow, grow+len(s.bins)), s.bins...)
	}
	for key >= s.low+len(s.bins) && len(s.bins) < maxBins {
		s.bins = append(s.bins, make([]uint64, grow)...)
	}
	s.collapse(key - (s.low + len(s.bins) - 1))
	s.bins[max(key-s.low, 0)] += n
}

// collapse moves the bins up by so many keys; what falls out at the bottom goes into the new lowest bin.
func (s *sketch) collapse(keys int) {
	if keys <= 0 {
		return
	}
	var fallen uint64
	out := min(keys, len(s.bins))
	for _, n := range s.bins[:out] {
		fallen += n
	}
	clear(s.bins[copy(s.bins, s.bins[out:]):])
	s.bins[0] += fallen
	s.low += keys
}

// grow is by how many bins a sketch grows; it divides maxBins.
const grow = 256

// merge takes in all values of o.
func (s *sketch) merge(o *sketch) {
	if o.n == 0 {
		return
	}
	if s.n == 0 {
		s.min, s.max = o.min, o.max
	}
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	before, total := float64(s.n), float64(s.n+o.n)
	d := o.mean - s.mean
	s.mean += d * float64(o.n) / total
	s.m2 += o.m2 + d*d*before*float64(o.n)/total
	s.n += o.n
	s.zeros += o.zeros
	for i, n := range o.bins {
		if n > 0 {
			s.count(o.low+i, n)
		}
	}
}

// percentile returns the representative of the bin that holds the p-th percentile; it may lie slightly outside the
// range of the samples. s must not be empty.
func (s *sketch) percentile(p float64) float64 {
	if s.n == 1 {
		return s.min
	}
	span, q := float64(s.n-1), 1.0
	if r := math.Round(span * p / 100); r < span {
		q = (r + 0.5) / span
	}
	rank := uint64(q * span)
	if rank < s.zeros {
		return 0
	}
	seen := s.zeros
	for i, n := range s.bins {
		if seen += n; seen > rank {
			return s.value(i)
		}
	}
	return s.max
}

// value returns the representative of the values in bins[i].
func (s *sketch) value(i int) float64 { return math.Exp(float64(s.low+i)/keysPerE) * (2 / (1 + base)) }
