package replay

import (
	"container/heap"
	"fmt"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/kv/hostcache"
)

// pool is the workers of one stage.
type pool struct {
	stage   report.Stage
	first   int // number of the first worker
	at      int // its place among those of all pools, if they are observed
	slot    int // of its tickets in a job
	ranks   int
	workers []*worker
	placer  placer
	host    bool            // ranks have internal events
	config  engine.Config   // of a worker
	shared  *hostcache.Pool // host tier of all ranks, nil if there is none
	gpus    int
	seconds float64

	ready idle      // workers that may start a pass, by id
	stuck []*worker // workers that could not, at this instant
}

// worker is a group of ranks with the pass it is in.
type worker struct {
	pool    *pool
	id      int
	group   *engine.Group
	running bool
	end     engine.Time   // of the pass
	queued  bool          // in pool.ready
	mail    []delivery    // requests that came during the pass
	loads   []engine.Load // of its ranks, as last published; none without telemetry
	retries int           // passes without effect in a row that the engine asked to be tried again
	rounds  int           // of the latest countdown, -1 if the latest pass was none
	hint    engine.Hint   // of the latest pass without effect
}

// delivery is a request for a rank.
type delivery struct {
	rank int
	job  *job
}

func (s *sim) newPool(o *Pool, stage report.Stage, slot, first, workers int) (*pool, error) {
	p := &pool{stage: stage, first: first, slot: slot, ranks: o.ranks(), gpus: o.gpus(), host: o.Engine.HostOffload != nil}
	cfg := o.Engine
	cfg.EmitKVEvents = (s.o.Router != nil || s.o.Observer != nil) && stage != report.Decode
	cfg.EmitKVTokenIDs = false
	p.config = cfg
	if h := cfg.HostOffload; h != nil && h.Scope == engine.ScopeShared {
		if err := cfg.Validate(); err != nil {
			return nil, err
		}
		p.shared = backend.NewSharedHost(cfg, max(o.TensorParallel, 1))
	}
	for id := first; id < first+workers; id++ {
		w := &worker{pool: p, id: id, rounds: -1}
		p.workers = append(p.workers, w)
		if s.o.send != nil {
			continue
		}
		var err error
		if w.group, err = backend.NewSharingGroup(cfg, uint64(id), p.ranks, p.shared); err != nil {
			return nil, err
		}
		for rank := 0; s.sampler != nil && rank < p.ranks; rank++ {
			w.loads = append(w.loads, w.group.Rank(rank).Load())
		}
	}
	p.placer = s.newPlacer(p, cfg, workers)
	return p, nil
}

func (s *sim) newPlacer(p *pool, cfg engine.Config, workers int) placer {
	if s.o.Router == nil {
		return newTurns(workers, p.ranks, p.stage != report.Aggregated)
	}
	c := *s.o.Router
	switch p.stage {
	case report.Prefill:
		c = c.ForPrefill()
	case report.Decode:
		c = c.ForDecode()
	}
	seed := s.o.Seed
	if seed == 0 {
		seed = router.DefaultSeed
	}
	return router.NewDispatcher(router.DispatchOptions{Config: c, Workers: workers, Ranks: p.ranks, BlockSize: cfg.BlockSize, Seed: seed,
		Budget: cfg.MaxNumBatchedTokens, EventLag: s.o.EventLag})
}

// name returns what people call a rank of a worker.
func (w *worker) name(rank int) string {
	text := fmt.Sprintf("worker %d", w.id)
	switch w.pool.stage {
	case report.Prefill:
		text = "prefill " + text
	case report.Decode:
		text = "decode " + text
	}
	if w.pool.ranks > 1 {
		text += fmt.Sprintf(" rank %d", rank)
	}
	return text
}

// wake lets a worker look whether it can start a pass.
func (w *worker) wake() {
	if !w.running && !w.queued {
		w.queued = true
		heap.Push(&w.pool.ready, w)
	}
}

// idle is a heap of workers by id.
type idle []*worker

func (h idle) Len() int           { return len(h) }
func (h idle) Less(i, j int) bool { return h[i].id < h[j].id }
func (h idle) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *idle) Push(x any)        { *h = append(*h, x.(*worker)) }

func (h *idle) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	*h = (*h)[:last]
	return w
}

// passes is a heap of running workers by the end of their pass, then by stage and id.
type passes []*worker

func (h passes) Len() int { return len(h) }

func (h passes) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.end != b.end:
		return a.end < b.end
	case a.pool.stage != b.pool.stage:
		return a.pool.stage < b.pool.stage
	}
	return a.id < b.id
}

func (h passes) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *passes) Push(x any)   { *h = append(*h, x.(*worker)) }

func (h *passes) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	*h = (*h)[:last]
	return w
}

// maxRetries is how many passes in a row may have no effect while the engine says that another one may.
const maxRetries = 1024

// drive starts passes of idle workers, the one with the lowest number first, and reports whether any had an effect.
func (s *sim) drive(p *pool) (moved bool, err error) {
	for _, w := range p.stuck {
		w.wake()
	}
	p.stuck = p.stuck[:0]
	for len(p.ready) > 0 {
		w := heap.Pop(&p.ready).(*worker)
		w.queued = false
		if w.running || !w.group.Ready() {
			continue
		}
		effect, err := s.begin(w)
		if err != nil {
			return moved, err
		}
		moved = moved || effect
	}
	return moved, nil
}

// begin starts a pass of a worker and reports whether it had an effect.
func (s *sim) begin(w *worker) (effect bool, err error) {
	records, end := w.group.Begin(s.now)
	s.passes++
	effect = end > s.now
	for _, r := range records {
		effect = effect || r != nil && r.Effect
	}
	if effect {
		for _, r := range records {
			if r == nil {
				continue
			}
			for i := range r.Admissions {
				a := &r.Admissions[i]
				s.collect.Admit(&s.jobs.of(a.Request).entry, w.pool.stage, s.now, a)
			}
		}
	}
	w.running, w.end = true, end
	if end > s.now {
		w.retries, w.rounds = 0, -1
		heap.Push(&s.running, w)
		return true, nil
	}
	records = w.group.Complete()
	w.running = false
	for _, r := range records {
		effect = effect || !r.Idle && r.Effect
	}
	if effect {
		w.retries, w.rounds = 0, -1
		err = s.complete(w, records)
		w.wake()
		return true, err
	}
	if w.again(records) {
		w.wake()
	} else {
		w.pool.stuck = append(w.pool.stuck, w)
	}
	return false, nil
}

// again reports whether a pass without effect is worth being tried again at the same instant.
func (w *worker) again(records []*engine.Pass) bool {
	again := false
	for _, r := range records {
		if r.Idle {
			continue
		}
		switch r.Hint.Kind {
		case engine.HintRetry:
			w.retries++
			again = again || w.retries < maxRetries
		case engine.HintCountdown:
			again = again || w.rounds < 0 || r.Hint.Rounds < w.rounds
			w.rounds = r.Hint.Rounds
		default:
			w.hint = r.Hint
		}
	}
	if !again {
		w.retries, w.rounds = 0, -1
	}
	return again
}
