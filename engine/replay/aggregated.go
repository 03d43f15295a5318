package replay

import (
	"mockbench/engine"
	"mockbench/engine/report"
)

// aggregated is a fleet whose workers compute a prompt and its answer. A request is placed when it arrives, perhaps after
// a wait in the router's queue, and ends with its last token.
type aggregated struct {
	s *sim
	p *pool
}

func (a *aggregated) arrive(q *job) error {
	placed, err := a.s.place(a.p, q)
	if !placed || err != nil {
		return err
	}
	return a.s.submit(a.p, q)
}

func (a *aggregated) placed(p *pool, q *job) error { return a.s.submit(p, q) }

func (a *aggregated) output(w *worker, o *engine.Output) error {
	s, q := a.s, a.s.jobs.of(o.Request)
	first := q.entry.Tokens() == 0
	if o.HasToken {
		s.collect.Token(&q.entry, s.now)
		if s.o.Trace.Delta {
			q.emitted = append(q.emitted, o.Token)
		}
	}
	t := &q.tickets[a.p.slot]
	if !o.Completed {
		if !first {
			return nil
		}
		if err := a.p.placer.Prefilled(t, s.now); err != nil {
			return err
		}
		return a.refill(nil)
	}
	status := report.Completed
	if o.Rejected {
		status = report.Rejected
	}
	s.end(q, status)
	if err := a.p.placer.Free(t, s.now); err != nil {
		return err
	}
	return a.refill(q)
}

// refill submits the requests for which there is room in the fleet again, after the end of a request, if there was one,
// was made known.
func (a *aggregated) refill(ended *job) error {
	released, err := a.s.drain(a.p)
	if err != nil {
		return err
	}
	if ended != nil {
		a.s.follow(ended, true)
		a.s.keep(ended)
	}
	for _, q := range released {
		if err := a.s.submit(a.p, q); err != nil {
			return err
		}
	}
	return nil
}

func (a *aggregated) handoffs(*worker, []engine.Handoff) error { return nil }
func (a *aggregated) next() (engine.Time, bool)                { return 0, false }
func (a *aggregated) settle() (bool, error)                    { return false, nil }
