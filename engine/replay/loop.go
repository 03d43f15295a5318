package replay

import (
	"container/heap"
	"math"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/trace"
)

// sim is a run under way.
type sim struct {
	o       *Options
	first   int // number of the first worker of an aggregated fleet
	now     engine.Time
	pools   []*pool
	running passes
	source  source
	flow    flow
	steps   []func() (moved bool, err error) // what happens at one instant, in order
	collect *report.Offline
	jobs    jobs
	flying  int // requests that arrived and have not ended
	passes  uint64
	sampler *sampler // nil without telemetry

	texts   *texts
	planner *trace.Planner
	history history
	watch   func(s *sim) bool // looks at the run now and then; false ends it
	cut     bool              // ended by watch
}

// flow is the way of a request through the fleet.
type flow interface {
	arrive(q *job) error
	output(w *worker, o *engine.Output) error
	handoffs(w *worker, list []engine.Handoff) error
	placed(p *pool, q *job) error // left the queue of a router
	next() (engine.Time, bool)    // time of the next event of its own
	settle() (moved bool, err error)
}

// run goes from event to event until nothing is left, or the time limit is reached.
func (s *sim) run() error {
	if s.o.Observer != nil {
		s.o.Observer.Begin(s.observed())
	}
	if err := s.settle(); err != nil {
		return err
	}
	if s.sampler != nil {
		if err := s.sampler.take("baseline"); err != nil {
			return err
		}
	}
	for steps := 0; ; steps++ {
		if steps%1024 == 1023 && s.watch != nil && !s.watch(s) {
			s.cut = true
			return nil
		}
		t, ok := s.next()
		if !ok {
			if s.flying > 0 {
				return &StuckError{Kind: DeadEnd, At: s.now, Remaining: s.flying, Disaggregated: s.o.disaggregated()}
			}
			return nil
		}
		if s.o.MaxTime >= 0 && t > s.o.MaxTime {
			return nil
		}
		if err := s.sampleBefore(t); err != nil {
			return err
		}
		if t > s.now {
			s.advance(t)
		}
		if err := s.settle(); err != nil {
			return err
		}
		if s.sampler != nil && s.sampler.next() == s.now {
			if err := s.sampler.take("periodic"); err != nil {
				return err
			}
		}
	}
}

// sampleBefore takes the samples that are due before the next event.
func (s *sim) sampleBefore(t engine.Time) error {
	for x := s.sampler; x != nil && x.next() < t; {
		s.advance(x.next())
		if err := x.take("periodic"); err != nil {
			return err
		}
	}
	return nil
}

// advance moves the clock.
func (s *sim) advance(t engine.Time) {
	for _, p := range s.pools {
		p.seconds += float64(len(p.workers)) * (float64(t-s.now) / 1000)
	}
	s.now = t
}

// next returns the time of the next event.
func (s *sim) next() (t engine.Time, ok bool) {
	t = engine.Time(math.Inf(1))
	if at, has := s.source.next(); has {
		t, ok = at, true
	}
	if len(s.running) > 0 {
		t, ok = min(t, s.running[0].end), true
	}
	if at, has := s.flow.next(); has {
		t, ok = min(t, at), true
	}
	if at, has := s.deadline(); has {
		t, ok = min(t, at), true
	}
	return t, ok
}

// deadline returns the time of the next internal event of an engine that is between passes.
func (s *sim) deadline() (t engine.Time, ok bool) {
	for _, p := range s.pools {
		if !p.host {
			continue
		}
		for _, w := range p.workers {
			if w.running {
				continue
			}
			if d, has := w.group.Deadline(); has && (!ok || d < t) {
				t, ok = d, true
			}
		}
	}
	return t, ok
}

// settle does everything that happens at the present instant, round after round until a round changes nothing.
func (s *sim) settle() error {
	for moved := true; moved; {
		moved = false
		for _, step := range s.steps {
			m, err := step()
			if err != nil {
				return err
			}
			moved = moved || m
		}
	}
	return s.checkStuck()
}

func (s *sim) driveAll() (moved bool, err error) {
	for _, p := range s.pools {
		m, err := s.drive(p)
		if err != nil {
			return moved, err
		}
		moved = moved || m
	}
	return moved, nil
}

