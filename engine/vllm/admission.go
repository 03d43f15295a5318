package vllm

import "mockbench/engine"

// Head is the first request of the queue as a capacity policy sees it. Sizes are blocks.
type Head struct {
	Known      int  // blocks of its known tokens
	Final      int  // blocks of its prompt and all its output
	Referenced int  // of Known, cached blocks that others use
	Ran        bool // was admitted before
}

// Policy decides what the pool may be promised to.
type Policy interface {
	// OutputLimit returns how many output tokens a request gets that asked for some.
	OutputLimit(prompt, asked int) int

	// Recompute reports whether a completely cached request computes its last block again, to have something to decode
	// from, and whether drafts need one more block computed.
	Recompute() bool

	// Oversized reports whether a request can never be admitted to a pool of capacity blocks.
	Oversized(h Head, capacity int) bool

	// Need returns the blocks a head must find available.
	Need(h Head) int

	// Promised returns how many blocks of those that are not active must be kept for a running request that owns some.
	Promised(final, owned int) int
}

// optimistic is vLLM's policy: the known tokens must fit, growth is dealt with by preemption.
type optimistic struct{}

func (optimistic) OutputLimit(_, asked int) int        { return asked }
func (optimistic) Recompute() bool                     { return true }
func (optimistic) Oversized(h Head, capacity int) bool { return !h.Ran && h.Known > capacity }
func (optimistic) Need(h Head) int                     { return h.Known - h.Referenced }
func (optimistic) Promised(_, _ int) int               { return 0 }

// admit takes requests from the head of the queue until one of them has to stay. Nothing is admitted in a pass that
// preempted.
func (s *Scheduler) admit(deferring bool) {
	for len(s.record.Preemptions) == 0 {
		q := s.waiting.head
		if q == nil {
			return
		}
		if uint64(len(s.running)) >= s.cfg.MaxNumSeqs {
			s.note(engine.TestSlots, q, len(s.running)+1, s.cfg.MaxNumSeqs)
			return
		}
		cached, v := s.examine(q)
		if v == refuse {
			s.reject(q)
			continue
		}
		if v == hold || deferring && q.prompt > 0 && q.length-cached > 1 {
			return
		}
		before := s.record.BudgetLeft
		if s.schedule(q, cached) != scheduled {
			return
		}
		s.enterRunning(q, cached)
		if before == 0 && s.record.BudgetLeft == 0 {
			return
		}
	}
}

// verdict is the answer to the head of the queue.
type verdict uint8

const (
	accept verdict = iota
	hold
	refuse
)

// examine looks up what the head may reuse, in tokens, and tests whether the rest of it fits. Its cached blocks are in
// s.hits afterwards.
func (s *Scheduler) examine(q *sequence) (cached int, v verdict) {
	s.hits = s.hits[:0]
	if s.cfg.MaxModelLen > 0 && q.prompt >= s.cfg.MaxModelLen {
		return 0, refuse
	}
	if q.prompt == 0 {
		return 0, accept
	}
	var referenced int
	s.hits, referenced = s.pool.Match(q.sequence, s.hits)
	h := Head{Known: s.blocks(q.length), Final: s.blocks(q.prompt + q.limit), Ran: q.ran}
	if s.policy.Oversized(h, s.pool.Capacity()) {
		return 0, refuse
	}
	blocks := s.reusable(q, len(s.hits))
	h.Referenced = min(referenced, blocks)
	need, have := s.policy.Need(h), s.available()
	if need > have {
		s.note(engine.TestPool, q, need, uint64(have))
		return 0, hold
	}
	return blocks * s.blockSize, accept
}

// reusable returns how many of the matched blocks of a head it reuses.
func (s *Scheduler) reusable(q *sequence, matched int) int {
	if !s.policy.Recompute() || q.generated == q.limit {
		return matched
	}
	matched = min(matched, (q.length-1)/s.blockSize)
	if s.sampler != nil && matched > 0 {
		matched-- // the draft model needs the block computed
	}
	return matched
}

// available returns the blocks that a head may count on.
func (s *Scheduler) available() int {
	n := s.pool.Capacity() - s.pool.Active()
	return max(n, 0)
}

// enterRunning moves an admitted request from the queue to the running list.
func (s *Scheduler) enterRunning(q *sequence, cached int) {
	s.waiting.remove(q)
	s.record.Admissions = append(s.record.Admissions, engine.Admission{Request: q.req, Reused: cached, First: !q.ran})
	if !q.ran {
		q.ran, q.cached = true, cached
	}
	q.place, q.since = inRunning, s.record.Start
	s.running = append(s.running, q)
}

// reject ends a request that can never run. Its answer comes after all others of the pass.
func (s *Scheduler) reject(q *sequence) {
	s.waiting.remove(q)
	s.rejected = append(s.rejected, q.req)
	s.release(q)
	s.forget(q)
}
