package report

import (
	"fmt"
	"math"

	"mockbench/engine"
)

// Limits are service level objectives in milliseconds of simulated time; 0 is none.
type Limits struct{ TTFT, ITL, E2E float64 }

// Validate returns a *engine.SettingError for the first limit that is out of range.
func (l Limits) Validate() error {
	for _, one := range []struct {
		name  string
		value float64
	}{{"slo.ttft_ms", l.TTFT}, {"slo.itl_ms", l.ITL}, {"slo.e2e_ms", l.E2E}} {
		if !(one.value >= 0) || math.IsInf(one.value, 0) {
			return &engine.SettingError{Setting: one.name, Kind: engine.KindRange, Given: fmt.Sprint(one.value),
				Allowed: "must be finite and not negative"}
		}
	}
	return nil
}

// ended is a completed request with at least one token: when it ended and its latencies in milliseconds.
type ended struct {
	at              engine.Time
	ttft, tpot, e2e float64
}

// keeps reports whether the request kept all limits.
func (e *ended) keeps(l Limits) bool {
	return (l.TTFT == 0 || e.ttft <= l.TTFT) && (l.ITL == 0 || e.tpot <= l.ITL) && (l.E2E == 0 || e.e2e <= l.E2E)
}

// keptEnded is how many of the latest requests of a worker are kept.
const keptEnded = 1024

// endedRing is the latest completed requests.
type endedRing struct {
	list []ended // by number modulo keptEnded
	next int
}

func (r *endedRing) add(e ended) {
	if len(r.list) < keptEnded {
		r.list = append(r.list, e)
	} else {
		r.list[r.next] = e
	}
	r.next = (r.next + 1) % keptEnded
}

// Attained returns how many of the requests that all workers completed in the last 30 simulated seconds kept limits,
// which need not be those of the report, and how many these requests are. Of each worker the latest 1,024 are looked at.
func (c *Collector) Attained(l Limits, now engine.Time) (kept, all int) {
	count := func(m *meter) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for i := range m.ended.list {
			e := &m.ended.list[i]
			if float64(now-e.at) > windowSpan {
				continue
			}
			all++
			if e.keeps(l) {
				kept++
			}
		}
	}
	if c.split != nil {
		count(c.split.whole)
		return kept, all
	}
	for _, m := range c.workers {
		count(m)
	}
	return kept, all
}
