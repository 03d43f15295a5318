// Package uitest tests the screen as a whole: a fleet of workers that do the same thing in every run, and a driver that
// presses keys in the real program and reads an emulated terminal.
package uitest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/kv"
	"mockbench/ui"
)

// Clock is simulated time that only Advance moves.
type Clock struct {
	mu     sync.Mutex
	now    engine.Time
	paused bool
	speed  float64
}

// NewClock returns a clock at 0.
func NewClock() *Clock { return &Clock{speed: 1} }

// Advance moves the clock on by wall milliseconds, unless it is paused.
func (c *Clock) Advance(ms float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.paused {
		c.now += engine.Time(ms * c.speed)
	}
}

func (c *Clock) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// Now returns the simulated time.
func (c *Clock) Now() (t engine.Time) { c.set(func() { t = c.now }); return t }

// Pause stops the clock.
func (c *Clock) Pause() { c.set(func() { c.paused = true }) }

// Resume lets it go on.
func (c *Clock) Resume() { c.set(func() { c.paused = false }) }

// Paused reports whether it stands still.
func (c *Clock) Paused() (p bool) { c.set(func() { p = c.paused }); return p }

// Speed returns simulated seconds a wall second.
func (c *Clock) Speed() (s float64) { c.set(func() { s = c.speed }); return s }

// SetSpeed changes the speed.
func (c *Clock) SetSpeed(x float64) { c.set(func() { c.speed = x }) }

// Worker is a made-up worker: its pool, queues and passes look like those of a busy engine and depend on its seed and
// the number of passes alone. It is safe for concurrent use.
type Worker struct {
	name   string
	config engine.Config
	feed   *ui.Feed

	mu       sync.Mutex
	rng      *rand.Rand
	blocks   []engine.BlockState
	evicted  []int32
	requests []*request
	waiting  []*engine.Request
	made     int
	first    int // requests are numbered from there
	passes   uint64
	now      engine.Time
	load     engine.Load
	events   uint64
	stalls   []live.Stall
	slip     time.Duration
	steps    int
	record   engine.Pass
	tier     tier
	held     chan struct{} // restarts wait for it; nil: they do not

	cancelled []string // heads that CancelHead took out
}

type request struct {
	engine.Request
	computed, generated, cached int
	since                       engine.Time
}

// NewWorker returns a worker with a pool of that many blocks.
func NewWorker(name string, seed uint64, blocks int) *Worker {
	c := engine.DefaultConfig(engine.VLLM)
	c.NumGPUBlocks, c.EmitKVEvents = blocks, true
	w := &Worker{name: name, config: c, feed: ui.NewFeed(1), rng: rand.New(rand.NewPCG(seed, 77)),
		blocks: make([]engine.BlockState, blocks)}
	w.load.TotalBlocks, w.first = blocks, int(seed-1)*10000
	for i := 0; i < blocks; {
		state := []engine.BlockState{engine.BlockActive, engine.BlockCached, engine.BlockCached, engine.BlockShared,
			engine.BlockHost, engine.BlockFree}[w.rng.IntN(6)]
		for n := w.rng.IntN(40); n >= 0 && i < blocks; n-- {
			w.put(i, state)
			i++
		}
	}
	return w
}

// Source returns the worker with its feed.
func (w *Worker) Source() ui.Source { return ui.Source{Worker: w, Feed: w.feed} }

// Pass runs one pass of about ten milliseconds.
func (w *Worker) Pass() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass(8 + w.rng.Float64()*4)
}

func (w *Worker) pass(ms float64) {
	p := &w.record
	*p = engine.Pass{Number: w.passes, Start: w.now, Work: p.Work[:0], Admissions: p.Admissions[:0], Outputs: p.Outputs[:0],
		Budget: 8192, Effect: true}
	w.now += engine.Time(ms)
	p.RankEnd, p.End = w.now, w.now
	w.passes++
	w.arrive(p)
	left := 8192
	w.requests = slices.DeleteFunc(w.requests, func(r *request) bool { return w.run(p, r, &left) })
	if w.passes%53 == 0 && len(w.requests) > 0 {
		w.load.Preemptions++
		p.Preemptions = []engine.Preemption{{Request: &w.requests[len(w.requests)-1].Request}}
	}
	w.churn(p)
	p.Transfers = w.tier.pass(w, p)
	w.load.Running, w.load.Waiting = len(w.requests), len(w.waiting)
	p.Load = w.load
	w.feed.Pass(p)
}