// internal processes internal events of idle engines that are due, until there are none.
func (s *sim) internal() (moved bool, err error) {
	for _, p := range s.pools {
		if !p.host {
			continue
		}
		for steps, quiet := 0, false; !quiet; steps++ {
			if steps == maxRetries {
				return moved, &StuckError{Kind: Unsettled, At: s.now, Remaining: s.flying}
			}
			quiet = true
			for _, w := range p.workers {
				if d, ok := w.group.Deadline(); w.running || !ok || d > s.now {
					continue
				}
				quiet, moved = false, true
				if err := s.internalOf(w); err != nil {
					return moved, err
				}
			}
		}
	}
	return moved, nil
}

func (s *sim) internalOf(w *worker) error {
	for _, r := range w.group.Advance(s.now) {
		if r == nil {
			continue
		}
		if err := s.publish(w, r); err != nil {
			return err
		}
		if err := s.flow.handoffs(w, r.Handoffs); err != nil {
			return err
		}
	}
	w.wake()
	return nil
}

// feedback tells the nodes of a graph what ended.
func (s *sim) feedback() (bool, error) {
	p, ok := s.source.(*plays)
	return ok && p.flush(s.now), nil
}

// publish tells the router of a pool what changed in the caches of a rank.
func (s *sim) publish(w *worker, r *engine.Pass) error {
	if s.o.Observer != nil {
		s.o.Observer.Pass(w.number(), r)
	}
	return w.pool.placer.Events((w.id-w.pool.first)*w.pool.ranks+r.Rank, &r.Events, s.now)
}

// completions ends the passes whose end has come.
func (s *sim) completions() (moved bool, err error) {
	for len(s.running) > 0 && s.running[0].end <= s.now {
		w := heap.Pop(&s.running).(*worker)
		records := w.group.Complete()
		w.running, moved = false, true
		if err := s.complete(w, records); err != nil {
			return moved, err
		}
		w.wake()
	}
	if moved {
		_, err = s.internal()
	}
	return moved, err
}

// complete makes the outcome of a pass known: first to the router, then to the requests.
func (s *sim) complete(w *worker, records []*engine.Pass) error {
	if err := s.deliver(w); err != nil {
		return err
	}
	for i, r := range records {
		if s.sampler != nil {
			w.loads[i] = w.group.Rank(i).Load()
			s.sampler.pass(w.pool, r)
		}
		s.collect.Committed(r.FPM.PrefillTokens)
		if err := s.publish(w, r); err != nil {
			return err
		}
	}
	for _, r := range records {
		for i := range r.Outputs {
			if err := s.flow.output(w, &r.Outputs[i]); err != nil {
				return err
			}
		}
		if err := s.flow.handoffs(w, r.Handoffs); err != nil {
			return err
		}
	}
	return nil
}

// submit hands a request to its rank, now or at the end of the pass it is in.
func (s *sim) submit(p *pool, q *job) error {
	t := &q.tickets[p.slot]
	w := p.workers[t.Worker]
	if s.o.send != nil {
		return s.dispatch(w.id, t.Rank, q)
	}
	if w.running {
		w.mail = append(w.mail, delivery{t.Rank, q})
		w.publishLoad(t.Rank)
		return nil
	}
	w.wake()
	err := s.enqueue(w, delivery{t.Rank, q})
	w.publishLoad(t.Rank)
	return err
}

// publishLoad makes the load of a rank known after a command.
func (w *worker) publishLoad(rank int) {
	if w.loads == nil {
		return
	}
	l := w.group.Rank(rank).Load()
	for _, d := range w.mail {
		if d.rank == rank {
			l.Waiting++
		}
	}
	w.loads[rank] = l
}

// deliver hands over the requests that came during a pass.
func (s *sim) deliver(w *worker) error {
	for _, d := range w.mail {
		if err := s.enqueue(w, d); err != nil {
			return err
		}
	}
	w.mail = w.mail[:0]
	return nil
}

