package fast

import (
	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/trace"
)

// arrive places a request.
func (s *sim) arrive(u *trace.Request) error {
	q := s.take()
	q.prompt, q.length, q.plan = u.Input, u.Input, u.Plan
	q.end = q.prompt + u.Output
	if n := s.o.Engine.MaxModelLen; n > 0 {
		q.end = min(q.end, n)
	}
	s.hasher.prompt(q, u.IDs)
	e := &q.entry
	e.Reset()
	e.Number, e.Arrival, e.Input, e.Requested = u.Number, engine.Time(u.Arrival), u.Input, u.Output
	s.flying++
	s.collect.Arrive(e)
	if s.router == nil {
		t := &q.ticket
		t.Arrived, t.Worker, t.Index = s.now, s.ranks[0].index, s.ranks[0].index
		s.submit(q)
		return nil
	}
	t := &q.ticket
	t.User, t.Tokens, t.Sequence, t.Priority, t.Strict = q, q.prompt, q.sequence, 0, 0
	if x := u.Extra; x != nil {
		t.Priority, t.Strict = x.Priority, x.Strict
	}
	placed, err := s.router.Place(t, s.now)
	if placed && err == nil {
		s.submit(q)
	}
	return err
}

func (s *sim) take() *request {
	if last := len(s.spare) - 1; last >= 0 {
		q := s.spare[last]
		s.spare = s.spare[:last]
		return q
	}
	return &request{}
}

// submit hands a placed request to its rank.
func (s *sim) submit(q *request) {
	t, e := &q.ticket, &q.entry
	routed, tokens := s.router != nil, 0
	if routed {
		tokens = t.Overlap * s.o.Engine.BlockSize
	}
	e.Workers[report.Aggregated], e.Overlaps[report.Aggregated] = int32(t.Index), int32(tokens)
	if s.o.Records {
		e.Routes = append(e.Routes, report.Route{Stage: report.Aggregated, Queued: t.Queued, Entered: t.Arrived, Released: t.Released,
			Worker: t.Worker, Scheduler: t.Index, Scored: routed, Overlap: t.Overlap, Best: t.Best, OverlapTokens: tokens})
	}
	r := s.ranks[0]
	if routed {
		r = s.ranks[t.Index]
	}
	r.submit(q)
	s.wake(r)
}

// complete makes the outcome of a pass known: first to the router, then to the requests in the order in which they ran.
func (s *sim) complete(r *rank) error {
	o, c := &r.out, s.collect
	if r.changes != nil {
		r.changes.apply()
	}
	c.Committed(o.prefilled)
	for _, q := range r.joined[0] {
		q.next = s.now
	}
	for _, q := range o.quiet {
		if err := s.end(q, report.Completed); err != nil {
			return err
		}
	}
	c.Gaps(float64(s.now-r.ended), o.tokens)
	for _, q := range o.done {
		q.entry.Advance(int(r.pass-q.joined+1), q.next, s.now)
		if err := s.end(q, report.Completed); err != nil {
			return err
		}
	}
	for _, q := range o.fresh {
		first := q.entry.Tokens() == 0
		c.Token(&q.entry, s.now)
		var err error
		switch {
		case !q.steady:
			err = s.end(q, report.Completed)
		case first:
			err = s.prefilled(q)
		}
		if err != nil {
			return err
		}
	}
	for _, q := range o.refused {
		if err := s.end(q, report.Rejected); err != nil {
			return err
		}
	}
	r.ended = s.now
	return nil
}

func (s *sim) prefilled(q *request) error {
	if s.router == nil {
		return nil
	}
	if err := s.router.Prefilled(&q.ticket, s.now); err != nil {
		return err
	}
	return s.refill()
}

// end notes the end of a request.
func (s *sim) end(q *request, status report.Status) error {
	s.flying--
	s.collect.End(&q.entry, s.now, status)
	s.collect.Keep(&q.entry)
	if s.router != nil {
		if err := s.router.Free(&q.ticket, s.now); err != nil {
			return err
		}
	}
	q.ran = false
	s.spare = append(s.spare, q)
	if s.router == nil {
		return nil
	}
	return s.refill()
}

// refill submits the requests for which the router has room again.
func (s *sim) refill() error {
	for {
		t, err := s.router.Next(s.now)
		if t == nil || err != nil {
			return err
		}
		s.submit(t.User.(*request))
	}
}
