package vllm

import "mockbench/engine"

// Plan implements engine.Scheduler: the whole pass is decided, and all state changed, at its start.
func (s *Scheduler) Plan(now engine.Time, step uint64) *engine.Pass {
	s.begin(now)
	deferring := s.defersPrefills(step)
	if s.host != nil && s.host.pool.Shared() {
		s.host.pool.Advance(float64(now))
	}
	s.serveRunning(deferring)
	s.admit(deferring)
	if s.host != nil {
		s.prepareStores()
		s.record.ComputeStart = max(s.record.ComputeStart, s.host.computeNotBefore)
		s.record.RankEnd = s.record.ComputeStart
	}
	s.endScheduling(deferring)
	s.timePrefill()
	s.produce()
	if s.host != nil {
		s.record.Transfers = s.appendTransfers(s.record.Transfers)
	}
	s.summarise()
	return &s.record.Pass
}

// Commit implements engine.Scheduler.
func (s *Scheduler) Commit(end engine.Time) *engine.Pass {
	s.record.close(end)
	s.pool.Now = float64(end)
	if s.host != nil {
		s.meetHost(end)
		s.record.Transfers = s.appendTransfers(s.record.Transfers)
	}
	s.attempt(&s.record.Handoffs)
	s.record.Effect = s.record.Effect || len(s.record.Handoffs)+len(s.record.Events.List)+len(s.record.Transfers) > 0
	if s.record.Hint.Kind != engine.HintNone { // a command during the pass may have withdrawn the transfer
		s.standstill(&s.record.Hint)
	}
	s.record.Load = s.Load()
	return &s.record.Pass
}

// Attend implements engine.Attendant. A host tier goes on by itself in the meantime and needs the record.
func (s *Scheduler) Attend(start engine.Time) {
	if s.host == nil {
		s.open(start)
		s.record.Idle, s.record.active = true, true
	}
}

// Idle implements engine.Scheduler.
func (s *Scheduler) Idle(start, end engine.Time) *engine.Pass {
	if !s.record.active {
		s.open(start)
		s.record.Idle = true
	}
	return s.Commit(end)
}

// defersPrefills decides whether this rank leaves prompts alone in this pass: in a data-parallel group only every n-th
// pass of the group prefills, unless the rank has nothing to decode or more is waiting than it could take last time.
func (s *Scheduler) defersPrefills(step uint64) bool {
	n := s.cfg.PrefillScheduleInterval
	if n <= 1 || s.ranks <= 1 || step%uint64(n) == 0 || s.crowded {
		return false
	}
	for _, q := range s.running {
		if q.computed >= q.prompt {
			return true
		}
	}
	return false
}

// serveRunning gives running requests their tokens, in order. When a fifo victim leaves from before the current request,
// the list moves up and the next request is passed over: the reference does the same.
func (s *Scheduler) serveRunning(deferring bool) {
	for i := 0; i < len(s.running) && s.record.BudgetLeft > 0; {
		q := s.running[i]
		if deferring && q.computed < q.prompt {
			i++
			continue
		}
		if q.decodes() && q.length < len(q.units)*s.blockSize {
			s.decode(q)
			i++
			continue
		}
		switch s.schedule(q, 0) {
		case scheduled:
			i++
		case blocked:
			return
		}
	}
}

// decodes reports that only the last known token is to be computed, as in most passes of most requests.
func (q *sequence) decodes() bool { return q.computed == q.length-1 && q.computed >= q.prompt }

// decode schedules a request that decodes within its last block: nothing but its counts changes.
func (s *Scheduler) decode(q *sequence) {
	q.computed, q.allocated = q.length, q.length
	s.enter(q, engine.Work{Request: q.req, Tokens: 1, Prefix: q.prompt, Length: q.length})
}

// endScheduling settles what later steps need to know of the scheduling.
func (s *Scheduler) endScheduling(deferring bool) {
	s.record.compact()
	if !deferring && len(s.record.Preemptions) == 0 {
		s.crowded = s.waiting.n > 0
	}
}

// timePrefill adds the prefill part of the pass to its length.
func (s *Scheduler) timePrefill() {
	b := &s.record.batch
	if b.count == 0 {
		return
	}
	isl, prefix := b.isl/b.count, b.prefix/b.count
	if isl == prefix {
		return
	}
	call, length := s.timer.Prefill(b.count, isl, prefix)
	s.record.Prefill = call
	s.record.RankEnd += length
}
