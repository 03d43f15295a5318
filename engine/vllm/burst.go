package vllm

import "mockbench/engine"

// reserveBursts sets units aside for the longest burst of every producing request. It preempts until they fit.
func (s *Scheduler) reserveBursts() {
	if s.sampler == nil {
		return
	}
	for len(s.producing) > 0 {
		need := 0
		for _, q := range s.producing {
			need += s.blocks(q.length+s.longestBurst(q)) - len(q.units)
		}
		var ok bool
		if s.units, ok = s.pool.Reserve(nil, need, s.units[:0]); ok {
			s.announceRemoved()
			return
		}
		if s.policy.ToCompletion() {
			s.producing = s.producing[:0]
			return
		}
		s.producing = without(s.producing, s.preempt(true))
	}
}

func (s *Scheduler) longestBurst(q *sequence) int {
	if s.cfg.Role == engine.PrefillRole {
		return 1
	}
	return min(1+s.sampler.Drafts(), q.remaining())
}

// burst appends the accepted tokens of one forward. All but the last are computed at once, and every token owns its
// block.
func (s *Scheduler) burst(q *sequence) {
	accepted := 1
	if s.cfg.Role != engine.PrefillRole {
		accepted = s.sampler.Accept()
		if !s.computesPrompt(q) {
			s.record.Drafts.Accepted += accepted
			s.record.Drafts.Forwards++
		}
	}
	for n := min(accepted, q.remaining()); n > 0; n-- {
		s.answer(q)
		if len(q.units) < s.blocks(q.length) {
			last := len(s.units) - 1
			q.units = append(q.units, s.units[last])
			s.units = s.units[:last]
		}
		if n > 1 {
			q.computed = q.length
			s.publish(q, (q.length-1)/s.blockSize, q.length/s.blockSize)
		}
	}
	q.allocated = q.length
}

// returnSpareUnits gives back what the bursts did not use.
func (s *Scheduler) returnSpareUnits() {
	for _, u := range s.units {
		s.pool.Release(u)
	}
	s.units = s.units[:0]
}
