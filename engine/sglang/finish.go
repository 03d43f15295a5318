package sglang

import (
	"mockbench/engine"
	"mockbench/kv"
)

// generate adds an output token and its output signal.
func (s *Scheduler) generate(q *sequence, token uint32) {
	position := len(q.generated)
	q.generated = append(q.generated, token)
	s.pass.Outputs = append(s.pass.Outputs, engine.Output{Request: q.req, Position: int32(position), Token: token,
		HasToken: true, Completed: q.remaining() == 0, Cached: -1})
}

// nextToken returns the token at the end of q: the planned one, else the synthetic one.
func (s *Scheduler) nextToken(q *sequence) uint32 {
	k := len(q.generated)
	if k < len(q.req.Output) {
		return q.req.Output[k]
	}
	return kv.SyntheticToken(q.req.ID, k)
}

// silent tells the end of a sequence that needs no token any more.
func (s *Scheduler) silent(q *sequence) {
	s.pass.Outputs = append(s.pass.Outputs, engine.Output{Request: q.req, Position: -1, Completed: true, Cached: -1})
}

// end finishes a sequence, or holds its KV for a handoff.
func (s *Scheduler) end(q *sequence) {
	if q.source {
		q.place = heldSource
		s.pass.Handoffs = append(s.pass.Handoffs, engine.Handoff{Kind: engine.SourceHeld, ID: q.handoff, Request: q.req,
			Tokens: q.promptLen})
		return
	}
	s.finish(q)
	s.retries++
	s.forget(q)
}

// Commit implements engine.Scheduler.
func (s *Scheduler) Commit(end engine.Time) *engine.Pass {
	s.close(end)
	return &s.pass.Pass
}

// Attend implements engine.Attendant.
func (s *Scheduler) Attend(start engine.Time) {
	s.pass.begin(s.rank, start)
	s.pass.Idle = true
}

// Idle implements engine.Scheduler.
func (s *Scheduler) Idle(start, end engine.Time) *engine.Pass {
	if !s.pass.open {
		s.Attend(start)
	}
	s.close(end)
	return &s.pass.Pass
}

// close ends a pass. A destination may get room here; what that evicts belongs to the pass.
func (s *Scheduler) close(end engine.Time) {
	s.pass.closing = true
	s.attempt()
	s.pass.closing = false
	s.pass.end(end)
	s.pass.Load = s.Load()
}

// Round implements engine.RoundKeeper.
func (s *Scheduler) Round() (prefilled, worked bool) { return s.pass.prefilled, s.pass.worked }

// EndRound implements engine.RoundKeeper: it counts the rounds without prefill that follow a prefill.
func (s *Scheduler) EndRound(prefilled, worked bool) {
	if s.pass.spared && !worked {
		s.ratio.now = s.ratio.init
	}
	if prefilled {
		s.roundsLeft = s.cfg.PrefillDecodeInterval
	} else {
		s.roundsLeft = max(0, s.roundsLeft-1)
	}
}

// timePrefill sets the length of a prefill pass.
func (s *Scheduler) timePrefill(batch []*sequence) {
	tokens, prefix, computed := 0, 0, 0
	for _, w := range s.pass.Work {
		tokens += w.Prefix + w.Tokens
		prefix += w.Prefix
		computed += w.Tokens
	}
	s.pass.worked, s.pass.prefilled = true, computed > 0
	s.pass.Prefix.Total = s.pass.Prefix.Reused + computed
	n := len(batch)
	isl, mean := tokens/n, prefix/n
	if isl == mean || s.cfg.Role == engine.DecodeRole {
		return
	}
	call, length := s.timer.Prefill(n, isl, mean)
	s.pass.Prefill = call
	s.pass.RankEnd += length
}

// timeDecode sets the length of a decode pass.
func (s *Scheduler) timeDecode() {
	tokens := 0
	for _, q := range s.running {
		tokens += q.length()
	}
	call, length := s.timer.Decode(len(s.running), tokens, s.tokensOf(s.pool.Total()))
	s.pass.Decode, s.pass.worked = call, true
	s.pass.RankEnd += length
}

// noteDecodeRows counts the sequences that enter a decode pass.
func (s *Scheduler) noteDecodeRows() {
	var rows engine.Moments
	for _, q := range s.running {
		rows.Add(q.length())
	}
	f := &s.pass.FPM
	f.DecodeRequests, f.DecodeKVTokens, f.DecodeKVVar = rows.N, rows.Sum, rows.Variance()
}

// summarise fills in the rest of the forward-pass metrics.
func (s *Scheduler) summarise(batch []*sequence) {
	f := &s.pass.FPM
	var rows engine.Moments
	if len(batch) > 0 {
		for i, w := range s.pass.Work {
			if w.Tokens == 0 {
				continue
			}
			rows.Add(batch[i].promptLen)
			f.PrefillTokens += w.Tokens
			f.PrefillKVTokens += w.Prefix
		}
	}
	f.PrefillRequests, f.PrefillLengthVar = rows.N, rows.Variance()
	queued := s.waiting.count
	queued.decodes.Merge(s.arriving)
	f.QueuedPrefills, f.QueuedPrefillTokens, f.QueuedPrefillVar = queued.prefills.N, queued.prefills.Sum, queued.prefills.Variance()
	f.QueuedDecodes, f.QueuedDecodeKVTokens, f.QueuedDecodeKVVar = queued.decodes.N, queued.decodes.Sum, queued.decodes.Variance()
}
