package vllm

import (
	"slices"

	"mockbench/engine"
	"mockbench/kv"
)

// outcome says what came of an attempt to schedule a request.
type outcome uint8

const (
	scheduled outcome = iota
	blocked
	lost // the request itself was preempted
)

// schedule gives a request as many tokens of the budget as it can use, and the units they need. Its first cached tokens
// are in the units s.hits.
func (s *Scheduler) schedule(q *sequence, cached int) outcome {
	start := q.computed
	if start == 0 {
		start = cached
	}
	prefix := min(start, q.prompt)
	rest, prompt := q.length-start, q.prompt-prefix
	budget := s.record.BudgetLeft
	if prompt > 0 && !s.cfg.EnableChunkedPrefill && uint64(prompt) > budget {
		s.note(engine.TestBudget, q, prompt, budget)
		return blocked
	}
	n := rest
	if uint64(n) > budget {
		n = int(budget)
	}
	if n == 0 && rest > 0 {
		s.note(engine.TestBudget, q, rest, budget)
		return blocked
	}
	target := start + n
	if target > q.allocated {
		if o := s.allocate(q, target, cached/s.blockSize); o != scheduled {
			return o
		}
		q.allocated = target
	}
	q.computed = target
	s.publish(q, start/s.blockSize, target/s.blockSize)
	s.enter(q, engine.Work{Request: q.req, Tokens: n, Prompt: min(target, q.prompt) - prefix, Prefix: prefix,
		Length: q.length, Waited: q.place != inRunning})
	return scheduled
}

// allocate extends the block table to target tokens. Of the new entries, those below matched are taken from s.hits. It
// preempts until there is room.
func (s *Scheduler) allocate(q *sequence, target, matched int) outcome {
	for {
		own := len(q.units)
		need := s.blocks(target)
		if own == need {
			return scheduled
		}
		var hits []int32
		if matched > own {
			hits = s.hits[own:matched]
		}
		if cap(q.units) < need {
			q.units = slices.Grow(q.units, need-own+outputBlocks)
		}
		var ok bool
		if q.units, ok = s.pool.Reserve(hits, need-own-len(hits), q.units); ok {
			s.announceRemoved()
			if s.host != nil {
				s.host.fence(q.units[own+len(hits):])
			}
			return scheduled
		}
		if s.policy.ToCompletion() {
			return blocked // the promise kept for it should have sufficed
		}
		switch victim := s.preempt(false); victim {
		case nil:
			return blocked
		case q:
			return lost
		}
	}
}

// announceRemoved tells which hashes the pool forgot.
func (s *Scheduler) announceRemoved() { s.log.Removed(kv.Device, s.pool.TakeRemoved()) }

// preempt takes all units from a running request, the last or the first one, and puts it in front of the queue. It
// returns nil if nothing runs. A victim of a burst keeps the work it did in this pass.
func (s *Scheduler) preempt(burst bool) *sequence {
	if len(s.running) == 0 {
		return nil
	}
	i := len(s.running) - 1
	if s.cfg.PreemptionMode == engine.FIFO {
		i = 0
	}
	q := s.running[i]
	p := engine.Preemption{Request: q.req, Blocks: len(q.units), Before: s.pressure(), GeneratedSoFar: q.generated(), Burst: burst}
	s.running = append(s.running[:i], s.running[i+1:]...)
	if s.host != nil {
		s.host.fencePreempted(q)
	}
	s.release(q)
	q.place, q.preempted, q.since = inWaiting, true, s.record.Start
	s.waiting.pushFront(q)
	s.preemptions++
	s.handoffs.generation++
	p.After = s.pressure()
	s.record.Preemptions = append(s.record.Preemptions, p)
	if !burst {
		s.withdraw(q)
	}
	return q
}

func (s *Scheduler) pressure() engine.Pressure {
	return engine.Pressure{Running: len(s.running), Waiting: s.queued(), ActiveBlocks: s.pool.Active()}
}

// publish makes the blocks from..to-1 of a request findable. Runs of blocks that no unit held before are announced.
func (s *Scheduler) publish(q *sequence, from, to int) {
	if !s.cfg.EnablePrefixCaching {
		return
	}
	open := false
	for b := from; b < to; b++ {
		if b == len(q.sequence) {
			s.hashNext(q)
		}
		if s.pool.Cached(q.units[b]) {
			open = false
			continue
		}
		var parent uint64
		if b > 0 {
			parent = q.sequence[b-1]
		}
		if !s.pool.Publish(q.units[b], q.sequence[b], parent, b) {
			open = false
			continue
		}
		if !open {
			s.log.Open(kv.Event{Kind: kv.Stored, HasParent: b > 0, Parent: parent, Position: -1})
			open = true
		}
		s.announce(q, b)
	}
}

// announce adds block b to the stored event opened last.
func (s *Scheduler) announce(q *sequence, b int) {
	s.log.Block(q.sequence[b], q.local[b])
	if s.log.On && s.cfg.EmitKVTokenIDs {
		to := s.log.To
		to.Tokens = q.appendTokens(to.Tokens, b*s.blockSize, (b+1)*s.blockSize)
	}
}
