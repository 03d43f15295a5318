package sglang

// The lease operations: how a sequence gets, keeps and gives back pages. Positions are tokens, amounts are pages.

// admit gives a sequence without lease the pages of its first end tokens, reusing a cached prefix of at most limit
// tokens. It returns the tokens reused, or false if there is no room.
func (s *Scheduler) admit(q *sequence, end, limit int) (reused int, ok bool) {
	prefix := 0
	if s.reuse {
		prefix = min(limit, end) / s.page
	}
	pages, node := s.pool.Match(s.hashesOf(q, prefix), q.pages[:0])
	s.pool.Lock(node)
	need := s.pagesFor(end) - len(pages)
	if !s.makeRoom(need) {
		s.pool.Unlock(node)
		q.pages = pages[:0]
		return 0, false
	}
	matched := len(pages)
	q.pages = s.pool.Take(need, pages)
	q.materialised, q.cached, q.last = end, s.tokensOf(matched), node
	s.announce(q, matched, end/s.page)
	return q.cached, true
}

// extend gives a sequence the pages up to end.
func (s *Scheduler) extend(q *sequence, end int) bool {
	need := s.pagesFor(end) - len(q.pages)
	if !s.makeRoom(need) {
		return false
	}
	q.pages = s.pool.Take(need, q.pages)
	from := q.materialised / s.page
	q.materialised = end
	s.announce(q, from, end/s.page)
	return true
}

// makeRoom evicts until n pages are free, or changes nothing if that cannot be.
func (s *Scheduler) makeRoom(n int) bool {
	if n > s.pool.Available()+s.pool.Evictable() {
		return false
	}
	s.evict(n - s.pool.Available())
	return true
}

// evict frees up to n cached pages.
func (s *Scheduler) evict(n int) {
	if n <= 0 {
		return
	}
	s.scraps = s.pool.Evict(n, s.scraps[:0])
	s.retract(s.scraps)
}

// discard gives pages back to the pool.
func (s *Scheduler) discard(pages []int32) {
	s.retract(pages)
	s.pool.Give(pages)
}

// cachePrefix hands the complete pages of a running sequence over to the tree.
func (s *Scheduler) cachePrefix(q *sequence) {
	n := q.materialised / s.page
	if !s.reuse || s.tokensOf(n) <= q.cached {
		return
	}
	s.insert(q, n, true)
}

// insert announces the pages from the cached prefix to page n and puts them into the tree. With keep the sequence goes
// on and locks the new end of its prefix.
func (s *Scheduler) insert(q *sequence, n int, keep bool) {
	from := q.cached / s.page
	s.announce(q, from, n)
	before := q.last
	node, losers := s.pool.Insert(before, s.hashesOf(q, n)[from:], q.pages[from:n], s.scraps[:0])
	s.scraps = losers
	if keep && node != before {
		s.pool.Lock(node)
	}
	if len(losers) > 0 {
		s.discard(losers)
	}
	if !keep || node != before {
		s.pool.Unlock(before)
	}
	q.cached, q.last = s.tokensOf(n), node
}

// finish ends a lease and leaves its complete pages in the tree.
func (s *Scheduler) finish(q *sequence) {
	n := min(q.length(), q.materialised) / s.page
	switch {
	case !s.reuse:
		s.discard(q.pages)
	case n == 0:
		s.discard(q.pages)
		s.pool.Unlock(q.last)
	default:
		s.discard(q.pages[n:])
		s.insert(q, n, false)
	}
	s.clear(q)
}

// release ends a lease and gives back all that is not in the tree yet.
func (s *Scheduler) release(q *sequence) {
	s.discard(q.pages[q.cached/s.page:])
	s.pool.Unlock(q.last)
	s.clear(q)
}

func (s *Scheduler) clear(q *sequence) {
	q.pages, q.materialised, q.cached, q.last = q.pages[:0], 0, 0, s.pool.Root()
}

// append adds a generated token that owns a KV slot. Its page, if it starts one, is free already.
func (s *Scheduler) append(q *sequence, token uint32) {
	if q.materialised%s.page == 0 {
		q.pages = s.pool.Take(1, q.pages)
	}
	q.materialised++
	s.generate(q, token)
}
