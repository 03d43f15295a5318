package replay

import (
	"sync"
	"sync/atomic"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/spawn"
)

// runApart simulates every worker by itself, on as many goroutines as asked for, and joins the outcomes in the order of
// the workers: the result does not depend on the number of goroutines. A *StuckError means that the fleet has to be
// simulated as a whole to know when it is stuck.
func runApart(o *Options) (*Result, error) {
	n := o.Workers.Workers
	order, texts := byArrival(o.Trace, true), newTexts(o.Trace, o.Workers.Engine.BlockSize)
	results, errs := make([]*Result, n), make([]error, n)
	var next, failed atomic.Int64
	var group sync.WaitGroup
	look := watchApart(o)
	for range min(max(o.Cores, 1), n) {
		group.Add(1)
		spawn.Go("replay", func() {
			defer group.Done()
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == 0; i = int(next.Add(1)) - 1 {
				s, err := newSim(o, i, 1)
				if err == nil {
					s.texts, s.source, s.watch = texts, newList(o.Trace, order, 0, i, n), look
					err = s.run()
				}
				if errs[i] = err; err != nil {
					failed.Add(1)
					return
				}
				results[i] = s.result()
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return join(results), nil
}

// watchApart returns what looks at all workers now and then.
func watchApart(o *Options) func(s *sim) bool {
	if o.Progress == nil && o.Context == nil && o.Stop == nil {
		return nil
	}
	var mu sync.Mutex
	seen := map[*sim]Progress{}
	total := o.Trace.Requests()
	return func(s *sim) bool {
		if o.Progress != nil {
			mu.Lock()
			seen[s] = Progress{Arrived: s.collect.Arrived(), Ended: s.collect.Arrived() - s.flying}
			sum := Progress{Now: s.now, Total: total}
			for _, p := range seen {
				sum.Arrived += p.Arrived
				sum.Ended += p.Ended
			}
			o.Progress(sum)
			mu.Unlock()
		}
		return o.goesOn(s)
	}
}

// join adds up the results of workers that were simulated apart.
func join(results []*Result) *Result {
	all := &Result{Fleet: results[0].Fleet}
	for i, r := range results {
		if i == 0 {
			all.Offline = r.Offline
		} else {
			all.Offline.Merge(r.Offline)
		}
		all.End = max(all.End, r.End)
		all.Unfinished += r.Unfinished
		all.Passes += r.Passes
		all.Interrupted = all.Interrupted || r.Interrupted
	}
	all.Fleet = report.Fleet{DecodeGPUs: results[0].Fleet.DecodeGPUs, DecodeSeconds: workerSeconds(len(results), all.End)}
	return all
}

func workerSeconds(workers int, end engine.Time) float64 {
	return float64(workers) * (float64(end) / 1000)
}
