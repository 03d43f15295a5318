// Package fast replays requests that nobody follows against aggregated vLLM-style workers: the most common case of a
// replay, at a fraction of the cost of the general loop and with the same results, bit for bit.
//
// It is event-driven down to the token: a request that decodes is not touched but in passes in which it begins or fills
// a block, or ends (decode.go). The rest of a pass is that of engine/vllm (admit.go). [Supports] says for which settings
// there is such a short way; a run that turns out to need more all the same ends with [ErrBeyond] and has to be repeated
// by the general loop.
package fast

import (
	"math"
	"sync"
	"sync/atomic"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/spawn"
	"mockbench/engine/timing"
	"mockbench/engine/trace"
)

// Options describe a run.
type Options struct {
	Engine     engine.Config
	Workers    int
	Router     *router.Config // cost-based placement; nil: round robin
	Seed       uint64         // of tie-breaks
	TraceBlock int            // tokens an id of a prompt stands for
	Bounds     report.Bounds
	Records    bool
	Cores      int                             // goroutines, at least 1
	Look       func(lane int, p Progress) bool // called now and then; false cuts the run
}

// Progress is how far a lane is: a part of the fleet that does not depend on the rest.
type Progress struct {
	Now            engine.Time
	Arrived, Ended int
}

// Supports reports whether the engine is one that this package knows how to simulate.
func Supports(c *engine.Config) bool {
	return c.Backend == engine.VLLM && c.Role == engine.Aggregated && c.PreemptionMode == engine.LIFO && c.HostOffload == nil &&
		c.Nextn == 0 && c.EnablePrefixCaching && c.EnableChunkedPrefill && c.BlockSize > 1
}

// Feed is requests in the order of their arrival, in batches.
type Feed interface {
	// Next returns the next batch, which is valid until the call after the next. It is not called after the last one.
	Next() (Batch, error)
}

// Batch is requests that arrive one after the other, with all that arrive at the same time as any of them.
type Batch struct {
	Requests []trace.Request
	Until    engine.Time // when the next one arrives; Forever in the last batch
}

// Forever is later than everything.
var Forever = engine.Time(math.Inf(1))

// Result is the outcome of a run.
type Result struct {
	Offline    *report.Offline
	Seconds    float64     // of workers
	End        engine.Time // of the last event
	Cut        bool        // Look said so
	Unfinished int
	Passes     uint64
}

// Run replays the requests of a feed.
func Run(o Options, feed Feed) (*Result, error) {
	m, err := timing.NewModel(o.Engine.Timing)
	if err != nil {
		return nil, err
	}
	var lanes []*sim
	if o.Router != nil {
		lanes = []*sim{newSim(&o, m, 0, 0, o.Workers)}
	}
	for i := range o.Workers {
		if o.Router == nil {
			lanes = append(lanes, newSim(&o, m, i, i, 1))
		}
	}
	f := fleet{lanes: lanes, cores: min(max(o.Cores, 1), len(lanes))}
	if err := f.run(feed); err != nil {
		return nil, err
	}
	return f.result(&o), nil
}

// fleet is lanes that take requests in turn.
type fleet struct {
	lanes []*sim
	cores int
	next  int // lane of the next request
}

// reading is what a Feed returned.
type reading struct {
	Batch
	err error
}

// run feeds the lanes batch by batch. The next batch is read while they work on one, if there is more than one core.
func (f *fleet) run(feed Feed) error {
	read := func() (r reading) {
		r.Batch, r.err = feed.Next()
		return r
	}
	ahead := make(chan reading, 1)
	for b := read(); ; b = <-ahead {
		if b.err != nil {
			return b.err
		}
		last := b.Until == Forever
		if !last && f.cores > 1 {
			spawn.Go("replay", func() { ahead <- read() })
		}
		err := f.work(b.Batch)
		switch {
		case err == nil && !last && !f.cut():
		case !last && f.cores > 1:
			<-ahead // nobody reads after the run
			return err
		default:
			return err
		}
		if f.cores == 1 {
			ahead <- read()
		}
	}
}

func (f *fleet) cut() bool {
	for _, s := range f.lanes {
		if s.cut {
			return true
		}
	}
	return false
}

// work lets the lanes simulate a batch, and all that lies between it and the next one.
func (f *fleet) work(b Batch) error {
	n := len(f.lanes)
	errs := make([]error, n)
	f.each(n, func(i int) {
		errs[i] = f.lanes[i].run(arrivals{list: b.Requests, at: (i - f.next + n) % n, step: n}, b.Until)
	})
	f.next = (f.next + len(b.Requests)) % n
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls do for 0 to n-1, on as many goroutines as there are cores.
func (f *fleet) each(n int, do func(i int)) {
	if f.cores == 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range f.cores {
		group.Add(1)
		spawn.Go("replay", func() {
			defer group.Done()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}

// result joins the outcomes of the lanes in their order: it does not depend on the number of goroutines.
func (f *fleet) result(o *Options) *Result {
	r := &Result{}
	for i, s := range f.lanes {
		if i == 0 {
			r.Offline = s.collect
		} else {
			r.Offline.Merge(s.collect)
		}
		r.End = max(r.End, s.now)
		r.Unfinished += s.flying
		r.Passes += s.passes
		r.Cut = r.Cut || s.cut
	}
	r.Seconds = float64(o.Workers) * (float64(r.End) / 1000)
	if len(f.lanes) == 1 {
		r.Seconds = f.lanes[0].seconds
	}
	return r
}
