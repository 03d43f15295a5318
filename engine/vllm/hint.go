package vllm

import "mockbench/engine"

// note remembers which test holds the head of the queue back.
func (s *Scheduler) note(t engine.Test, q *sequence, need int, have uint64) {
	s.record.Hint = engine.Hint{Test: t, Head: q.req, Need: need, Have: int(min(have, 1<<62))}
}

// explain completes the hint of a pass without effect: which setting holds the head back for good, and the value it
// needs.
func (s *Scheduler) explain() {
	h := &s.record.Hint
	s.standstill(h)
	if h.Head == nil {
		return
	}
	switch h.Test {
	case engine.TestPool:
		h.Setting = "engine.num_gpu_blocks"
		h.Raise = max(s.blocksToFinish(s.sequences[h.Head.ID]), s.pool.Capacity()+h.Need-h.Have)
	case engine.TestBudget:
		h.Setting = "engine.max_num_batched_tokens"
		h.Raise = h.Need
	case engine.TestSlots:
		h.Setting = "engine.max_num_seqs"
		h.Raise = h.Need
	}
}

// standstill says what a rank waits for that can do nothing now.
func (s *Scheduler) standstill(h *engine.Hint) {
	h.Kind, h.Handoffs = engine.HintExhausted, s.handoffs.holding()
	if _, ok := s.Deadline(); ok {
		h.Kind = engine.HintTransfer
	} else if h.Handoffs > 0 {
		h.Kind = engine.HintHandoff
	}
}

// blocksToFinish returns the blocks a request needs to run alone to its end. The KV of its last token is never computed,
// unless drafts reserve it.
func (s *Scheduler) blocksToFinish(q *sequence) int {
	if s.policy.ToCompletion() {
		return s.final(q)
	}
	tokens := q.length + q.remaining()
	if s.sampler == nil && tokens > q.prompt {
		tokens--
	}
	return s.blocks(tokens)
}
