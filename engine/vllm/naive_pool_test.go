package vllm_test

import (
	"slices"

	"mockbench/engine"
	"mockbench/kv"
)

func (n *naive) submit(r *engine.Request) {
	q := &naiveSequence{r: r, tokens: slices.Clone(r.Prompt)}
	if n.cfg.EnablePrefixCaching {
		q.hashed = len(r.Prompt) / n.cfg.BlockSize
	}
	n.waiting = append(n.waiting, q)
}

func (n *naive) cancel(id engine.ID) bool {
	for _, list := range []*[]*naiveSequence{&n.waiting, &n.running} {
		for i, q := range *list {
			if q.r.ID == id {
				n.release(q)
				*list = slices.Delete(*list, i, i+1)
				return true
			}
		}
	}
	return false
}

func (n *naive) ceil(tokens int) int { return (tokens + n.cfg.BlockSize - 1) / n.cfg.BlockSize }

func (n *naive) active() int { return n.blocks - len(n.inactive) }

func (n *naive) hash(q *naiveSequence, b int) uint64 {
	_, hashes := kv.AppendHashes(nil, nil, q.tokens[:(b+1)*n.cfg.BlockSize], n.cfg.BlockSize)
	return hashes[b]
}

func (n *naive) release(q *naiveSequence) {
	for _, b := range slices.Backward(q.table) {
		b.refs--
		switch {
		case b.refs > 0:
		case b.cached:
			n.inactive = append(n.inactive, b)
		default:
			n.blocks--
		}
	}
	q.table, q.computed = nil, 0
}

func (n *naive) lookup(q *naiveSequence) (hits []*naiveBlock) {
	for b := range q.hashed {
		copies := n.resident[n.hash(q, b)]
		if len(copies) == 0 {
			break
		}
		hits = append(hits, copies[0])
	}
	return hits
}

// reserve references hits and returns fresh blocks, or false if there is no room.
func (n *naive) reserve(hits []*naiveBlock, fresh int) ([]*naiveBlock, bool) {
	idle := 0
	for _, b := range hits {
		if b.refs == 0 {
			idle++
		}
	}
	missing := fresh - (n.cfg.NumGPUBlocks - n.blocks)
	if missing > len(n.inactive)-idle {
		return nil, false
	}
	for _, b := range hits {
		if b.refs == 0 {
			n.inactive = slices.DeleteFunc(n.inactive, func(c *naiveBlock) bool { return c == b })
		}
		b.refs++
	}
	var removed []uint64
	for ; missing > 0; missing-- {
		b := n.inactive[0]
		n.inactive = n.inactive[1:]
		n.blocks--
		n.resident[b.hash] = slices.DeleteFunc(n.resident[b.hash], func(c *naiveBlock) bool { return c == b })
		if len(n.resident[b.hash]) == 0 {
			removed = append(removed, b.hash)
		}
	}
	n.emit(kv.Event{Kind: kv.Removed}, removed)
	var blocks []*naiveBlock
	for range fresh {
		n.blocks++
		blocks = append(blocks, &naiveBlock{refs: 1})
	}
	return blocks, true
}

func (n *naive) emit(e kv.Event, hashes []uint64) {
	if len(hashes) == 0 || !n.cfg.EmitKVEvents {
		return
	}
	e.ID, e.Position, e.Offset, e.Count = n.events, -1, int32(len(n.pass.Sequence)), int32(len(hashes))
	n.events++
	n.pass.Events = append(n.pass.Events, e)
	n.pass.Sequence = append(n.pass.Sequence, hashes...)
}

func (n *naive) publish(q *naiveSequence, from, to int) {
	if !n.cfg.EnablePrefixCaching {
		return
	}
	var run []uint64
	flush := func(end int) {
		e := kv.Event{Kind: kv.Stored}
		if first := end - len(run); len(run) > 0 && first > 0 {
			e.HasParent, e.Parent = true, n.hash(q, first-1)
		}
		n.emit(e, run)
		run = nil
	}
	for i := from; i < to; i++ {
		q.hashed = max(q.hashed, i+1)
		b := q.table[i]
		if b.cached {
			flush(i)
			continue
		}
		b.cached, b.hash = true, n.hash(q, i)
		n.resident[b.hash] = append(n.resident[b.hash], b)
		if len(n.resident[b.hash]) > 1 {
			flush(i)
			continue
		}
		run = append(run, b.hash)
	}
	flush(to)
}

func (n *naive) preempt(burst bool) *naiveSequence {
	if len(n.running) == 0 {
		return nil
	}
	i := len(n.running) - 1
	if n.cfg.PreemptionMode == engine.FIFO {
		i = 0
	}
	q := n.running[i]
	p := engine.Preemption{Request: q.r, Blocks: len(q.table), Burst: burst, GeneratedSoFar: q.generated()}
	p.Before = engine.Pressure{Running: len(n.running), Waiting: len(n.waiting), ActiveBlocks: n.active()}
	n.running = slices.Delete(n.running, i, i+1)
	n.release(q)
	q.again = true
	n.waiting = slices.Insert(n.waiting, 0, q)
	n.preemptions++
	p.After = engine.Pressure{Running: len(n.running), Waiting: len(n.waiting), ActiveBlocks: n.active()}
	n.pass.Preemptions = append(n.pass.Preemptions, p)
	if !burst {
		n.preempted = true
		n.pass.Work = slices.DeleteFunc(n.pass.Work, func(w engine.Work) bool {
			if w.Request == q.r {
				n.budget += uint64(w.Tokens)
			}
			return w.Request == q.r
		})
		q.promptWork = 0
	}
	return q
}