// prompt is what every request asks: the screen looks at lengths only.
var prompt = make([]uint32, 9500)

func (w *Worker) arrive(p *engine.Pass) {
	if w.passes%7 == 1 {
		w.made++
		r := &engine.Request{Label: fmt.Sprintf("r%d", w.first+w.made), Key: w.made,
			Prompt: prompt[:500+w.rng.IntN(9000)], MaxOutput: 50 + w.rng.IntN(400), Arrival: p.Start}
		w.waiting = append(w.waiting, r)
		w.feed.Submitted(0, r, p.Start)
	}
	if len(w.waiting) > 0 && w.passes%9 != 0 {
		r := &request{Request: *w.waiting[0], since: w.now, cached: len(w.waiting[0].Prompt) / 64 / 2 * 64}
		w.waiting = w.waiting[1:]
		r.computed = r.cached
		w.requests = append(w.requests, r)
		p.Admissions = append(p.Admissions, engine.Admission{Request: &r.Request, Reused: r.cached, First: true})
	}
}

// run gives one request its part of a pass and reports whether it has finished.
func (w *Worker) run(p *engine.Pass, r *request, left *int) bool {
	if n := min(len(r.Prompt)-r.computed, *left); n > 0 {
		p.Work = append(p.Work, engine.Work{Request: &r.Request, Tokens: n, Prompt: n, Prefix: r.computed,
			Length: len(r.Prompt), Waited: r.computed == r.cached})
		r.computed += n
		*left -= n
		return false
	}
	if r.computed < len(r.Prompt) || *left == 0 {
		return false
	}
	p.Work = append(p.Work, engine.Work{Request: &r.Request, Tokens: 1, Length: len(r.Prompt) + r.generated})
	*left--
	r.generated++
	done := r.generated >= r.MaxOutput
	p.Outputs = append(p.Outputs, engine.Output{Request: &r.Request, Position: int32(r.generated - 1), HasToken: true, Completed: done})
	return done
}

// churn changes the states of some runs of blocks and tells of it in events.
func (w *Worker) churn(p *engine.Pass) {
	p.Events = kv.Events{}
	for range 2 {
		start, n := w.rng.IntN(len(w.blocks)), 1+w.rng.IntN(8)
		to := []engine.BlockState{engine.BlockActive, engine.BlockCached, engine.BlockShared, engine.BlockHost}[w.rng.IntN(4)]
		e := kv.Event{ID: w.events, Kind: kv.EventKind(w.rng.IntN(2)), HasParent: true, Parent: w.rng.Uint64(), Position: int32(n), Count: int32(n)}
		w.events++
		p.Events.List = append(p.Events.List, e)
		for i := start; i < min(start+n, len(w.blocks)); i++ {
			if w.blocks[i] == engine.BlockCached && len(w.evicted) < 256 {
				w.evicted = append(w.evicted, int32(i))
			}
			w.put(i, to)
		}
	}
	p.Events.Sequence = []uint64{w.rng.Uint64()}
	for range 16 {
		p.Events.Sequence = append(p.Events.Sequence, w.rng.Uint64())
	}
}

// put changes the state of a block.
func (w *Worker) put(i int, to engine.BlockState) {
	busy := func(s engine.BlockState) int {
		if s == engine.BlockActive || s == engine.BlockShared {
			return 1
		}
		return 0
	}
	w.load.ActiveBlocks += busy(to) - busy(w.blocks[i])
	w.blocks[i] = to
}

// Stall makes the worker report a rank that cannot make progress; nil ends it.
func (w *Worker) Stall(h *engine.Hint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalls = nil
	if h != nil {
		w.stalls = []live.Stall{{Worker: w.name, Hint: *h}}
	}
}

// Reject makes the worker report a request that it refuses for its size.
func (w *Worker) Reject(label string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &engine.Request{Label: label}
	w.feed.Pass(&engine.Pass{Start: w.now, RankEnd: w.now, End: w.now, Load: w.load,
		Outputs: []engine.Output{{Request: r, Completed: true, Rejected: true}}})
}

