package fast

import (
	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/timing"
	"mockbench/engine/trace"
)

// sim is ranks that depend on one another: all of a fleet with a router, a single one without.
type sim struct {
	o       *Options
	lane    int // number among the sims of the fleet
	ranks   []*rank
	router  *router.Dispatcher // nil: the only rank takes everything
	hasher  *hasher
	collect *report.Offline

	now     engine.Time
	running passes
	idle    idle
	spare   []*request
	flying  int // requests that arrived and have not ended
	passes  uint64
	seconds float64 // of workers
	steps   int
	cut     bool
}

// newSim returns count ranks of the fleet, from the one with the number first on.
func newSim(o *Options, m timing.Model, lane, first, count int) *sim {
	cfg := &o.Engine
	s := &sim{o: o, lane: lane, hasher: newHasher(o.TraceBlock, cfg.BlockSize),
		collect: report.NewOffline(report.OfflineOptions{Bounds: o.Bounds, Records: o.Records})}
	if o.Router != nil {
		s.router = router.NewDispatcher(router.DispatchOptions{Config: *o.Router, Workers: o.Workers, Ranks: 1, BlockSize: cfg.BlockSize,
			Seed: o.Seed, Budget: cfg.MaxNumBatchedTokens})
	}
	for i := first; i < first+count; i++ {
		r := newRank(i, cfg, m, s.hasher)
		if s.router != nil {
			r.changes = &changes{rank: i, pool: r.pool, index: s.router.Blocks()}
		}
		s.ranks = append(s.ranks, r)
	}
	return s
}

// arrivals is the share of a batch of requests that a sim takes.
type arrivals struct {
	list     []trace.Request
	at, step int
}

func (a *arrivals) next() engine.Time {
	if a.at < len(a.list) {
		return engine.Time(a.list[a.at].Arrival)
	}
	return Forever
}

// stepsBetweenLooks is how many events pass between two looks at the world outside.
const stepsBetweenLooks = 4096

// run takes requests and goes from event to event as long as they lie before the horizon, from which on more may arrive.
func (s *sim) run(a arrivals, horizon engine.Time) error {
	for !s.cut {
		if s.steps++; s.steps%stepsBetweenLooks == 0 && !s.look() {
			s.cut = true
		}
		t := a.next()
		if len(s.running) > 0 {
			t = min(t, s.running[0].end)
		}
		if t >= horizon || t == Forever {
			break
		}
		if t > s.now {
			s.seconds += float64(s.o.Workers) * (float64(t-s.now) / 1000)
			s.now = t
		}
		if err := s.settle(&a); err != nil {
			return err
		}
	}
	return nil
}

// settle does everything that happens at the present instant, round after round until a round changes nothing.
func (s *sim) settle(a *arrivals) error {
	for moved := true; moved; {
		moved = false
		for len(s.running) > 0 && s.running[0].end <= s.now {
			r := s.running.pop()
			r.inPass, moved = false, true
			if err := s.complete(r); err != nil {
				return err
			}
			s.wake(r)
		}
		for a.at < len(a.list) && engine.Time(a.list[a.at].Arrival) <= s.now {
			moved = true
			if err := s.arrive(&a.list[a.at]); err != nil {
				return err
			}
			a.at += a.step
		}
		for len(s.idle) > 0 {
			if err := s.begin(s.idle.pop()); err != nil {
				return err
			}
			moved = true
		}
	}
	return nil
}

// wake lets a rank look whether it can start a pass.
func (s *sim) wake(r *rank) {
	if !r.inPass && !r.idle && r.ready() {
		r.idle = true
		s.idle.push(r)
	}
}

// begin starts a pass. One without length ends at once. One without effect means that the rank is stuck; what becomes of
// that is for the general loop to say.
func (s *sim) begin(r *rank) error {
	r.idle = false
	end, err := r.begin(s.now)
	s.passes++
	if err != nil {
		return err
	}
	if !r.out.effect && end == s.now {
		return ErrBeyond
	}
	for _, a := range r.out.admitted {
		s.collect.Admit(&a.q.entry, report.Aggregated, s.now, &engine.Admission{Reused: a.cached})
	}
	if end > s.now {
		r.inPass, r.end = true, end
		s.running.push(r)
		return nil
	}
	err = s.complete(r)
	s.wake(r)
	return err
}

// look tells how far the sim is, and reports whether it may go on.
func (s *sim) look() bool {
	arrived := s.collect.Arrived()
	return s.o.Look == nil || s.o.Look(s.lane, Progress{Now: s.now, Arrived: arrived, Ended: arrived - s.flying})
}
