package router

import (
	"mockbench/engine"
	"mockbench/kv"
)

// Counters are what the router knows of one worker, for people.
type Counters struct {
	Placed    uint64 // requests
	Admitted  uint64 // of those, requests whose first admission was seen; the token counts are theirs
	Prompt    uint64 // prompt tokens
	Predicted uint64 // prompt tokens the router expected to be reused
	Reused    uint64 // prompt tokens that were
	Errors    uint64 // KV events that did not fit what was known

	Active       int // requests
	ActiveBlocks int // distinct prompt blocks of active requests
	Prefill      int // prompt tokens still to compute, in the router's view
	Cached       int // blocks known to be in the device tier
	Host         int // blocks known to be in the host tier
}

// Counters returns the figures of each worker in dst, which is grown as needed.
func (r *Router) Counters(dst []Counters) []Counters {
	r.mu.Lock()
	defer r.mu.Unlock()
	dst = append(dst[:0], r.counters...)
	for i := range r.books {
		c, b := &dst[i/r.o.Ranks], &r.books[i]
		c.Active += b.requests
		c.ActiveBlocks += len(b.blocks)
		c.Prefill += b.prefill
		c.Cached += r.index.Held(i, kv.Device)
		c.Host += r.index.Held(i, kv.HostPinned)
	}
	return dst
}

// Recent appends the latest decisions to dst, newest first, at most n.
func (r *Router) Recent(dst []Decision, n int) []Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range min(uint64(n), r.placed, recentDecisions) {
		dst = append(dst, r.recent[(r.placed-i)%recentDecisions])
	}
	return dst
}

// Reader returns the reader that feeds the router with the records of one worker. It also takes word of cancelled
// requests.
func (r *Router) Reader(worker int) engine.Reader { return reader{r, worker} }

type reader struct {
	router *Router
	worker int
}

// Pass takes in KV events first, then what became of requests: that is the order in which they become visible.
func (d reader) Pass(p *engine.Pass) {
	if !matters(p) {
		return
	}
	r := d.router
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.index.Apply(d.worker*r.o.Ranks+p.Rank, &p.Events); err != nil {
		r.counters[d.worker].Errors++
	}
	for i := range p.Admissions {
		r.admitted(d.worker, &p.Admissions[i])
	}
	for i := range p.Outputs {
		o := &p.Outputs[i]
		if o.Completed {
			r.free(o.Request.Label)
		} else if o.Position == 0 {
			if a := r.requests[o.Request.Label]; a != nil {
				r.books[a.index].prefilled(a)
			}
		}
	}
}

// matters reports whether a record holds anything for the router; most passes are plain decodes.
func matters(p *engine.Pass) bool {
	if len(p.Events.List) > 0 || len(p.Admissions) > 0 {
		return true
	}
	for i := range p.Outputs {
		if o := &p.Outputs[i]; o.Completed || o.Position == 0 {
			return true
		}
	}
	return false
}

func (r *Router) admitted(worker int, m *engine.Admission) {
	a := r.requests[m.Request.Label]
	if a == nil || a.admitted || !m.First {
		return
	}
	a.admitted = true
	c := &r.counters[worker]
	c.Admitted++
	c.Prompt += uint64(a.prompt)
	c.Predicted += uint64(a.predicted)
	c.Reused += uint64(min(m.Reused, a.prompt))
}

// Submitted is of no interest: the request was booked when it was placed.
func (d reader) Submitted(int, *engine.Request, engine.Time) {}

// Cancelled takes a request off the books.
func (d reader) Cancelled(_ int, q *engine.Request, _ engine.Time) { d.router.Free(q.Label) }
