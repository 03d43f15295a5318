package vllm

import (
	"fmt"
	"slices"

	"mockbench/engine"
	"mockbench/kv"
)

// handoffs are the requests whose KV goes to or comes from another rank.
type handoffs struct {
	byID       map[engine.ID]*sequence
	pending    []*sequence    // destinations without room, in order
	reserved   []*sequence    // destinations with room, in order of reservation, until they run
	arriving   engine.Moments // prompt lengths of all destinations whose KV has not arrived
	generation uint64         // moves on when room may have appeared

	steps  []engine.Handoff // what the last command let through
	events kv.Events        // KV events of the last command between passes
}

// holding returns the number of handoffs that keep blocks for another rank, or for KV that is on its way.
func (h *handoffs) holding() (n int) {
	for _, q := range h.byID {
		if q.place == sourceHeld || q.place == destinationHeld {
			n++
		}
	}
	return n
}

// leave takes out a destination that has room.
func (h *handoffs) leave(q *sequence) {
	h.reserved = without(h.reserved, q)
	if q.place == destinationHeld {
		h.arriving.Remove(q.prompt)
	}
}

// command prepares for what a command may tell.
func (s *Scheduler) command(now engine.Time) {
	s.pool.Now = float64(now)
	s.handoffs.steps = s.handoffs.steps[:0]
	if !s.record.active {
		s.handoffs.events.Reset()
		s.log.To = &s.handoffs.events
	}
}

// result completes the answer to a command.
func (s *Scheduler) result(c engine.CancelResult) engine.CancelResult {
	c.Steps = s.handoffs.steps
	if s.host != nil {
		s.host.transfers = s.appendTransfers(s.host.transfers[:0])
		c.Transfers = s.host.transfers
	}
	if !s.record.active && len(s.handoffs.events.List) > 0 {
		c.Events = &s.handoffs.events
	}
	return c
}

// SubmitSource implements engine.Disaggregated.
func (s *Scheduler) SubmitSource(r *engine.Request, handoff engine.ID, now engine.Time) error {
	q, err := s.enqueue(r, now)
	if err == nil {
		q.source, q.handoff = true, handoff
		s.handoffs.byID[handoff] = q
	}
	return err
}

// holdSource keeps the units of a complete request.
func (s *Scheduler) holdSource(q *sequence) {
	q.place = sourceHeld
	s.record.Handoffs = append(s.record.Handoffs, engine.Handoff{Kind: engine.SourceHeld, ID: q.handoff, Request: q.req, Tokens: q.prompt})
}

// ReleaseSource implements engine.Disaggregated. Before the source is held it only drops the hold.
func (s *Scheduler) ReleaseSource(handoff engine.ID, now engine.Time) engine.CommandResult {
	s.command(now)
	q := s.handoffs.byID[handoff]
	if q == nil || !q.source {
		return engine.CommandResult{}
	}
	if q.place != sourceHeld {
		q.source, q.handoff = false, engine.ID{}
		delete(s.handoffs.byID, handoff)
		return s.applied(nil, false)
	}
	request := q.req
	s.stop(q)
	return s.applied(request, false)
}

// CancelSource implements engine.Disaggregated.
func (s *Scheduler) CancelSource(handoff engine.ID, now engine.Time) engine.CommandResult {
	s.command(now)
	q := s.handoffs.byID[handoff]
	if q == nil || !q.source {
		return engine.CommandResult{}
	}
	request := q.req
	s.stop(q)
	return s.applied(request, true)
}

// applied completes the answer to a handoff command: the next destination may get its room, and a request, if given,
// has retired.
func (s *Scheduler) applied(retired *engine.Request, cancelled bool) engine.CommandResult {
	r := engine.CommandResult{CancelResult: engine.CancelResult{Applied: true}}
	if retired != nil {
		r.Retired, r.Request = true, retired
		r.Suppressed = cancelled && s.record.drop(retired.ID)
	}
	s.attempt(&s.handoffs.steps)
	r.CancelResult = s.result(r.CancelResult)
	return r
}

