package sglang

import (
	"cmp"
	"slices"

	"mockbench/engine"
)

const (
	orderLimit  = 128 // with more waiting requests the queue keeps its order
	sharedFloor = 32  // tokens: below this much cached, requests of one batch that share a prefix are spread out
)

// order sorts the queue by longest cached prefix. Of several requests that share an uncached prefix only the first
// keeps its rank: the others would compute the same prefix in the same batch.
func (s *Scheduler) order() {
	n := s.waiting.len()
	if s.cfg.SGLang.SchedulePolicy != "lpm" || !s.reuse || n > orderLimit || n < 2 {
		return
	}
	type entry struct {
		q     *sequence
		score int
		dup   bool
	}
	shared := s.pagesFor(sharedFloor)
	seen := map[string]bool{}
	list := make([]entry, 0, n)
	for _, q := range s.waiting.list {
		hashes := s.hashesOf(q, q.length()/s.page)
		e := entry{q: q, score: s.tokensOf(s.pool.Peek(hashes))}
		if e.score <= sharedFloor && q.length() >= s.tokensOf(shared) {
			key := prefixKey(hashes[:shared])
			e.dup = seen[key]
			seen[key] = true
		}
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		if a.dup != b.dup {
			if a.dup {
				return 1
			}
			return -1
		}
		return cmp.Compare(b.score, a.score)
	})
	for i, e := range list {
		s.waiting.list[i] = e.q
	}
}

func prefixKey(hashes []uint64) string {
	key := make([]byte, 0, 8*len(hashes))
	for _, h := range hashes {
		for shift := 0; shift < 64; shift += 8 {
			key = append(key, byte(h>>shift))
		}
	}
	return string(key)
}

// block is the admission test that held the head of the queue back.
type block struct {
	test       engine.Test
	head       *sequence
	need, have int
}

// hint says what a pass without effect waits for, and what would let its head in.
func (s *Scheduler) hint(deferred bool, ratio float64, b block) {
	p := &s.pass.Pass
	p.Effect = len(p.Work) > 0 || len(p.Admissions) > 0 || len(p.Outputs) > 0 || len(p.Preemptions) > 0 ||
		len(p.Events.List) > 0 || len(p.Handoffs) > 0
	h := engine.Hint{Kind: engine.HintExhausted, Test: b.test, Need: b.need, Have: b.have}
	switch {
	case deferred:
		h.Kind, h.Rounds = engine.HintCountdown, s.roundsLeft-1
	case ratio != s.ratio.now:
		h.Kind = engine.HintRetry
	default:
		if h.Handoffs = s.holding(); h.Handoffs > 0 {
			h.Kind = engine.HintHandoff
		}
	}
	if b.head == nil && len(s.running) == 1 && !p.Effect {
		b.head = s.running[0]
		h.Test, h.Need, h.Have = engine.TestPool, s.pagesFor(b.head.promptLen+b.head.maxOut), s.pool.Total()
	}
	if b.head != nil {
		h.Head = b.head.req
		h.Setting, h.Raise = s.remedy(b.head, h)
	}
	p.Hint = h
}

// remedy names the setting to raise, and the smallest value with which q is admitted and can finish.
func (s *Scheduler) remedy(q *sequence, h engine.Hint) (setting string, value int) {
	switch h.Test {
	case engine.TestSlots:
		return "engine.max_num_seqs", len(s.running) + 1
	case engine.TestInput:
		return "engine.sglang.max_prefill_tokens", h.Need
	case engine.TestChunk:
		return "engine.sglang.chunked_prefill_size", h.Need
	}
	admitted := (s.round(q.length())+q.reserve(s.cfg.SGLang.ClipMaxNewTokens))/s.page + 1
	return "engine.num_gpu_blocks", max(admitted, s.pagesFor(q.promptLen+q.maxOut))
}
