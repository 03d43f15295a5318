package replay

import (
	"errors"

	"mockbench/engine"
	"mockbench/engine/replay/fast"
	"mockbench/engine/report"
	"mockbench/engine/trace"
)

// Run replays a workload. Errors are *engine.SettingError for wrong options and *StuckError for a run that cannot go on.
// The result of a run that was interrupted or got stuck covers what happened before.
func Run(o Options) (*Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Speedup == 0 {
		o.Speedup = 1
	}
	if o.Stream != nil && o.short() {
		r, err := runShort(&o)
		if !errors.Is(err, fast.ErrBeyond) && !errors.Is(err, trace.ErrNoStream) {
			return r, err
		}
		o.General = errors.Is(err, fast.ErrBeyond)
	}
	if err := o.load(); err != nil {
		return nil, err
	}
	if o.short() && suits(o.Trace) {
		if r, err := runShort(&o); !errors.Is(err, fast.ErrBeyond) {
			return r, err
		}
	}
	if o.apart() {
		r, err := runApart(&o)
		if err == nil {
			return r, nil
		}
		if _, stuck := err.(*StuckError); !stuck {
			return nil, err
		}
	}
	s, err := newSim(&o, 0, o.Workers.Workers)
	if err != nil {
		return nil, err
	}
	s.texts, s.source = newTexts(o.Trace, o.blockSize()), s.newSource()
	if o.Progress != nil || o.Context != nil || o.Stop != nil {
		s.watch = watcher(&o)
	}
	err = s.run()
	if err == nil && s.sampler != nil {
		err = s.sampler.finish()
	}
	return s.result(), err
}

// load reads the whole trace and prepares it.
func (o *Options) load() error {
	if o.Stream != nil {
		var err error
		if o.Trace, err = o.Stream.ReadAll(); err != nil {
			return err
		}
		o.Stream = nil
	}
	if o.Concurrency == 0 {
		if err := o.Trace.Align(o.Speedup); err != nil {
			return err
		}
	}
	if o.Trace.List() {
		o.Trace.Delta = false // there is nothing that a turn could follow on
	}
	return nil
}

// watcher returns what looks at a run now and then.
func watcher(o *Options) func(s *sim) bool {
	total := o.Trace.Requests()
	return func(s *sim) bool {
		if o.Progress != nil {
			o.Progress(Progress{Now: s.now, Arrived: s.collect.Arrived(), Ended: s.collect.Arrived() - s.flying, Total: total})
		}
		return o.goesOn(s)
	}
}

// goesOn reports whether nothing outside cuts a run.
func (o *Options) goesOn(s *sim) bool {
	return (o.Context == nil || o.Context.Err() == nil) && (o.Stop == nil || !o.Stop(s.collect))
}

// newSim returns a fleet at time 0 without a source of requests. Of an aggregated fleet it has so many workers from first
// on.
func newSim(o *Options, first, workers int) (*sim, error) {
	s := &sim{o: o, first: first, planner: trace.NewPlanner(), collect: report.NewOffline(report.OfflineOptions{Bounds: o.Bounds, Records: o.Records,
		Cut: o.MaxTime >= 0, Host: o.host()})}
	if o.Telemetry != nil {
		s.sampler = &sampler{Telemetry: *o.Telemetry, s: s}
	}
	if o.Trace.Delta {
		s.history.said = make([][]uint32, len(o.Trace.Sessions))
	}
	if !o.disaggregated() {
		p, err := s.newPool(&o.Workers, report.Aggregated, 0, first, workers)
		if err != nil {
			return nil, err
		}
		s.pools, s.flow = []*pool{p}, &aggregated{s: s, p: p}
		s.steps = []func() (bool, error){s.internal, s.completions, s.feedback, s.release, s.driveAll}
		return s, nil
	}
	p, err := s.newPool(&o.Prefill, report.Prefill, 0, 0, o.Prefill.Workers)
	if err != nil {
		return nil, err
	}
	d, err := s.newPool(&o.Decode, report.Decode, 1, 0, o.Decode.Workers)
	if err != nil {
		return nil, err
	}
	s.pools, s.flow = []*pool{p, d}, newDisaggregated(s, p, d)
	s.steps = []func() (bool, error){s.internal, s.completions, s.flow.settle, s.feedback, s.release, s.driveAll}
	return s, nil
}

// blockSize returns the block size of the engines.
func (o *Options) blockSize() int {
	if o.disaggregated() {
		return o.Prefill.Engine.BlockSize
	}
	return o.Workers.Engine.BlockSize
}

// host reports whether there is a host tier.
func (o *Options) host() bool {
	if o.disaggregated() {
		return o.Prefill.Engine.HostOffload != nil || o.Decode.Engine.HostOffload != nil
	}
	return o.Workers.Engine.HostOffload != nil
}

// newSource returns the arrivals of the trace.
func (s *sim) newSource() source {
	t := s.o.Trace
	if t.Graph != nil {
		return newPlays(t, min(s.o.Lanes, len(t.Graph.Plays)))
	}
	if t.List() && (s.o.Concurrency == 0 || t.BlockSize == 0) {
		return newList(t, byArrival(t, s.o.Concurrency == 0), s.o.Concurrency, 0, 1)
	}
	return newSessions(t, s.o.Concurrency)
}

// result collects the outcome.
func (s *sim) result() *Result {
	r := &Result{Offline: s.collect, End: s.now, Unfinished: s.flying, Passes: s.passes, Interrupted: s.cut}
	for _, q := range s.jobs.list {
		if q.kept {
			continue
		}
		if q.ended {
			s.keep(q)
		}
	}
	f := &r.Fleet
	if p, ok := s.source.(*plays); ok {
		f.Agentic = p.figures(s.o.Trace)
		if b := p.graph.Basis; b != "" {
			f.Extra = report.Fields{{Key: "weka_nested_timestamp_basis", Value: b}}
		}
	}
	for _, p := range s.pools {
		if p.stage == report.Prefill {
			f.PrefillSeconds, f.PrefillGPUs = p.seconds, p.gpus
		} else {
			f.DecodeSeconds, f.DecodeGPUs = p.seconds, p.gpus
		}
		if p.shared != nil {
			u := p.shared.Usage()
			f.SharedHosts = append(f.SharedHosts, report.SharedHost{Capacity: u.Capacity, Resident: u.Resident, Used: u.Resident + u.Pending})
		}
	}
	return r
}

// keep lets go of a job that nobody needs any more.
func (s *sim) keep(q *job) {
	s.collect.Keep(&q.entry)
	q.kept = true
	s.jobs.give(q)
}

// apart reports whether the workers of the fleet can be simulated one by one: what one does has no effect on another.
func (o *Options) apart() bool {
	h := o.Workers.Engine.HostOffload
	return !o.disaggregated() && o.Router == nil && o.Telemetry == nil && o.Observer == nil && o.Concurrency == 0 &&
		o.Trace.List() && o.Workers.Workers > 1 &&
		(h == nil || h.Scope != engine.ScopeShared)
}
