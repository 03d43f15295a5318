package app

import (
	"cmp"
	"slices"

	"mockbench/engine"
	"mockbench/engine/router"
	"mockbench/engine/workload"
)

// placement is the routers of a built-in load, one a pool.
type placement struct {
	pools []poolRouter
}

type poolRouter struct {
	*router.Router
	first, workers int // numbers of the workers
}

// openPlacement makes the routers. Decode workers are chosen by load alone: what they hold of a prompt comes with its
// transfer.
func (p *program) openPlacement() (*placement, error) {
	out := &placement{}
	for _, pool := range p.s.Pools {
		model := p.s.Load.Router
		if pool.Role == engine.DecodeRole {
			model.OverlapCredit, model.TrackPrefill = 0, false
		}
		r, err := router.New(router.Options{Policy: p.s.Load.Routing, Workers: pool.Workers, Ranks: int(pool.Launch.DPSize),
			BlockSize: pool.Launch.Engine.BlockSize, Seed: p.s.Seed, Model: model})
		if err != nil {
			return nil, err
		}
		out.pools = append(out.pools, poolRouter{r, pool.First, pool.Workers})
	}
	return out, nil
}

// reader returns the reader that feeds the router of a worker.
func (p *placement) reader(worker int) engine.Reader {
	for _, pool := range p.pools {
		if worker < pool.first+pool.workers {
			return pool.Reader(worker - pool.first)
		}
	}
	return nil
}

// free takes a request off the books.
func (p *placement) free(q *workload.Request) {
	for _, pool := range p.pools {
		pool.Free(q.Label)
	}
}

// place places a request on a worker of a pool and returns the worker's number in the process.
func (pool *poolRouter) place(label string, prompt []uint32, maxOutput int) (worker, rank int, err error) {
	d, err := pool.Place(router.Request{Label: label, Prompt: prompt, MaxOutput: maxOutput})
	return pool.first + d.Worker, d.Rank, err
}

// Recent returns the latest decisions of all pools, for the screen. Workers have their numbers in the process.
func (p *placement) Recent(dst []router.Decision, n int) []router.Decision {
	begin := len(dst)
	for _, pool := range p.pools {
		at := len(dst)
		dst = pool.Recent(dst, n)
		if pool.first == 0 {
			continue
		}
		for i := range dst[at:] {
			d := &dst[at+i]
			d.Worker += pool.first
			d.Candidates = slices.Clone(d.Candidates)
			for c := range d.Candidates {
				d.Candidates[c].Worker += pool.first
			}
		}
	}
	if len(p.pools) > 1 {
		slices.SortStableFunc(dst[begin:], func(a, b router.Decision) int { return cmp.Compare(b.Number, a.Number) })
	}
	return dst[:min(len(dst), begin+n)]
}

// Counters returns what the routers know of each worker.
func (p *placement) Counters(dst []router.Counters) []router.Counters {
	dst = dst[:0]
	for _, pool := range p.pools {
		dst = append(dst, pool.Counters(nil)...)
	}
	return dst
}
