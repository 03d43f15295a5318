package uitest

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"mockbench/engine/router"
	"mockbench/engine/workload"
	"mockbench/ui"
	"mockbench/ui/knobs"
)

// Fleet is made-up workers under one clock.
type Fleet struct {
	Clock *Clock

	mu      sync.Mutex
	workers []*Worker

	Load   *workload.Load // that nobody runs
	Router *router.Router // that places nothing
	Limits *Limits
}

// Limits are SLO limits in memory.
type Limits struct {
	mu  sync.Mutex
	slo knobs.SLO
}

// SLO returns the limits.
func (l *Limits) SLO() knobs.SLO {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slo
}

// SetSLO changes them.
func (l *Limits) SetSLO(s knobs.SLO) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slo = s
	return s.Validate()
}

// NewFleet returns workers w0, w1 ... with pools of that many blocks.
func NewFleet(workers, blocks int) *Fleet {
	f := &Fleet{Clock: NewClock(), Limits: &Limits{slo: knobs.SLO{TTFT: 300, ITL: 25}}}
	var err error
	if f.Load, err = workload.New(workload.Demo(4)); err == nil {
		f.Router, err = router.New(router.Options{Policy: router.KV, Workers: max(workers, 1), BlockSize: 64})
	}
	if err != nil {
		panic(err) // the options are constant
	}
	for i := range workers {
		f.workers = append(f.workers, NewWorker(fmt.Sprintf("w%d", i), uint64(i+1), blocks))
	}
	return f
}

// Workers returns the workers there are now.
func (f *Fleet) Workers() []*Worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.workers)
}

// Set replaces the workers.
func (f *Fleet) Set(w ...*Worker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workers = slices.Clone(w)
}

// Run lets so many frames of a tenth of a second go by: ten passes of each worker. A paused fleet does nothing.
func (f *Fleet) Run(frames int) {
	for range frames {
		if f.Clock.Paused() {
			return
		}
		f.Clock.Advance(100)
		for _, w := range f.Workers() {
			for range 10 {
				w.Pass()
			}
		}
	}
}

// Options returns options of a screen on the fleet.
func (f *Fleet) Options() ui.Options {
	return ui.Options{Model: "llama-3.1-8b", Backend: "vllm", Clock: f.Clock, Log: &ui.Log{},
		Fleet: func() []ui.Source {
			var s []ui.Source
			for _, w := range f.Workers() {
				s = append(s, w.Source())
			}
			return s
		},
		Status:  func() ui.Status { return ui.Status{Planes: "file > tcp > zmq", Subscribers: 2, Published: 12345} },
		Window:  f.window,
		Routing: routing{f},
		Load:    f.Load,
		Router:  f.Router,
		Limits:  f.Limits,
	}
}

// Compared adds a comparison of two fleets, each of half the workers, to options.
func (f *Fleet) Compared(o ui.Options) ui.Options {
	policies := [2]router.Policy{router.KV, router.RoundRobin}
	o.Sides = func() (s [2]ui.Side) {
		f.mu.Lock()
		defer f.mu.Unlock()
		half := len(f.workers) / 2
		for i := range s {
			s[i] = ui.Side{Policy: policies[i], Window: f.window(), Completed: 1200 - 30*i, Preemptions: 4 + 9*i}
			s[i].Window.TTFT.P50 *= 1 + 0.3*float64(i)
			for w := range half {
				n := uint64(w)
				s[i].Counters = append(s[i].Counters, router.Counters{Placed: 900 + 37*n, Prompt: 1000 + 50*n*uint64(1-i),
					Reused: uint64(610-240*i) - 9*n})
			}
		}
		return s
	}
	o.SecondPolicy = func(p router.Policy) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		policies[1] = p
		return nil
	}
	return o
}

func (f *Fleet) window() ui.Window {
	drift := 1 + 0.05*math.Sin(float64(f.Clock.Now())/3000)
	figures := func(n int, p50, p90, p99, slo, within, width float64) ui.Figures {
		f := ui.Figures{Count: n, P50: p50 * drift, P90: p90 * drift, P99: p99 * drift, SLO: slo, Within: within, BinWidth: width}
		for i := range 50 {
			f.Bins = append(f.Bins, float64((i*37)%11)*float64(50-i)/5*(1+drift*float64(i%3)))
		}
		return f
	}
	return ui.Window{Seconds: 30, Requests: 381, Goodput: 0.931, TTFT: figures(381, 90, 210, 418, 300, 0.936, 10),
		ITL: figures(40210, 9.6, 14, 28, 25, 0.996, 0.8), E2E: figures(372, 2140, 3300, 4020, 0, 0, 100),
		Queue: figures(381, 4, 31, 120, 0, 0, 4)}
}

// routing is made-up placements.
type routing struct{ f *Fleet }

func (r routing) Recent(dst []router.Decision, n int) []router.Decision {
	workers := len(r.f.Workers())
	newest := 41000 + int(r.f.Clock.Now()/250)
	for i := range n {
		d := router.Decision{Number: uint64(newest - i), Label: fmt.Sprintf("r%d", newest-i), Policy: router.KV, Why: "overlap"}
		for w := range workers {
			overlap := ((newest-i)*13 + w*29) % 56
			d.Candidates = append(d.Candidates, router.Candidate{Worker: w, OverlapBlocks: overlap, Cost: 180 - 2.5*float64(overlap)})
			if d.Candidates[w].Cost < d.Candidates[d.Choice].Cost {
				d.Choice = w
			}
		}
		if workers > 0 {
			dst = append(dst, d)
		}
	}
	return dst
}

func (r routing) Counters(dst []router.Counters) []router.Counters {
	for i := range r.f.Workers() {
		n := uint64(i)
		dst = append(dst, router.Counters{Placed: 900 + 37*n, Prompt: 1000, Predicted: 640 - 9*n, Reused: 610 - 9*n, Active: 12 + i})
	}
	return dst
}