func (s *sim) enqueue(w *worker, d delivery) error {
	if s.o.Observer != nil {
		r := &d.job.request
		r.Label = s.name(d.job)
		if w.pool.stage == report.Prefill {
			d.job.handoff.request.Label, r = r.Label, &d.job.handoff.request
		}
		s.o.Observer.Submitted(w.number(), d.rank, r, s.now)
	}
	if w.pool.stage == report.Prefill {
		return w.rank(d.rank).SubmitSource(&d.job.handoff.request, d.job.request.ID, s.now)
	}
	return w.group.Submit(d.rank, &d.job.request, s.now)
}

// rank returns a rank of a disaggregated fleet.
func (w *worker) rank(i int) engine.Disaggregated { return w.group.Rank(i).(engine.Disaggregated) }

// release lets the requests arrive that are due.
func (s *sim) release() (moved bool, err error) {
	for {
		at, ok := s.source.take(s.now)
		if !ok {
			return moved, nil
		}
		moved = true
		q := s.prepare(at)
		s.flying++
		s.collect.Arrive(&q.entry)
		s.sampler.arrive()
		if err := s.flow.arrive(q); err != nil {
			return moved, err
		}
		s.source.dispatched(q, s.now)
	}
}

// place asks the router of a pool for a rank and reports whether there is one now.
func (s *sim) place(p *pool, q *job) (bool, error) {
	placed, err := p.placer.Place(s.ticket(q, p), s.now)
	if placed {
		s.route(p, q)
	}
	return placed, err
}

// route notes where a request goes.
func (s *sim) route(p *pool, q *job) {
	t, e := &q.tickets[p.slot], &q.entry
	index := t.Index + p.first*p.ranks
	e.Workers[p.stage] = int32(index)
	scored := s.o.Router != nil
	tokens := 0
	if scored {
		tokens = t.Overlap * s.texts.blockSize
		s.sampler.placed(t.Overlap, t.Blocks)
	}
	e.Overlaps[p.stage] = int32(tokens)
	if !s.o.Records {
		return
	}
	e.Routes = append(e.Routes, report.Route{Stage: p.stage, Queued: t.Queued, Entered: t.Arrived, Released: t.Released, Worker: t.Worker + p.first,
		Rank: t.Rank, Scheduler: index, Scored: scored, Overlap: t.Overlap, Best: t.Best, OverlapTokens: tokens})
}

// drain places the requests for which a router has room again.
func (s *sim) drain(p *pool) ([]*job, error) {
	var out []*job
	for {
		t, err := p.placer.Next(s.now)
		if t == nil || err != nil {
			return out, err
		}
		q := t.User.(*job)
		s.route(p, q)
		out = append(out, q)
	}
}

// end notes that a request ended, as far as its client is concerned.
func (s *sim) end(q *job, status report.Status) {
	q.ended = true
	s.flying--
	s.collect.End(&q.entry, s.now, status)
	if status == report.Completed {
		s.sampler.complete(&q.entry)
	}
}

// follow lets what depends on the end of a request happen.
func (s *sim) follow(q *job, unlocks bool) {
	if s.o.Trace.Delta {
		s.history.answer(q.session, q.emitted)
	}
	s.source.ended(q, s.now, unlocks)
}

// checkStuck finds a fleet of which nothing can be expected: a worker could not start a pass, and nothing else is going
// to happen but arrivals.
func (s *sim) checkStuck() error {
	if len(s.running) > 0 {
		return nil
	}
	var stuck *worker
	for _, p := range s.pools {
		if len(p.stuck) > 0 && stuck == nil {
			stuck = p.stuck[0]
		}
	}
	if stuck == nil || s.flying == 0 {
		return nil
	}
	if _, ok := s.flow.next(); ok {
		return nil
	}
	if _, ok := s.deadline(); ok {
		return nil
	}
	if _, ok := s.source.next(); ok && s.o.disaggregated() {
		return nil // the others may still be served, so the reference goes on
	}
	e := &StuckError{Kind: NoEffect, At: s.now, Remaining: s.flying, Disaggregated: s.o.disaggregated(), Worker: stuck.name(0), Hint: stuck.hint}
	if h := e.Hint.Head; h != nil {
		head := *h
		head.Label = s.name(s.jobs.of(h))
		e.Hint.Head = &head
	}
	return e
}
