package vllm

import (
	"slices"

	"mockbench/engine"
)

// record is the record of the pass under way, with what is needed to take a request's part out again.
type record struct {
	engine.Pass
	opened uint64 // passes begun, the one under way included
	active bool   // between Plan and Commit

	batch    struct{ count, isl, prefix int } // what the prefill model is asked
	prefills engine.Moments                   // prompt lengths of requests that compute prompt tokens
	decodes  engine.Moments                   // lengths of requests that compute others
	gaps     bool                             // Work has entries without a request
}

// open begins a record.
func (r *record) open(rank int, start engine.Time) {
	p := &r.Pass
	events := p.Events
	events.Reset()
	*p = engine.Pass{
		Rank: rank, Number: r.opened, Start: start, ComputeStart: start, RankEnd: start, End: start,
		Work: p.Work[:0], Admissions: p.Admissions[:0], Preemptions: p.Preemptions[:0], Outputs: p.Outputs[:0],
		Events: events, Handoffs: p.Handoffs[:0], Transfers: p.Transfers[:0],
	}
	r.batch.count, r.batch.isl, r.batch.prefix = 0, 0, 0
	r.prefills, r.decodes = engine.Moments{}, engine.Moments{}
}

// close ends the record at the group's end.
func (r *record) close(end engine.Time) {
	r.End = end
	r.FPM.Milliseconds = float64(end - r.Start)
	r.active = false
}

// compact removes the entries of requests that were taken out.
func (r *record) compact() {
	if !r.gaps {
		return
	}
	kept := r.Work[:0]
	for _, w := range r.Work {
		if w.Request != nil {
			kept = append(kept, w)
		}
	}
	r.Work, r.gaps = kept, false
}

// drop takes the outputs and handoffs of one request out of the pass under way and reports whether there were any.
func (r *record) drop(id engine.ID) bool {
	if !r.active {
		return false
	}
	kept := r.Outputs[:0]
	for _, o := range r.Outputs {
		if o.Request.ID != id {
			kept = append(kept, o)
		}
	}
	dropped := len(kept) < len(r.Outputs)
	r.Outputs = kept
	r.Handoffs = slices.DeleteFunc(r.Handoffs, func(h engine.Handoff) bool { return h.Request.ID == id })
	return dropped
}

// begin opens the record of a pass of this rank.
func (s *Scheduler) begin(now engine.Time) {
	r := &s.record
	s.open(now)
	r.opened++
	r.active = true
	r.Budget, r.BudgetLeft = s.cfg.MaxNumBatchedTokens, s.cfg.MaxNumBatchedTokens
}

// open begins a record and sends events there.
func (s *Scheduler) open(now engine.Time) {
	s.record.open(s.rank, now)
	s.log.To = &s.record.Events
	if s.host != nil {
		s.host.keys = s.host.keys[:0]
	}
	s.pool.Now = float64(now)
}

// enter records the work of a request in this pass.
func (s *Scheduler) enter(q *sequence, w engine.Work) {
	r := &s.record
	q.pass, q.work, q.prefilling = r.opened, len(r.Work), w.Prompt > 0
	r.Work = append(r.Work, w)
	r.BudgetLeft -= uint64(w.Tokens)
	switch {
	case w.Prompt > 0:
		r.prefills.Add(q.prompt)
		r.FPM.PrefillTokens += w.Tokens
		r.FPM.PrefillKVTokens += w.Prefix
		s.addToBatch(w, 1)
	case q.length < q.end:
		r.decodes.Add(w.Length)
	}
}

// withdraw takes the work of a request out of this pass, if there is any.
func (s *Scheduler) withdraw(q *sequence) {
	r := &s.record
	if q.pass != r.opened {
		return
	}
	w := &r.Work[q.work]
	r.BudgetLeft += uint64(w.Tokens)
	switch {
	case w.Prompt > 0:
		r.prefills.Remove(q.prompt)
		r.FPM.PrefillTokens -= w.Tokens
		r.FPM.PrefillKVTokens -= w.Prefix
		s.addToBatch(*w, -1)
	case q.length < q.end:
		r.decodes.Remove(w.Length)
	}
	w.Request, r.gaps = nil, true
	q.pass = 0
}

// addToBatch counts prompt work for the prefill model, or takes it back.
func (s *Scheduler) addToBatch(w engine.Work, sign int) {
	if s.cfg.Role == engine.DecodeRole {
		return
	}
	b := &s.record.batch
	b.count += sign
	b.isl += sign * (w.Prefix + w.Prompt)
	b.prefix += sign * w.Prefix
}

// computesPrompt reports whether a request computes prompt tokens in this pass.
func (s *Scheduler) computesPrompt(q *sequence) bool {
	return q.prefilling && q.pass == s.record.opened
}

// summarise fills in what follows from the rest of the record.
func (s *Scheduler) summarise() {
	p, w := &s.record.Pass, &s.waiting
	f := &p.FPM
	prefills, decodes := &s.record.prefills, &s.record.decodes
	f.PrefillRequests, f.PrefillLengthVar = prefills.N, prefills.Variance()
	f.DecodeRequests, f.DecodeKVTokens, f.DecodeKVVar = decodes.N, decodes.Sum, decodes.Variance()
	fresh, queued := w.prefills, w.decodes
	queued.Merge(s.handoffs.arriving)
	if s.host != nil {
		fresh.Merge(s.host.deferred.prefills)
		queued.Merge(s.host.deferred.decodes)
	}
	f.QueuedPrefills, f.QueuedPrefillTokens, f.QueuedPrefillVar = fresh.N, fresh.Sum, fresh.Variance()
	f.QueuedDecodes, f.QueuedDecodeKVTokens, f.QueuedDecodeKVVar = queued.N, queued.Sum, queued.Variance()
	p.Effect = len(p.Work)+len(p.Admissions)+len(p.Preemptions)+len(p.Outputs)+len(p.Events.List)+len(p.Handoffs)+len(p.Transfers) > 0
	if !p.Effect {
		s.explain()
	}
}
