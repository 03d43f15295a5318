package engine

import "math/bits"

// Moments keeps count, sum and sum of squares of integers that come and go, so that their population variance needs no
// walk over them. The zero value is empty.
type Moments struct {
	N   int
	Sum int
	sq  uint64
}

// Add takes a value in.
func (m *Moments) Add(x int) {
	m.N++
	m.Sum += x
	m.sq += uint64(x) * uint64(x)
}

// Remove takes out a value that was added.
func (m *Moments) Remove(x int) {
	m.N--
	m.Sum -= x
	m.sq -= uint64(x) * uint64(x)
}

// Merge takes all values of o in.
func (m *Moments) Merge(o Moments) {
	m.N += o.N
	m.Sum += o.Sum
	m.sq += o.sq
}

// Variance returns the population variance, 0 for no values. It is computed from exact integers as
// (n*sum of squares - sum^2) / n^2.
func (m *Moments) Variance() float64 {
	if m.N == 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(m.N), m.sq)
	meanHigh, meanLow := bits.Mul64(uint64(m.Sum), uint64(m.Sum))
	low, borrow := bits.Sub64(low, meanLow, 0)
	high, _ = bits.Sub64(high, meanHigh, borrow)
	return (float64(high)*(1<<64) + float64(low)) / (float64(m.N) * float64(m.N))
}
