package vllm

import "mockbench/engine"

// produce gives every request whose known tokens are computed its next ones, adds the decode part to the length of the
// pass and ends what is complete.
func (s *Scheduler) produce() {
	s.collect()
	s.reserveBursts()
	s.timeDecode()
	finished := false
	for _, q := range s.producing {
		if s.sampler == nil {
			s.step(q)
		} else {
			s.burst(q)
		}
		if q.remaining() == 0 {
			s.finish(q)
			finished = true
		}
	}
	if finished {
		s.sweep()
	}
	s.returnSpareUnits()
	for _, r := range s.rejected {
		s.record.Outputs = append(s.record.Outputs, engine.Output{Request: r, Position: -1, Completed: true, Rejected: true, Cached: -1})
	}
	s.rejected = s.rejected[:0]
}

// collect lists the requests that produce a token. Those that need none end here.
func (s *Scheduler) collect() {
	s.producing = s.producing[:0]
	finished := false
	for _, q := range s.running {
		if q.computed < q.length {
			continue
		}
		if q.remaining() > 0 {
			s.producing = append(s.producing, q)
			continue
		}
		s.record.Outputs = append(s.record.Outputs, engine.Output{Request: q.req, Position: -1, Completed: true, Cached: s.firstCached(q)})
		s.finish(q)
		finished = true
	}
	if finished {
		s.sweep()
	}
}

// timeDecode adds the decode part of the pass to its length. A first token that comes out of a prefill is free.
func (s *Scheduler) timeDecode() {
	requests, tokens := 0, 0
	for _, q := range s.producing {
		if q.length == q.prompt && s.sampler == nil && s.cfg.Role == engine.Aggregated && s.computesPrompt(q) {
			continue
		}
		requests++
		tokens += q.length
	}
	if requests == 0 || s.cfg.Role == engine.PrefillRole {
		return
	}
	call, length := s.timer.Decode(requests, tokens, s.cfg.NumGPUBlocks*s.blockSize)
	s.record.Decode = call
	s.record.RankEnd += length
}

// step appends one token. Its KV is computed in the next pass.
func (s *Scheduler) step(q *sequence) {
	if s.cfg.Role != engine.PrefillRole && !s.computesPrompt(q) {
		s.record.Drafts.Accepted++
		s.record.Drafts.Forwards++
	}
	s.answer(q)
}

// answer appends the next token of a request to its sequence and to the outputs.
func (s *Scheduler) answer(q *sequence) {
	token, position := q.token(q.length), q.generated()
	q.length++
	s.record.Outputs = append(s.record.Outputs, engine.Output{Request: q.req, Position: int32(position), Token: token,
		HasToken: true, Completed: q.remaining() == 0, Cached: s.firstCached(q)})
}

// firstCached returns what the first output of a request says of reuse, -1 for later ones.
func (s *Scheduler) firstCached(q *sequence) int32 {
	if q.answered {
		return -1
	}
	q.answered = true
	return int32(q.cached)
}

// finish ends a running request, or holds it for its handoff. sweep takes it out of the list.
func (s *Scheduler) finish(q *sequence) {
	if q.source {
		s.holdSource(q)
		return
	}
	s.release(q)
	s.forget(q)
	s.handoffs.generation++
}

// sweep drops ended requests from the running list.
func (s *Scheduler) sweep() {
	kept := s.running[:0]
	for _, q := range s.running {
		if q.place == inRunning {
			kept = append(kept, q)
		}
	}
	s.running = kept
}
