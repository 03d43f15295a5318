package replay

import (
	"fmt"

	"mockbench/engine"
)

// Observer sees what a fleet does, as it happens. It is called by the goroutine of the run; what it is given it may not
// keep, nor change.
type Observer interface {
	// Begin comes once, before anything has happened.
	Begin(fleet []Observed)

	// Submitted tells that a request entered the queue of a rank.
	Submitted(worker, rank int, r *engine.Request, now engine.Time)

	// Pass is called with every record, at the end of its pass.
	Pass(worker int, p *engine.Pass)
}

// Observed is one worker of a fleet.
type Observed struct {
	Name  string
	Ranks int
	Rank  func(rank int) engine.Scheduler // for inspection while the observer is called
	Pool
}

// observed lists the workers of all pools, prefill workers first, and numbers them.
func (s *sim) observed() (fleet []Observed) {
	for _, p := range s.pools {
		pool, letter := &s.o.Workers, "w"
		if s.o.disaggregated() {
			pool, letter = &s.o.Decode, "d"
			if p.slot == 0 {
				pool, letter = &s.o.Prefill, "p"
			}
		}
		p.at = len(fleet)
		for _, w := range p.workers {
			fleet = append(fleet, Observed{Name: fmt.Sprint(letter, w.id), Ranks: p.ranks, Rank: w.group.Rank, Pool: *pool})
		}
	}
	return fleet
}

// number returns the place of a worker among all.
func (w *worker) number() int { return w.pool.at + w.id - w.pool.first }
