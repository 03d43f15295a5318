package report

import (
	"math"
	"slices"

	"mockbench/engine"
)

// OfflineOptions say what an Offline collects.
type OfflineOptions struct {
	Bounds  Bounds
	Records bool // keep a record of every request
	Host    bool // there is a host tier: records tell its part
	Cut     bool // requests may be left unfinished, so that gaps count when a request is complete and not before
}

// Bounds are service level objectives in milliseconds; 0 is none. E2E stands alone.
type Bounds struct{ TTFT, ITL, E2E float64 }

func (b Bounds) none() bool { return b == Bounds{} }

// Offline makes the figures of a run on simulated time. Requests are counted when they are complete, as the reference
// does. It is not safe for concurrent use.
type Offline struct {
	o         OfflineOptions
	arrived   int
	ended     [Failed + 1]int
	input     uint64
	output    uint64
	reused    uint64 // at first admissions
	reusedMax uint64 // the most of any admission
	committed uint64
	duration  engine.Time
	good      int
	goodOut   uint64
	split     bool // requests visit two pools

	ttft, ttst, tpot, e2e exact
	itl, rate             sketch // gaps, and tokens a second of a user
	gap                   float64
	gaps                  uint64 // how often gap came in a row, not yet in the sketches
	records               []Entry
}

// NewOffline returns a collector that has seen nothing.
func NewOffline(o OfflineOptions) *Offline { return &Offline{o: o} }

// Arrive notes a request that arrived.
func (c *Offline) Arrive(*Entry) { c.arrived++ }

// Arrived returns the number of requests that have arrived.
func (c *Offline) Arrived() int { return c.arrived }

// Ended returns the number of requests that ended in a way.
func (c *Offline) Ended(s Status) int { return c.ended[s] }

// Committed counts prompt tokens that a pass computed.
func (c *Offline) Committed(tokens int) { c.committed += uint64(tokens) }

// Admit notes that a request left the queue of a rank.
func (c *Offline) Admit(e *Entry, stage Stage, at engine.Time, a *engine.Admission) {
	c.split = c.split || stage != Aggregated
	if e.admissions[stage] == 0 {
		e.admitted[stage], e.firstReused[stage] = at, int32(a.Reused)
		if stage != Decode {
			e.firstHost = int32(a.HostReused)
		}
	}
	e.admissions[stage]++
	e.maxReused[stage] = max(e.maxReused[stage], int32(a.Reused))
	if c.o.Records {
		e.history = append(e.history, admission{stage: stage, at: at, reused: a.Reused, host: a.HostReused})
	}
}

// Token notes an output token.
func (c *Offline) Token(e *Entry, at engine.Time) {
	e.tokens++
	switch e.tokens {
	case 1:
		e.first, e.latest = at, at
		return
	case 2:
		e.second = at
	}
	gap := float64(at - e.latest)
	e.latest = at
	if c.o.Cut {
		e.gaps = append(e.gaps, gap)
		return
	}
	c.Gaps(gap, 1)
}

// Gaps notes n gaps of one length between tokens, which Entry.Advance tells the requests of.
func (c *Offline) Gaps(gap float64, n int) {
	if n == 0 {
		return
	}
	if gap != c.gap {
		c.flush()
		c.gap = gap
	}
	c.gaps += uint64(n)
}

// flush takes the counted gaps into the distributions. Most gaps of a pass are equal, so they come in runs.
func (c *Offline) flush() {
	if c.gaps == 0 {
		return
	}
	c.itl.add(c.gap, c.gaps)
	if c.gap > 0 {
		c.rate.add(1000/c.gap, c.gaps)
	}
	c.gaps = 0
}

// End notes the end of a request.
func (c *Offline) End(e *Entry, at engine.Time, s Status) {
	e.status, e.ended = s, at
	if s == Completed && !e.Admitted() {
		s = Failed
	}
	c.ended[s]++
	if s == Completed {
		c.complete(e)
	}
}

