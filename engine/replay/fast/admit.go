package fast

// admit takes requests from the head of the queue until one of them has to stay. Nothing is admitted in a pass that
// preempted.
func (r *rank) admit() error {
	o := &r.out
	for !o.preempted {
		q := r.waiting.head
		if q == nil || uint64(r.count) >= r.maxSeqs {
			return nil
		}
		if r.refuses(q) {
			r.unqueue(q)
			o.refused = append(o.refused, q)
			continue
		}
		cached, fits := r.examine(q)
		if !fits || o.budget == 0 && q.length > cached {
			return nil
		}
		before := o.budget
		r.unqueue(q)
		r.running.pushBack(q, inOrder)
		r.count++
		q.order, r.orders = r.orders, r.orders+1
		if !r.schedule(q, cached) {
			return ErrBeyond // others would have to be preempted, who have been served in this pass
		}
		q.ran = true
		o.admitted = append(o.admitted, admission{q, cached})
		if before == 0 {
			return nil
		}
	}
	return nil
}

func (r *rank) unqueue(q *request) {
	r.waiting.remove(q, inOrder)
	r.queued--
}

// refuses reports whether a request can never run.
func (r *rank) refuses(q *request) bool {
	return r.maxLen > 0 && q.prompt >= r.maxLen || !q.ran && r.blocks(q.length) > r.pool.Capacity()
}

// examine looks up how many tokens the head may reuse, and tests whether the rest of it fits. Its cached blocks are in
// r.hits afterwards.
func (r *rank) examine(q *request) (cached int, fits bool) {
	var referenced int
	r.hits, referenced = r.pool.Match(q.sequence, r.hits[:0])
	blocks := len(r.hits)
	if q.length < q.end {
		blocks = min(blocks, (q.length-1)/r.block)
	}
	need := r.blocks(q.length) - min(referenced, blocks)
	return blocks * r.block, need <= r.pool.Capacity()-r.pool.Active()
}

// schedule computes as many tokens of a request as the budget allows, and reports whether there was room for them. Its
// first cached tokens are in the units r.hits.
func (r *rank) schedule(q *request, cached int) bool {
	o := &r.out
	start := max(q.computed, cached)
	n := q.length - start
	if uint64(n) > o.budget {
		n = int(o.budget)
	}
	target := start + n
	var hits []int32
	if matched := cached / r.block; matched > len(q.units) {
		hits = r.hits[:matched]
	}
	units, ok := r.pool.Reserve(hits, r.blocks(target)-len(q.units)-len(hits), q.units)
	if !ok {
		return false
	}
	q.units = units
	r.removed()
	q.computed = target
	r.publish(q, start/r.block, target/r.block)
	o.budget -= uint64(n)
	prefix := min(start, q.prompt)
	if prompt := min(target, q.prompt) - prefix; prompt > 0 {
		o.requests++
		o.lengths += prefix + prompt
		o.prefixes += prefix
		o.prefilled += n
	}
	switch {
	case target < q.length:
		r.partial = q
	case q.length == q.end:
		o.quiet = append(o.quiet, q)
	default:
		o.fresh = append(o.fresh, q)
	}
	return true
}

// place gives a steady request n units more. It preempts until there is room, and reports whether the request is still
// there.
func (r *rank) place(q *request, n int) bool {
	for {
		units, ok := r.pool.Reserve(nil, n, q.units)
		if ok {
			q.units = units
			r.removed()
			return true
		}
		if r.preempt() == q {
			return false
		}
	}
}

// publish makes the blocks from..to-1 of a request findable.
func (r *rank) publish(q *request, from, to int) {
	for b := from; b < to; b++ {
		if b == len(q.sequence) {
			r.hasher.extend(q)
		}
		u := q.units[b]
		if r.pool.Cached(u) {
			continue
		}
		fresh := r.pool.Publish(u, q.sequence[b], 0, b)
		if r.changes != nil {
			r.changes.published(u, q, b, fresh)
		}
	}
}

// removed tells the router which blocks the pool forgot.
func (r *rank) removed() {
	units := r.pool.TakeRemovedUnits()
	if r.changes != nil {
		for _, u := range units {
			r.changes.removed(u, r.pool.Hash(u))
		}
	}
}
