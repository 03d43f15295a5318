package fast

import "mockbench/engine"

// serve gives running requests their tokens: all steady ones theirs, and the partial one as many as are left.
func (r *rank) serve() error {
	if uint64(r.steady) > r.budget {
		return ErrBeyond
	}
	begins, fills := &r.boundaries[r.residue(1)], &r.boundaries[r.residue(0)]
	a, b := begins.head, fills.head
	for a != nil || b != nil {
		if b == nil || a != nil && a.order < b.order {
			q := a
			if !r.place(q, r.blocks(q.at(r.pass))-len(q.units)) {
				break // it was the last one
			}
			a = q.links[byBoundary].next
			if b != nil && !b.steady {
				b = nil
			}
			continue
		}
		r.publish(b, b.at(r.pass)/r.block-1, b.at(r.pass)/r.block)
		b = b.links[byBoundary].next
	}
	r.out.budget -= uint64(r.steady)
	if q := r.partial; q != nil && r.out.budget > 0 {
		r.partial = nil
		if !r.schedule(q, 0) {
			r.preempt() // the last one, which is this one
		}
	}
	return nil
}

// residue returns the list of the steady requests whose known tokens leave the remainder m in this pass.
func (r *rank) residue(m int) int {
	n := uint64(r.block)
	return int((uint64(m) + n - r.pass%n) % n)
}

// boundary returns the list of a steady request.
func (r *rank) boundary(q *request) *list {
	n := uint64(r.block)
	return &r.boundaries[(uint64(q.length)+n-q.joined%n)%n]
}

// day returns the calendar's list of a steady request.
func (r *rank) day(q *request) *list { return &r.calendar[q.lastPass()%calendarDays] }

// lastPass returns the pass in which a steady request gets its last token.
func (q *request) lastPass() uint64 { return q.joined + uint64(q.end-1-q.length) }

// join makes a request steady from the next pass on.
func (r *rank) join(q *request) {
	q.steady, q.joined = true, r.pass+1
	r.steady++
	r.tokens += q.length
	r.boundary(q).pushBack(q, byBoundary)
	r.day(q).pushBack(q, byEnd)
	r.joined[1] = append(r.joined[1], q)
}

// leave takes a request, with its known tokens as of this pass, out of the steady ones.
func (r *rank) leave(q *request, length int) {
	r.boundary(q).remove(q, byBoundary)
	r.day(q).remove(q, byEnd)
	r.steady--
	r.tokens -= length
	q.steady = false
}

// produce gives every request whose known tokens are computed its next one, ends those that are complete, and returns
// the time of the decode part.
func (r *rank) produce() (length engine.Time) {
	o := &r.out
	r.joined[0], r.joined[1] = r.joined[1], r.joined[0][:0]
	o.tokens = r.steady
	requests, tokens := r.steady, r.tokens
	for _, q := range o.fresh {
		if q.length > q.prompt { // a first token that comes out of a prefill is free
			requests++
			tokens += q.length
		}
	}
	if requests > 0 {
		_, length = r.timer.Decode(requests, tokens, r.capacity)
	}
	for _, q := range o.quiet {
		r.finish(q)
	}
	for q := r.calendar[r.pass%calendarDays].head; q != nil; {
		next := q.links[byEnd].next
		if q.lastPass() == r.pass {
			o.done = append(o.done, q)
			n := int(r.pass - q.joined + 1)
			r.leave(q, q.at(r.pass))
			q.length += n
			r.finish(q)
		}
		q = next
	}
	r.tokens += r.steady
	for _, q := range o.fresh {
		if q.length++; q.length == q.end {
			r.finish(q)
		} else {
			r.join(q)
		}
	}
	return length
}

// finish gives everything back, the last block first, so that it is the first to be evicted.
func (r *rank) finish(q *request) {
	r.release(q)
	r.running.remove(q, inOrder)
	r.count--
}

func (r *rank) release(q *request) {
	for i := len(q.units) - 1; i >= 0; i-- {
		r.pool.Release(q.units[i])
	}
	q.units = q.units[:0]
	q.computed = 0
}

// preempt puts the request that was admitted last in front of the queue.
func (r *rank) preempt() *request {
	q := r.running.tail
	switch {
	case q == r.partial:
		r.partial = nil
	case q.steady:
		length := q.at(r.pass)
		r.leave(q, length)
		q.entry.Advance(int(r.pass-q.joined), q.next, r.ended)
		q.length = length
	}
	r.finish(q)
	r.waiting.pushFront(q, inOrder)
	r.queued++
	r.out.preempted = true
	return q
}
