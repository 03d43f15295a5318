package sglang

import (
	"mockbench/engine"
)

// Plan implements engine.Scheduler.
func (s *Scheduler) Plan(now engine.Time, _ uint64) *engine.Pass {
	s.pass.begin(s.rank, now)
	deferred := s.roundsLeft > 0
	before := s.ratio.now

	rejected := s.rejectLong()
	s.startReady()
	s.order()
	var batch []*sequence
	var blocked block
	decoding := len(s.running)
	if len(s.ready) == 0 && len(s.pending) == 0 && !deferred {
		batch, blocked = s.prefillBatch(now)
	}
	var finished []*sequence
	if len(batch) > 0 {
		finished = s.prefill(batch, decoding)
	} else {
		s.pass.spared = deferred && len(s.running) == 0
		finished = s.decode(now)
	}
	for _, q := range finished {
		s.end(q)
	}
	for _, q := range rejected {
		s.pass.Outputs = append(s.pass.Outputs, engine.Output{Request: q.req, Position: -1, Completed: true, Rejected: true,
			Cached: -1})
		s.forget(q)
	}
	s.summarise(batch)
	s.hint(deferred, before, blocked)
	return &s.pass.Pass
}

// rejectLong takes every waiting request out whose prompt leaves no room for output.
func (s *Scheduler) rejectLong() (rejected []*sequence) {
	limit := s.cfg.MaxModelLen
	if limit == 0 {
		return nil
	}
	for i := 0; i < s.waiting.len(); {
		q := s.waiting.list[i]
		if q.promptLen < limit {
			i++
			continue
		}
		s.waiting.remove(q)
		rejected = append(rejected, q)
	}
	return rejected
}

// startReady moves destinations whose KV has arrived to running while there are slots.
func (s *Scheduler) startReady() {
	for len(s.ready) > 0 && uint64(len(s.running)) < s.cfg.MaxNumSeqs {
		q := s.ready[0]
		s.ready = s.ready[1:]
		s.arriving.Remove(q.promptLen)
		s.run(q)
		s.noteAdmission(q, 0)
	}
}

func (s *Scheduler) run(q *sequence) {
	q.place = inRunning
	s.running = append(s.running, q)
}

func (s *Scheduler) noteAdmission(q *sequence, reused int) {
	s.pass.Admissions = append(s.pass.Admissions, engine.Admission{Request: q.req, Reused: reused, First: !q.admitted})
	if !q.admitted {
		q.admitted, q.first = true, reused
	}
}

// prefillBatch admits sequences from the head of the queue until one test refuses.
func (s *Scheduler) prefillBatch(now engine.Time) (batch []*sequence, stop block) {
	set := 0.0
	for _, q := range s.running {
		set += float64(float64(q.reserve(s.cfg.SGLang.ClipMaxNewTokens)) * s.ratio.now)
	}
	total := float64(s.tokensOf(s.pool.Available()+s.pool.Evictable())) - set
	input, chunk := s.cfg.SGLang.MaxPrefillTokens, s.chunk
	slots := s.cfg.MaxNumSeqs - min(s.cfg.MaxNumSeqs, uint64(len(s.running)))

	for s.waiting.len() > 0 {
		q := s.waiting.head()
		if uint64(len(batch)) >= slots {
			return batch, block{test: engine.TestSlots, head: q}
		}
		fresh := q.fresh()
		start := max(q.materialised, s.hit(q))
		left := q.length() - start
		if left == 0 && !fresh {
			return batch, block{}
		}
		k := left
		if s.round(left) > chunk {
			k = min(chunk/s.page*s.page, left)
			if k == 0 {
				return batch, block{test: engine.TestChunk, head: q, need: s.page, have: chunk}
			}
		}
		charge, keep := s.round(k), 0
		if k == left {
			keep = q.reserve(s.cfg.SGLang.ClipMaxNewTokens)
		}
		switch {
		case float64(charge+keep) >= total:
			return batch, block{test: engine.TestTotal, head: q, need: charge + keep, have: int(total)}
		case charge > input:
			return batch, block{test: engine.TestInput, head: q, need: charge, have: input}
		case charge > chunk:
			return batch, block{test: engine.TestChunk, head: q, need: charge, have: chunk}
		}
		if fresh {
			reused, ok := s.admit(q, start+k, start)
			if !ok {
				return batch, block{test: engine.TestPool, head: q, need: s.pagesFor(start + k), have: s.pool.Total()}
			}
			s.noteAdmission(q, reused)
			s.pass.Prefix.Reused += reused
		} else if !s.extend(q, start+k) {
			return batch, block{test: engine.TestPool, head: q, need: s.pagesFor(start + k), have: s.pool.Total()}
		}
		s.waiting.popFront()
		s.pass.Work = append(s.pass.Work, engine.Work{Request: q.req, Tokens: k, Prefix: start, Length: q.length(),
			Prompt: max(0, min(start+k, q.promptLen)-start), Waited: true})
		batch = append(batch, q)
		total -= float64(charge + keep)
		input -= charge
		chunk -= charge
		if chunk <= 0 {
			break
		}
	}
	return batch, block{}
}

// hit returns the tokens of q's prefix that the tree holds; the last known token is always computed.
func (s *Scheduler) hit(q *sequence) int {
	if !q.fresh() || !s.reuse {
		return 0
	}
	limit := q.length() - 1
	if q.maxOut == 0 {
		limit = q.length()
	}
	return s.tokensOf(s.pool.Peek(s.hashesOf(q, max(0, limit)/s.page)))
}

