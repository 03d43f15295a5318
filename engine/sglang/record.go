package sglang

import (
	"mockbench/engine"
	"mockbench/kv"
)

// record collects what a pass, or a command between passes, has to tell.
type record struct {
	engine.Pass
	passes  uint64
	open    bool // a pass is under way
	closing bool // the pass is at its end
	events  kv.Log

	between kv.Events        // events of the last command between passes
	steps   []engine.Handoff // transfers that the last command let through
	tokens  []uint32         // scratch

	prefilled bool // the pass computed prefill tokens
	worked    bool // the pass ran a forward
	spared    bool // the pass was deferred and had nothing to decode
}

// begin opens the record of a pass.
func (r *record) begin(rank int, start engine.Time) {
	p := &r.Pass
	*p = engine.Pass{
		Rank: rank, Number: r.passes, Start: start, ComputeStart: start, RankEnd: start, End: start,
		Work: p.Work[:0], Admissions: p.Admissions[:0], Preemptions: p.Preemptions[:0], Outputs: p.Outputs[:0],
		Events: p.Events, Handoffs: p.Handoffs[:0],
	}
	r.passes++
	p.Events.Reset()
	r.events.To = &p.Events
	r.open = true
	r.prefilled, r.worked, r.spared = false, false, false
}

// end closes the record at the group's end.
func (r *record) end(end engine.Time) {
	r.End = end
	r.FPM.Milliseconds = float64(end - r.Start)
	r.open = false
}

// command makes room for what a command tells.
func (r *record) command() {
	r.steps = r.steps[:0]
	if !r.open {
		r.between.Reset()
		r.events.To = &r.between
	}
}

// result completes the answer to a command.
func (r *record) result(c engine.CancelResult) engine.CancelResult {
	c.Steps = r.steps
	if !r.open && len(r.between.List) > 0 {
		c.Events = &r.between
	}
	return c
}

// drop takes the outputs and transfers of one request out of the running pass and reports whether there were outputs.
func (r *record) drop(id engine.ID) bool {
	if !r.open {
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
	steps := r.Handoffs[:0]
	for _, h := range r.Handoffs {
		if h.Request.ID != id {
			steps = append(steps, h)
		}
	}
	r.Handoffs = steps
	return dropped
}
