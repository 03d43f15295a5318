package replay

import (
	"context"
	"sync"

	"mockbench/engine"
	"mockbench/engine/replay/fast"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/trace"
)

// short reports whether the fast path can do the run, as far as the workload does not matter.
func (o *Options) short() bool {
	return !o.General && o.Stop == nil && !o.disaggregated() && o.Concurrency == 0 && o.MaxTime < 0 &&
		o.Telemetry == nil && o.Observer == nil && o.EventLag == 0 && o.Workers.ranks() == 1 && fast.Supports(&o.Workers.Engine)
}

// suits reports whether a trace is one for the fast path.
func suits(t *trace.Trace) bool {
	if !t.List() || !t.Planned || t.BlockSize == 0 {
		return false
	}
	for i := range t.Sessions {
		if x := t.Sessions[i].Turns[0].Extra; x != nil && x.Tokens != nil {
			return false
		}
	}
	return true
}

// runShort does the run on the fast path. The error is fast.ErrBeyond or trace.ErrNoStream if that does not suffice.
func runShort(o *Options) (*Result, error) {
	seed := o.Seed
	if seed == 0 {
		seed = router.DefaultSeed
	}
	f := fast.Options{Engine: o.Workers.Engine, Workers: o.Workers.Workers, Router: o.Router, Seed: seed, Bounds: o.Bounds,
		Records: o.Records, Cores: o.Cores, Look: o.look()}
	var source fast.Feed
	if o.Stream != nil {
		f.TraceBlock, source = o.Stream.BlockSize(), streamFeed{o.Stream}
		defer o.Stream.Close()
	} else {
		f.TraceBlock, source = o.Trace.BlockSize, &feed{trace: o.Trace, order: byArrival(o.Trace, true)}
	}
	r, err := fast.Run(f, source)
	if err != nil {
		return nil, err
	}
	return &Result{Offline: r.Offline, Fleet: report.Fleet{DecodeGPUs: o.Workers.gpus(), DecodeSeconds: r.Seconds}, End: r.End,
		Interrupted: r.Cut, Unfinished: r.Unfinished, Passes: r.Passes}, nil
}

// look returns what looks at the lanes of a fast run now and then.
func (o *Options) look() func(lane int, p fast.Progress) bool {
	ctx := o.Context
	if ctx == nil {
		ctx = context.Background()
	}
	if o.Progress == nil {
		return func(int, fast.Progress) bool { return ctx.Err() == nil }
	}
	total := 0
	if o.Trace != nil {
		total = o.Trace.Requests()
	}
	var mu sync.Mutex
	lanes := map[int]fast.Progress{}
	return func(lane int, p fast.Progress) bool {
		mu.Lock()
		defer mu.Unlock()
		lanes[lane] = p
		sum := Progress{Now: p.Now, Total: total}
		for _, x := range lanes {
			sum.Arrived += x.Arrived
			sum.Ended += x.Ended
		}
		o.Progress(sum)
		return ctx.Err() == nil
	}
}

// streamFeed gives the fast path the requests of a file as they are read.
type streamFeed struct{ *trace.Stream }

func (f streamFeed) Next() (fast.Batch, error) {
	list, until, err := f.Stream.Next(feedBatch)
	return fast.Batch{Requests: list, Until: engine.Time(until)}, err
}

// feed gives the fast path the requests of a trace that was read as a whole.
type feed struct {
	trace   *trace.Trace
	order   []int32 // sessions by arrival
	buffers [2][]trace.Request
}

// feedBatch is how many requests a batch has, unless more arrive at the same time.
const feedBatch = 8192

func (f *feed) Next() (fast.Batch, error) {
	out := f.buffers[0][:0]
	for len(f.order) > 0 {
		s := &f.trace.Sessions[f.order[0]]
		if n := len(out); n >= feedBatch && out[n-1].Arrival != s.Arrival {
			break
		}
		out = append(out, trace.Request{Turn: s.Turns[0], Number: int(f.order[0]), Arrival: s.Arrival})
		f.order = f.order[1:]
	}
	f.buffers[0], f.buffers[1] = f.buffers[1], out
	b := fast.Batch{Requests: out, Until: fast.Forever}
	if len(f.order) > 0 {
		b.Until = engine.Time(f.trace.Sessions[f.order[0]].Arrival)
	}
	return b, nil
}
