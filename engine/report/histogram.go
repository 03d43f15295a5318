package report

import (
	"math"

	"mockbench/engine"
)

// A Histogram has a bucket for each 32nd part of a power of two between minValue and maxValue milliseconds, so that a
// value and the middle of its bucket differ by at most 1.6 %. Values outside fall into the first or last bucket.
const (
	partBits = 5
	minPower = -5 // 2^-5 ms
	maxPower = 20 // 2^20 ms, 17 minutes

	// Buckets is the number of buckets of a Histogram.
	Buckets = (maxPower - minPower) << partBits
)

// Histogram counts values by logarithmic buckets. The zero value is empty.
type Histogram struct {
	Counts [Buckets]uint32
	N      uint64
	Sum    float64
	Max    float64 // exact
}

// bucket returns the bucket of a value, read off its exponent and the first bits of its mantissa.
func bucket(x float64) int {
	const first = (1023 + minPower) << partBits
	return max(0, min(Buckets-1, int(math.Float64bits(x)>>(52-partBits))-first))
}

// Range returns the values that bucket i stands for.
func (h *Histogram) Range(i int) (low, high float64) { return edge(i), edge(i + 1) }

func edge(i int) float64 {
	part := float64(i&(1<<partBits-1)) / (1 << partBits)
	return math.Ldexp(1+part, i>>partBits+minPower)
}

func (h *Histogram) add(x float64, n uint32) {
	h.Counts[bucket(x)] += n
	h.N += uint64(n)
	h.Sum += x * float64(n)
	h.Max = max(h.Max, x)
}

// Merge takes in all values of o.
func (h *Histogram) Merge(o *Histogram) {
	if o.N == 0 {
		return
	}
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.N += o.N
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
}

// subtract takes out values that were merged; Max stays.
func (h *Histogram) subtract(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] -= n
	}
	h.N -= o.N
	h.Sum -= o.Sum
}

// Percentile returns the p-th percentile, the middle of its bucket; ok is false without values.
func (h *Histogram) Percentile(p float64) (x float64, ok bool) {
	if h.N == 0 {
		return 0, false
	}
	rank := uint64(math.Round(float64(h.N-1) * p / 100))
	if rank == h.N-1 {
		return h.Max, true
	}
	var seen uint64
	for i, n := range h.Counts {
		if seen += uint64(n); seen > rank {
			return min((edge(i)+edge(i+1))/2, h.Max), true
		}
	}
	return h.Max, true
}

// Mean returns the mean of the values; ok is false without values.
func (h *Histogram) Mean() (x float64, ok bool) {
	if h.N == 0 {
		return 0, false
	}
	return h.Sum / float64(h.N), true
}

// Share returns the share of values up to a limit, exact to the limit's bucket; ok is false without values.
func (h *Histogram) Share(limit float64) (share float64, ok bool) {
	if h.N == 0 {
		return 0, false
	}
	if h.Max <= limit {
		return 1, true
	}
	var kept uint64
	for _, n := range h.Counts[:bucket(limit)] {
		kept += uint64(n)
	}
	return float64(kept) / float64(h.N), true
}

// The window of recent values is a ring of slots.
const (
	slots       = 10
	slotSpan    = 3000 // simulated milliseconds
	windowSpan  = slots * slotSpan
	columnSpan  = 200 // simulated milliseconds of a Column
	columnCount = 600 // columns kept
)

// recent is the values of the last windowSpan milliseconds. The zero value is empty.
type recent struct {
	*rings
	slot int64 // number of the newest slot
}

type rings struct {
	ring [slots]Histogram // by slot number modulo slots
	sum  Histogram
}

// advance drops the slots that are too old at a time.
func (r *recent) advance(now engine.Time) {
	slot := int64(now / slotSpan)
	if r.rings == nil {
		r.slot = slot
		return
	}
	for i := int64(0); r.slot < slot && i < slots; i++ {
		r.slot++
		old := &r.ring[r.slot%slots]
		if old.N > 0 {
			r.sum.subtract(old)
			*old = Histogram{}
		}
	}
	r.slot = max(r.slot, slot)
}

// add takes in a value n times, at a time that was advanced to.
func (r *recent) add(x float64, n uint32) {
	if r.rings == nil {
		r.rings = new(rings)
	}
	r.ring[r.slot%slots].add(x, n)
	r.sum.Counts[bucket(x)] += n
	r.sum.N += uint64(n)
	r.sum.Sum += x * float64(n)
}

// addTo merges the values into h.
func (r *recent) addTo(h *Histogram) {
	if r.rings == nil {
		return
	}
	r.sum.Max = 0
	for i := range r.ring {
		r.sum.Max = max(r.sum.Max, r.ring[i].Max)
	}
	h.Merge(&r.sum)
}
