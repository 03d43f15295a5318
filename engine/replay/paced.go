package replay

import (
	"fmt"
	"strconv"

	"mockbench/engine"
	"mockbench/engine/report"
)

// Paced is a replay on a clock and workers of somebody else: it says which requests are due and where they go, and takes
// the records of passes. It is not safe for concurrent use.
type Paced struct{ s *sim }

// Send hands a request to a rank. The request's label, not its id, says which one it is; its prompt is spelled out.
type Send func(worker, rank int, r *engine.Request) error

// NewPaced prepares a replay of an aggregated fleet. Errors are *engine.SettingError.
func NewPaced(o Options, send Send) (*Paced, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	unsupported := func(setting string) error {
		return &engine.SettingError{Setting: setting, Kind: engine.KindUnsupported, Allowed: "needs simulated time: replay_mode offline"}
	}
	switch h := o.Workers.Engine.HostOffload; {
	case o.disaggregated():
		return nil, unsupported("prefill_engine_args")
	case o.EventLag > 0:
		return nil, unsupported("kv_event_lag_ms")
	case o.Telemetry != nil:
		return nil, unsupported("telemetry")
	case o.Observer != nil:
		return nil, unsupported("record")
	case h != nil && h.Scope == engine.ScopeShared:
		return nil, unsupported("native_host_offload.scope")
	}
	if o.Speedup == 0 {
		o.Speedup = 1
	}
	if err := o.load(); err != nil {
		return nil, err
	}
	o.send = send
	s, err := newSim(&o, 0, o.Workers.Workers)
	if err != nil {
		return nil, err
	}
	s.texts, s.source = newTexts(o.Trace, o.blockSize()), s.newSource()
	return &Paced{s}, nil
}

// Engine returns the configuration of a worker.
func (p *Paced) Engine() engine.Config { return p.s.pools[0].config }

// Next returns the time of the next arrival, as far as it is known.
func (p *Paced) Next() (engine.Time, bool) { return p.s.source.next() }

// Total returns the number of requests, 0 if nobody knows yet.
func (p *Paced) Total() int { return p.s.o.Trace.Requests() }

// Arrived and InFlight count requests.
func (p *Paced) Arrived() int  { return p.s.collect.Arrived() }
func (p *Paced) InFlight() int { return p.s.flying }

// Done reports that nothing is in flight and nothing will come.
func (p *Paced) Done() bool { return p.s.flying == 0 && p.s.source.drained() }

// Release sends off what is due.
func (p *Paced) Release(now engine.Time) error {
	p.at(now)
	if _, err := p.s.feedback(); err != nil {
		return err
	}
	_, err := p.s.release()
	return err
}

// at moves the time on. A pass may be told a moment after something later was.
func (p *Paced) at(now engine.Time) {
	if now > p.s.now {
		p.s.advance(now)
	}
}

// Pass takes the record of a pass of a worker as it becomes visible. Outputs may make requests come that were not due.
func (p *Paced) Pass(worker int, r *engine.Pass, now engine.Time) error {
	s := p.s
	p.at(now)
	w := s.pools[0].workers[worker]
	for i := range r.Admissions {
		a := r.Admissions[i]
		q, err := p.job(a.Request)
		if err != nil {
			return err
		}
		s.collect.Admit(&q.entry, report.Aggregated, max(r.Start, q.entry.Arrival), &a)
	}
	if err := s.publish(w, r); err != nil {
		return err
	}
	for i := range r.Outputs {
		o := r.Outputs[i]
		q, err := p.job(o.Request)
		if err != nil {
			return err
		}
		o.Request = &q.request
		if err := s.flow.output(w, &o); err != nil {
			return err
		}
	}
	s.passes++
	return nil
}

// job returns the job of a request of a worker.
func (p *Paced) job(r *engine.Request) (*job, error) {
	key, err := strconv.Atoi(r.Label)
	if err != nil || key < 0 || key >= len(p.s.jobs.list) {
		return nil, fmt.Errorf("replay: a worker served request %q, which nobody sent", r.Label)
	}
	return p.s.jobs.list[key], nil
}

// Stuck returns the error of a fleet that cannot go on.
func (p *Paced) Stuck(worker string, h engine.Hint) *StuckError {
	if h.Head != nil {
		if q, err := p.job(h.Head); err == nil {
			head := *h.Head
			head.Label = p.s.name(q)
			h.Head = &head
		}
	}
	return &StuckError{Kind: NoEffect, At: p.s.now, Remaining: p.s.flying, Worker: worker, Hint: h}
}

// GoesOn reports whether nothing outside cuts the run.
func (p *Paced) GoesOn() bool { return p.s.o.goesOn(p.s) }

// Result returns the outcome so far. cut says that the run was ended from outside.
func (p *Paced) Result(cut bool) *Result {
	p.s.cut = cut
	return p.s.result()
}

// dispatch spells a request out and sends it.
func (s *sim) dispatch(worker, rank int, q *job) error {
	r := q.request
	r.Label = strconv.Itoa(r.Key)
	if r.Text != nil {
		r.Prompt = make([]uint32, r.Text.Len())
		for i := range r.Prompt {
			r.Prompt[i] = r.Text.At(i)
		}
		r.Text = nil
	}
	r.Output = append([]uint32(nil), r.Output...)
	if err := s.o.send(worker, rank, &r); err != nil {
		return fmt.Errorf("request %s: %w", s.name(q), err)
	}
	return nil
}