// Keep takes a copy of an entry into the records, if there are any. It comes after End, when nothing more will happen to
// the request.
func (c *Offline) Keep(e *Entry) {
	if !c.o.Records {
		return
	}
	kept := *e
	kept.history, kept.Routes, kept.gaps = slices.Clone(e.history), slices.Clone(e.Routes), nil
	c.records = append(c.records, kept)
}

func (c *Offline) complete(e *Entry) {
	c.input += uint64(e.Input)
	c.output += uint64(e.tokens)
	c.reused += uint64(e.firstReused[e.firstStage()])
	c.reusedMax += uint64(max(e.maxReused[Aggregated], e.maxReused[Prefill], e.maxReused[Decode]))
	c.duration = max(c.duration, e.ended)
	for _, gap := range e.gaps {
		c.itl.add(gap, 1)
		if gap > 0 {
			c.rate.add(1000/gap, 1)
		}
	}
	if c.o.Bounds.keeps(e) {
		c.good++
		c.goodOut += uint64(e.tokens)
	}
	if e.tokens == 0 {
		return
	}
	c.ttft.add(e.ttft())
	c.e2e.add(e.latency())
	if e.tokens > 1 {
		c.ttst.add(float64(e.second - e.first))
		c.tpot.add(e.tpot())
	}
}

func (e *Entry) ttft() float64    { return since(e.first, e.Arrival) }
func (e *Entry) latency() float64 { return since(e.latest, e.Arrival) }
func (e *Entry) tpot() float64    { return float64(e.latest-e.first) / float64(e.tokens-1) }

// keeps reports whether a complete request kept all bounds.
func (b Bounds) keeps(e *Entry) bool {
	switch {
	case b.none():
		return false
	case e.tokens == 0:
		return b.E2E > 0 && float64(e.ended-e.Arrival) <= b.E2E
	case b.TTFT > 0 && e.ttft() > b.TTFT, b.E2E > 0 && e.latency() > b.E2E:
		return false
	}
	return b.ITL == 0 || e.tokens == 1 || (e.latency()-e.ttft())/float64(e.tokens-1) <= b.ITL
}

// Merge takes in all of another collector with the same options.
func (c *Offline) Merge(o *Offline) {
	c.flush()
	o.flush()
	c.arrived += o.arrived
	for s := range c.ended {
		c.ended[s] += o.ended[s]
	}
	c.input += o.input
	c.output += o.output
	c.reused += o.reused
	c.reusedMax += o.reusedMax
	c.committed += o.committed
	c.duration = max(c.duration, o.duration)
	c.split = c.split || o.split
	c.good += o.good
	c.goodOut += o.goodOut
	c.ttft = append(c.ttft, o.ttft...)
	c.ttst = append(c.ttst, o.ttst...)
	c.tpot = append(c.tpot, o.tpot...)
	c.e2e = append(c.e2e, o.e2e...)
	c.itl.merge(&o.itl)
	c.rate.merge(&o.rate)
	c.records = append(c.records, o.records...)
}

// exact is a distribution that keeps all samples.
type exact []float64

func (x *exact) add(v float64) { *x = append(*x, v) }

// stats returns the figures of the distribution; percentiles are samples.
func (x exact) stats() Distribution {
	if len(x) == 0 {
		return Distribution{}
	}
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	at := func(p float64) float64 { return sorted[int(math.Round(float64(len(sorted)-1)*p/100))] }
	out := Distribution{Samples: uint64(len(x)), Min: sorted[0], Max: sorted[len(sorted)-1], Median: at(50), P75: at(75), P90: at(90),
		P95: at(95), P99: at(99)}
	for _, v := range x {
		out.Mean += v
	}
	n := float64(len(x))
	out.Mean /= n
	for _, v := range x {
		out.Std += (v - out.Mean) * (v - out.Mean)
	}
	out.Std = math.Sqrt(out.Std / n)
	return out
}
