package sglang

import (
	"fmt"

	"mockbench/engine"
)

// SubmitSource implements engine.Disaggregated.
func (s *Scheduler) SubmitSource(r *engine.Request, handoff engine.ID, now engine.Time) error {
	q, err := s.submit(r, now)
	if err != nil {
		return err
	}
	q.source, q.handoff = true, handoff
	s.handoffs[handoff] = q
	return nil
}

// ReleaseSource implements engine.Disaggregated. Before the source is held it only drops the hold.
func (s *Scheduler) ReleaseSource(handoff engine.ID, _ engine.Time) engine.CommandResult {
	s.pass.command()
	q := s.handoffs[handoff]
	if q == nil || !q.source {
		return engine.CommandResult{}
	}
	if q.place != heldSource {
		q.source = false
		delete(s.handoffs, handoff)
		return s.answer(nil, false)
	}
	s.dropSource(q)
	return s.answer(q, false)
}

// CancelSource implements engine.Disaggregated.
func (s *Scheduler) CancelSource(handoff engine.ID, _ engine.Time) engine.CommandResult {
	s.pass.command()
	q := s.handoffs[handoff]
	if q == nil || !q.source {
		return engine.CommandResult{}
	}
	if q.place == heldSource {
		s.dropSource(q)
	} else {
		s.stop(q)
	}
	return s.answer(q, true)
}

// holding returns the number of handoffs that keep pages for another rank, or for KV that is on its way.
func (s *Scheduler) holding() (n int) {
	for _, q := range s.handoffs {
		if q.place == heldSource || q.place == heldDestination {
			n++
		}
	}
	return n
}

// dropSource lets go of a held source: its pages become evictable.
func (s *Scheduler) dropSource(q *sequence) {
	s.finish(q)
	s.retries++
	s.forget(q)
}

// answer completes an applied handoff command: the destination queue may move on, and q, if given, has retired.
func (s *Scheduler) answer(q *sequence, cancelled bool) engine.CommandResult {
	r := engine.CommandResult{CancelResult: engine.CancelResult{Applied: true}}
	if q != nil {
		r.Retired, r.Request = true, q.req
		if cancelled {
			r.Suppressed = s.pass.drop(q.req.ID)
		}
	}
	s.attempt()
	r.CancelResult = s.pass.result(r.CancelResult)
	return r
}

// Reserve implements engine.Disaggregated.
func (s *Scheduler) Reserve(r *engine.Request, handoff engine.ID, now engine.Time) (engine.CommandResult, error) {
	limit := s.cfg.MaxModelLen
	switch {
	case s.sequences[r.ID] != nil:
		return engine.CommandResult{}, fmt.Errorf("rank %d: %w", s.rank, engine.ErrActive)
	case limit > 0 && r.PromptLen() >= limit:
		return engine.CommandResult{}, &engine.SettingError{Setting: "engine.max_model_len", Kind: engine.KindRange,
			Given: fmt.Sprint(limit), Allowed: fmt.Sprintf("must exceed the %d tokens of the prompt to be received", r.PromptLen())}
	case s.pagesFor(r.PromptLen()) > s.pool.Total():
		return engine.CommandResult{}, &engine.SettingError{Setting: "engine.num_gpu_blocks", Kind: engine.KindRange,
			Given:   fmt.Sprint(s.pool.Total()),
			Allowed: fmt.Sprintf("must hold the %d pages of the prompt to be received", s.pagesFor(r.PromptLen()))}
	}
	q, err := s.own(r, now)
	if err != nil {
		return engine.CommandResult{}, err
	}
	q.destination, q.handoff, q.place = true, handoff, pendingDestination
	s.handoffs[handoff] = q
	s.pending = append(s.pending, q)
	s.arriving.Add(q.promptLen)
	result := engine.CommandResult{CancelResult: engine.CancelResult{Applied: true}}
	if !s.pass.open {
		s.attempt()
	}
	result.CancelResult = s.pass.result(result.CancelResult)
	return result, nil
}

// attempt tries to give the oldest pending destination its room. It is not tried again before room may have appeared.
func (s *Scheduler) attempt() {
	if len(s.pending) == 0 || s.pending[0].refused == s.retries {
		return
	}
	q := s.pending[0]
	prefix := 0
	if s.reuse {
		prefix = q.promptLen / s.page
	}
	pages, node := s.pool.Match(s.hashesOf(q, prefix), q.pages[:0])
	s.pool.Lock(node)
	fresh := s.pagesFor(q.promptLen) - len(pages)
	if !s.makeRoom(fresh) {
		s.pool.Unlock(node)
		q.refused = s.retries
		return
	}
	q.cached, q.last = s.tokensOf(len(pages)), node
	q.pages = s.pool.Take(fresh, pages)
	s.pending = s.pending[1:]
	s.held++
	q.place = heldDestination
	step := engine.Handoff{Kind: engine.DestinationReserved, ID: q.handoff, Request: q.req, Tokens: s.tokensOf(fresh)}
	if s.pass.closing {
		s.pass.Handoffs = append(s.pass.Handoffs, step)
	} else {
		s.pass.steps = append(s.pass.steps, step)
	}
}

// Activate implements engine.Disaggregated.
func (s *Scheduler) Activate(handoff engine.ID, _ engine.Time) engine.CommandResult {
	s.pass.command()
	q := s.handoffs[handoff]
	if q == nil || q.place != heldDestination {
		return engine.CommandResult{}
	}
	before := s.pool.Available()
	q.materialised = q.promptLen
	s.cachePrefix(q)
	s.held--
	q.place = inReady
	s.ready = append(s.ready, q)
	if s.pool.Available() > before {
		s.retries++
	}
	return s.answer(nil, false)
}

// CancelDestination implements engine.Disaggregated.
func (s *Scheduler) CancelDestination(handoff engine.ID, _ engine.Time) engine.CommandResult {
	s.pass.command()
	q := s.handoffs[handoff]
	if q == nil || !q.destination {
		return engine.CommandResult{}
	}
	switch q.place {
	case pendingDestination:
		s.pending = without(s.pending, q)
		s.arriving.Remove(q.promptLen)
		s.retries++
		s.forget(q)
	case heldDestination:
		s.held--
		s.arriving.Remove(q.promptLen)
		s.pool.Unlock(q.last)
		s.discard(q.pages[q.cached/s.page:])
		s.clear(q)
		s.retries++
		s.forget(q)
	default:
		s.stop(q)
	}
	return s.answer(q, true)
}