// Reserve implements engine.Disaggregated.
func (s *Scheduler) Reserve(r *engine.Request, handoff engine.ID, now engine.Time) (engine.CommandResult, error) {
	q, err := s.own(r, now)
	if err != nil {
		return engine.CommandResult{}, err
	}
	if err := s.checkReceivable(q); err != nil {
		s.forget(q)
		return engine.CommandResult{}, err
	}
	q.handoff, q.place, q.received = handoff, destinationPending, true
	s.handoffs.byID[handoff] = q
	s.handoffs.pending = append(s.handoffs.pending, q)
	s.handoffs.arriving.Add(q.prompt)
	if !s.record.active {
		s.attempt(&s.handoffs.steps)
	}
	return engine.CommandResult{CancelResult: s.result(engine.CancelResult{Applied: true})}, nil
}

// checkReceivable reports why there can never be room for a prompt, or nil.
func (s *Scheduler) checkReceivable(q *sequence) error {
	if limit := s.cfg.MaxModelLen; limit > 0 && q.prompt >= limit {
		return &engine.SettingError{Setting: "engine.max_model_len", Kind: engine.KindRange, Given: fmt.Sprint(limit),
			Allowed: fmt.Sprintf("must exceed the %d tokens of the prompt to be received", q.prompt)}
	}
	if size := s.size(q); size > s.pool.Capacity() {
		return &engine.SettingError{Setting: "engine.num_gpu_blocks", Kind: engine.KindRange, Given: fmt.Sprint(s.pool.Capacity()),
			Allowed: fmt.Sprintf("must hold the %d blocks of the request to be received", size)}
	}
	return nil
}

// attempt tries to give the oldest pending destination its room, and tells so in steps. It does not try again before
// room may have appeared, nor without a free slot.
func (s *Scheduler) attempt(steps *[]engine.Handoff) {
	h := &s.handoffs
	if len(h.pending) == 0 || uint64(len(s.running)) >= s.cfg.MaxNumSeqs {
		return
	}
	q := h.pending[0]
	if q.refused == h.generation {
		return
	}
	blocks := s.blocks(q.prompt)
	s.hits = s.hits[:0]
	if s.policy.ToCompletion() {
		if s.final(q) > s.available() {
			q.refused = h.generation
			return
		}
	} else {
		s.hits, _ = s.pool.Match(q.sequence, s.hits)
	}
	fresh := blocks - len(s.hits)
	var ok bool
	if q.units, ok = s.pool.Reserve(s.hits, fresh, q.units); !ok {
		q.refused = h.generation
		return
	}
	s.announceRemoved()
	h.pending = h.pending[1:]
	h.reserved = append(h.reserved, q)
	q.place = destinationHeld
	*steps = append(*steps, engine.Handoff{Kind: engine.DestinationReserved, ID: q.handoff, Request: q.req, Tokens: fresh * s.blockSize})
}

// Activate implements engine.Disaggregated.
func (s *Scheduler) Activate(handoff engine.ID, now engine.Time) engine.CommandResult {
	s.command(now)
	q := s.handoffs.byID[handoff]
	if q == nil || q.place != destinationHeld {
		return engine.CommandResult{}
	}
	q.computed, q.allocated = q.prompt, q.prompt
	s.publish(q, 0, q.prompt/s.blockSize)
	s.handoffs.arriving.Remove(q.prompt)
	q.place, q.since = destinationReady, now
	s.waiting.insertReceived(q)
	return s.applied(nil, false)
}

// CancelDestination implements engine.Disaggregated.
func (s *Scheduler) CancelDestination(handoff engine.ID, now engine.Time) engine.CommandResult {
	s.command(now)
	q := s.handoffs.byID[handoff]
	if q == nil || q.source {
		return engine.CommandResult{}
	}
	request := q.req
	switch q.place {
	case destinationPending:
		h := &s.handoffs
		h.pending = slices.DeleteFunc(h.pending, func(p *sequence) bool { return p == q })
		h.arriving.Remove(q.prompt)
		h.generation++
	case destinationHeld:
		s.handoffs.leave(q)
	}
	s.stop(q)
	return s.applied(request, true)
}
