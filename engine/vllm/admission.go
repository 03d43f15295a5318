package vllm

import "mockbench/engine"

// Head is the first request of the queue as a capacity policy sees it. Sizes are blocks.
type Head struct {
	Known int // of the known tokens
	Final int // of the prompt and all output
}

// Policy decides what the pool may be promised to.
type Policy interface {
	// OutputLimit returns how many output tokens a request gets that asked for some.
	OutputLimit(prompt, asked int) int

	// Size returns the blocks that a request must find, of those it shares with others or not.
	Size(h Head) int

	// ToCompletion reports whether a request that runs is promised its Final blocks. Then nothing is ever preempted, a
	// cached prompt is reused whole, and a received prompt shares nothing.
	ToCompletion() bool
}

// optimistic is vLLM's policy: the known tokens must fit, growth is dealt with by preemption.
type optimistic struct{}

func (optimistic) OutputLimit(_, asked int) int { return asked }
func (optimistic) Size(h Head) int              { return h.Known }
func (optimistic) ToCompletion() bool           { return false }

// admit takes requests from the head of the queue until one of them has to stay. Nothing is admitted in a pass that
// preempted.
func (s *Scheduler) admit(deferring bool) {
	for len(s.record.Preemptions) == 0 {
		q := s.next()
		if q == nil || s.host != nil && s.record.BudgetLeft == 0 {
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
		if v == later {
			s.putOff(q)
			continue
		}
		if v == hold || deferring && q.place != destinationReady && q.prompt > 0 && q.length-cached > 1 {
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
	later // the host tier has to finish something first; others go on
)

// examine looks up what the head may reuse, in tokens, and tests whether the rest of it fits. Its cached blocks are in
// s.hits afterwards.
func (s *Scheduler) examine(q *sequence) (cached int, v verdict) {
	s.hits = s.hits[:0]
	if s.cfg.MaxModelLen > 0 && q.prompt >= s.cfg.MaxModelLen {
		return 0, refuse
	}
	if q.prompt == 0 || q.place == destinationReady {
		return 0, accept
	}
	if len(s.handoffs.pending) > 0 {
		return 0, hold
	}
	var referenced int
	s.hits, referenced = s.pool.Match(q.sequence, s.hits)
	matched := len(s.hits)
	if q.load != nil && q.load.complete {
		matched, referenced = q.load.prefix, q.load.prefix
	}
	loadable, f := s.lookUp(q, matched)
	if f == notYet {
		return 0, later
	}
	size := s.size(q)
	if !q.ran && size > s.pool.Capacity() {
		return 0, refuse
	}
	blocks := s.reusable(q, matched)
	shared := min(referenced, blocks)
	if q.load != nil {
		shared = q.load.prefix
	}
	have := s.available()
	if f == hit {
		have = max(0, have-s.headroom())
	}
	if need := size - shared; need > have {
		s.note(engine.TestPool, q, need, uint64(have))
		return 0, hold
	}
	if f == hit {
		if !s.startLoad(q, matched, loadable) {
			return 0, hold
		}
		return 0, later
	}
	return blocks * s.blockSize, accept
}

// putOff sets a request aside until the host tier has finished something.
func (s *Scheduler) putOff(q *sequence) {
	if q.place == inDeferred {
		s.host.deferred.sleep(q)
		return
	}
	s.waiting.remove(q)
	s.host.deferred.add(q)
}

// reusable returns how many of the matched blocks of a head it reuses.
func (s *Scheduler) reusable(q *sequence, matched int) int {
	if s.policy.ToCompletion() || q.generated() == q.limit {
		return matched
	}
	matched = min(matched, (q.length-1)/s.blockSize)
	if s.sampler != nil && matched > 0 {
		matched-- // the draft model needs the block computed
	}
	return matched
}

// next returns the request that is admitted next. While destinations wait for room, only those go on whose KV has arrived.
func (s *Scheduler) next() *sequence {
	head := s.waiting.head
	if len(s.handoffs.pending) > 0 {
		if q := s.waiting.firstReceived(); q != nil {
			return q
		}
	}
	if s.host == nil || head != nil && head.place == destinationReady {
		return head
	}
	if s.cfg.Role == engine.DecodeRole {
		if q := s.waiting.firstEmpty(); q != nil {
			return q
		}
	}
	if q := s.host.deferred.next(); q != nil {
		return q
	}
	return head
}

func (s *Scheduler) size(q *sequence) int {
	return s.policy.Size(Head{Known: s.blocks(q.length), Final: s.final(q)})
}

// final returns the blocks of the prompt and all output of a request.
func (s *Scheduler) final(q *sequence) int { return s.blocks(q.prompt + q.limit) }

// available returns the blocks that a head may count on: those that are not active, less what was promised.
func (s *Scheduler) available() int {
	n := s.pool.Capacity() - s.pool.Active()
	if s.policy.ToCompletion() {
		for _, q := range s.running {
			n -= max(0, s.final(q)-len(q.units))
		}
		for _, q := range s.handoffs.reserved {
			n -= max(0, s.final(q)-len(q.units))
		}
	}
	return max(n, 0)
}

// enterRunning moves an admitted request from the queue to the running list.
func (s *Scheduler) enterRunning(q *sequence, cached int) {
	a := engine.Admission{Request: q.req, Reused: cached, First: !q.ran}
	switch q.place {
	case destinationReady:
		s.handoffs.leave(q)
		s.waiting.remove(q)
	case inDeferred:
		s.host.deferred.remove(q)
	default:
		s.waiting.remove(q)
	}
	if q.load != nil {
		a.HostReused = cached - min(q.load.onDevice, cached)
		q.nextStore = cached / s.blockSize
		s.host.endLoad(q)
	}
	s.record.Admissions = append(s.record.Admissions, a)
	if !q.ran {
		q.ran, q.cached = true, cached
	}
	q.place, q.since = inRunning, s.record.Start
	s.running = append(s.running, q)
}

// reject ends a request that can never run. Its answer comes after all others of the pass.
func (s *Scheduler) reject(q *sequence) {
	if q.place == inDeferred {
		s.host.deferred.remove(q)
	} else {
		s.waiting.remove(q)
	}
	s.rejected = append(s.rejected, q.req)
	s.release(q)
	s.forget(q)
}