// Steps returns how often Step was called.
func (w *Worker) Steps() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps
}

// Name returns the worker's name.
func (w *Worker) Name() string { return w.name }

// Ranks returns 1.
func (w *Worker) Ranks() int { return 1 }

// Config returns the engine's settings.
func (w *Worker) Config() engine.Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.config
}

// Use makes the worker one of another engine.
func (w *Worker) Use(b engine.Backend) {
	w.config.Backend, w.config.BlockSize = b, 16
}

// Tree returns a made-up prefix tree, a different one after every pass.
func (w *Worker) Tree(_, limit int) (engine.PrefixTree, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rng := rand.New(rand.NewPCG(w.passes/16, 9))
	var branches []engine.Branch
	for i := range 60 {
		b := engine.Branch{Parent: rng.IntN(i+1) - 1, Blocks: 1 + rng.IntN(40), Requests: rng.IntN(4), Hash: rng.Uint64()}
		if rng.IntN(3) == 0 {
			b.Parent = -1
		}
		if b.Parent >= 0 {
			b.Requests = min(b.Requests, branches[b.Parent].Requests)
		}
		if i%9 == 8 {
			b.Hash = 0
		}
		branches = append(branches, b)
	}
	return engine.Widest(branches, limit), w.config.Backend != engine.TRTLLM, nil
}

// CancelHead ends what Stall began.
func (w *Worker) CancelHead(int) (label string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.stalls) == 0 {
		return "", false
	}
	label = w.stalls[0].Hint.Head.Label
	w.stalls, w.cancelled = nil, append(w.cancelled, label)
	return label, true
}

// Cancelled returns the heads that CancelHead took out.
func (w *Worker) Cancelled() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.cancelled)
}

// Step runs one pass.
func (w *Worker) Step() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
	w.pass(10)
}

// Stalled returns what Stall was given.
func (w *Worker) Stalled() []live.Stall {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.stalls)
}

// Slip returns 0.
func (w *Worker) Slip() time.Duration { return w.slip }

// InFlight returns the number of requests.
func (w *Worker) InFlight() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests) + len(w.waiting)
}

// Inspect copies the worker's state.
func (w *Worker) Inspect(_ int, s *engine.Snapshot) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Time, s.BlockSize, s.Queued, s.Load = w.now, w.config.BlockSize, len(w.waiting), w.load
	s.Blocks = append(s.Blocks[:0], w.blocks...)
	s.Counts = [engine.BlockHost + 1]int{}
	for _, b := range w.blocks {
		s.Counts[b]++
	}
	s.Evictions, w.evicted = append(s.Evictions[:0], w.evicted...), w.evicted[:0]
	s.Running, s.Waiting = s.Running[:0], s.Waiting[:0]
	for _, r := range w.requests {
		phase := engine.PhasePrefill
		if r.generated > 0 {
			phase = engine.PhaseDecode
		}
		s.Running = append(s.Running, engine.RequestState{Request: &r.Request, Phase: phase, Computed: r.computed + r.generated,
			Generated: r.generated, Cached: r.cached, Blocks: (r.computed + r.generated + 63) / 64, Since: r.since})
	}
	if w.config.Backend == engine.SGLang {
		s.Ratio = engine.TokenRatio{Now: 0.1 + 0.6*float64(w.passes%100)/100, Min: 0.098, Init: 0.7}
	}
	w.tier.inspect(w, s)
	for _, r := range w.waiting {
		s.Waiting = append(s.Waiting, engine.RequestState{Request: r, Phase: engine.PhaseWaiting, Since: r.Arrival})
	}
	return nil
}

// Block describes one block.
func (w *Worker) Block(_ int, n int32) (engine.BlockInfo, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := engine.BlockInfo{Block: n, State: w.blocks[n], Since: w.now - 1800, Hits: int(n) % 20}
	if b.State != engine.BlockFree {
		b.Hash, b.Parent, b.HasParent, b.Position = 0x9c1f22ab0d3e7711+uint64(n), 0x1234567890abcdef, n%7 != 0, int(n)%40
	}
	if b.State == engine.BlockActive && len(w.requests) > 0 {
		b.References, b.Requests = 1, []*engine.Request{&w.requests[0].Request}
	}
	return b, nil
}