// prefill is the rest of a pass with a prefill batch: nothing else runs, and complete prompts yield their first token.
func (s *Scheduler) prefill(batch []*sequence, old int) (finished []*sequence) {
	s.timePrefill(batch)
	var last, more []*sequence
	for i := len(batch) - 1; i >= 0; i-- { // the one partial member is the last
		if q := batch[i]; q.materialised < q.length() {
			s.cachePrefix(q)
			q.place = inWaiting
			s.waiting.pushFront(q)
		}
	}
	for _, q := range batch {
		if q.materialised < q.length() {
			continue
		}
		switch q.remaining() {
		case 0:
			s.silent(q)
			finished = append(finished, q)
		case 1:
			last = append(last, q)
		default:
			more = append(more, q)
		}
		s.run(q)
	}
	for _, q := range last {
		s.generate(q, s.nextToken(q))
	}
	s.firstTokens(more)
	finished = append(finished, last...)
	kept := s.running[:old]
	for _, q := range s.running[old:] {
		if q.remaining() > 0 {
			kept = append(kept, q)
		}
	}
	s.running = kept
	return finished
}

// firstTokens gives each sequence the token of its prefill forward, if there is a slot for all of them; else they get
// it from a later decode pass.
func (s *Scheduler) firstTokens(list []*sequence) {
	need := 0
	for _, q := range list {
		need += s.pagesFor(q.length()+1) - len(q.pages)
	}
	s.evict(need - s.pool.Available())
	if need > s.pool.Available() {
		return
	}
	for _, q := range list {
		s.append(q, s.nextToken(q))
		s.cachePrefix(q)
	}
}

// decode is a pass without prefill batch.
func (s *Scheduler) decode(now engine.Time) (finished []*sequence) {
	kept := s.running[:0]
	for _, q := range s.running {
		if q.remaining() > 0 {
			kept = append(kept, q)
			continue
		}
		s.silent(q)
		finished = append(finished, q)
	}
	s.running = kept
	s.noteDecodeRows()
	burst := 1
	if s.sampler != nil {
		burst = s.cfg.Nextn + 1
	}
	growth, retracted := s.makeDecodeRoom(burst, now)
	if len(s.running) > 0 && growth <= s.pool.Available() {
		finished = append(finished, s.forward(growth)...)
	}
	for _, q := range retracted {
		q.place = inWaiting
		s.waiting.pushBack(q)
	}
	return finished
}

// makeDecodeRoom retracts sequences until the others can grow, and evicts for them. It returns the pages they need.
func (s *Scheduler) makeDecodeRoom(burst int, now engine.Time) (growth int, retracted []*sequence) {
	growth = s.growth(burst)
	for s.pool.Available()+s.pool.Evictable() < growth && len(s.running) > 1 {
		retracted = append(retracted, s.retractOne(growth))
		growth = s.growth(burst)
	}
	s.evict(growth - s.pool.Available())
	if len(retracted) > 0 {
		out, most := 0, 0
		for _, q := range s.running {
			out += len(q.generated)
			most += q.maxOut
		}
		s.ratio.now = min(1, float64(out+20*len(s.running))/float64(most+1))
	} else if !s.pass.spared {
		s.ratio.now = max(float64(s.ratio.now-s.ratio.step), s.ratio.min)
	}
	return growth, retracted
}

// growth returns the pages that one forward of all running sequences may need.
func (s *Scheduler) growth(burst int) (pages int) {
	for _, q := range s.running {
		pages += max(0, s.pagesFor(q.length()+min(burst, q.remaining()))-len(q.pages))
	}
	return pages
}

// retractOne sends the running sequence with the fewest outputs back to wait.
func (s *Scheduler) retractOne(growth int) *sequence {
	victim := s.running[0]
	for _, q := range s.running[1:] {
		if len(q.generated) < len(victim.generated) {
			victim = q
		}
	}
	note := engine.Preemption{Request: victim.req, Blocks: len(victim.pages), Retraction: true,
		Available: s.pool.Available() + s.pool.Evictable(), Required: growth, GeneratedSoFar: len(victim.generated),
		Before: engine.Pressure{Running: len(s.running), ActiveBlocks: s.used()}}
	s.running = without(s.running, victim)
	s.release(victim)
	s.retries++
	note.After = engine.Pressure{Running: len(s.running), ActiveBlocks: s.used()}
	s.pass.Preemptions = append(s.pass.Preemptions, note)
	return victim
}

// forward decodes all running sequences once. Pages for the longest bursts are free: growth of them.
func (s *Scheduler) forward(growth int) (finished []*sequence) {
	s.timeDecode()
	kept := s.running[:0]
	for _, q := range s.running {
		accepted := 1
		if s.sampler != nil {
			accepted = s.sampler.Accept()
		}
		if s.cfg.Role != engine.PrefillRole {
			s.pass.Drafts.Accepted += accepted
			s.pass.Drafts.Forwards++
		}
		tokens := min(accepted, q.remaining())
		s.pass.Work = append(s.pass.Work, engine.Work{Request: q.req, Tokens: tokens, Prefix: q.promptLen, Length: q.length()})
		for range tokens {
			s.append(q, s.nextToken(q))
			if q.remaining() > 0 {
				s.cachePrefix(q)
			}
		}
		if q.remaining() > 0 {
			kept = append(kept, q)
		} else {
			finished = append(finished, q)
		}
	}
	s.running = kept
	return finished
}
