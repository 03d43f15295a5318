// Package router places requests on workers: by cost, which weighs what a rank has cached of the prompt against what
// it is busy with, or by one of the simpler policies.
//
// A [Selector] is the cost model alone, a function of what is known of each rank. A [Router] knows it by itself: it
// keeps a prefix index and its own book of active requests, both fed by the pass records of the workers.
package router

import (
	"fmt"
	"slices"
	"sync"

	"mockbench/engine"
	"mockbench/kv"
	"mockbench/kv/prefixindex"
)

// DefaultSeed is the seed of the reference's reproducible mode.
const DefaultSeed = 0xd1a05eed

// Options configure a Router.
type Options struct {
	Policy    Policy
	Workers   int
	Ranks     int    // data-parallel ranks of each worker; 0 is 1
	BlockSize int    // tokens
	Model     Model  // cost weights; the zero value is DefaultModel
	Seed      uint64 // of tie-breaks and draws; 0 is DefaultSeed
}

// Router places requests. It is safe for concurrent use.
type Router struct {
	mu       sync.Mutex
	o        Options
	selector *Selector
	random   rng // of the policies without cost
	index    *prefixindex.Index
	books    []book // by rank of the fleet: worker * ranks + rank
	closed   []bool // workers that take nothing more
	counters []Counters
	requests map[string]*active // by label

	nextWorker int   // round robin
	nextRank   []int // round robin within each worker

	placed  uint64
	recent  [recentDecisions]Decision // ring
	ranks   []Rank                    // scratch
	loads   []Load                    // scratch
	matches []prefixindex.Match       // scratch
}

// recentDecisions is how many decisions are kept for the screen.
const recentDecisions = 64

// New returns a router that knows of no cached blocks yet. The error is a *engine.SettingError.
func New(o Options) (*Router, error) {
	if o.Ranks == 0 {
		o.Ranks = 1
	}
	if o.Seed == 0 {
		o.Seed = DefaultSeed
	}
	if o.Model == (Model{}) {
		o.Model = DefaultModel()
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	n := o.Workers * o.Ranks
	r := &Router{o: o, selector: NewSelector(o.Model, o.BlockSize, o.Seed), random: rng(o.Seed),
		index: prefixindex.New(n), books: make([]book, n), closed: make([]bool, o.Workers),
		counters: make([]Counters, o.Workers), requests: map[string]*active{}, nextRank: make([]int, o.Workers)}
	for i := range r.books {
		r.books[i].blocks = map[uint64]int32{}
	}
	return r, nil
}

func (o Options) validate() error {
	if !slices.Contains(Policies(), o.Policy) {
		return &engine.SettingError{Setting: "router.policy", Kind: engine.KindRange, Given: fmt.Sprintf("%q", o.Policy),
			Allowed: fmt.Sprintf("must be one of %v", Policies())}
	}
	for _, s := range []struct {
		name  string
		value int
	}{{"router.workers", o.Workers}, {"router.ranks", o.Ranks}, {"router.block_size", o.BlockSize}} {
		if s.value < 1 {
			return &engine.SettingError{Setting: s.name, Kind: engine.KindRange, Given: fmt.Sprint(s.value), Allowed: "must be positive"}
		}
	}
	return o.Model.Validate()
}

// Request is a request to be placed.
type Request struct {
	Label     string // must be that of the engine's request: records are told apart by it
	Prompt    []uint32
	MaxOutput int
	Limits    Constraints
}

// Decision is where a request was placed and why.
type Decision struct {
	Number       uint64 // of the decision, from 1
	Label        string
	Policy       Policy
	Worker, Rank int
	PromptTokens int
	PromptBlocks int
	Overlap      int // blocks of the prompt the chosen rank holds
	BestOverlap  int // the most that any candidate holds
	Candidates   []Candidate
	Choice       int // index in Candidates
	Why          string
}

// Place chooses a rank and books the request there until its end is seen. It returns ErrNoWorker if no worker is open.
func (r *Router) Place(q Request) (Decision, error) {
	_, sequence := kv.AppendHashes(nil, nil, q.Prompt, r.o.BlockSize)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.survey(sequence)
	candidates, choice, err := r.selector.Select(len(q.Prompt), r.ranks, q.Limits, make([]Candidate, 0, len(r.ranks)))
	if err != nil {
		return Decision{}, err
	}
	r.placed++
	d := Decision{Number: r.placed, Label: q.Label, Policy: r.o.Policy, PromptTokens: len(q.Prompt),
		PromptBlocks: (len(q.Prompt) + r.o.BlockSize - 1) / r.o.BlockSize, Candidates: candidates}
	d.Choice, d.Why = r.choose(candidates, choice)
	chosen := candidates[d.Choice]
	d.Worker, d.Rank, d.Overlap = chosen.Worker, chosen.Rank, chosen.OverlapBlocks
	for _, c := range candidates {
		d.BestOverlap = max(d.BestOverlap, c.OverlapBlocks)
	}
	r.book(d, chosen, sequence)
	r.recent[r.placed%recentDecisions] = d
	return d, nil
}

// survey collects what is known of the ranks of open workers.
func (r *Router) survey(sequence []uint64) {
	r.matches = r.index.Match(sequence, r.matches)
	r.ranks, r.loads = r.ranks[:0], slices.Grow(r.loads[:0], len(r.books))
	for i := range r.books {
		worker := i / r.o.Ranks
		if r.closed[worker] {
			continue
		}
		r.loads = append(r.loads, r.books[i].load(sequence))
		r.ranks = append(r.ranks, Rank{Worker: worker, Rank: i % r.o.Ranks, Device: r.matches[i].Device,
			Host: r.matches[i].Host, Load: &r.loads[len(r.loads)-1]})
	}
}

// book notes that a request is on its way to the chosen rank.
func (r *Router) book(d Decision, c Candidate, sequence []uint64) {
	a := &active{index: c.Worker*r.o.Ranks + c.Rank, sequence: sequence, prompt: d.PromptTokens,
		predicted: min(c.RawTokens, d.PromptTokens)}
	if r.o.Model.TrackPrefill {
		a.prefill = max(d.PromptTokens-c.CachedTokens, 0)
	}
	r.free(d.Label) // a label used twice stands for the later request
	r.requests[d.Label] = a
	r.books[a.index].add(a)
	r.counters[c.Worker].Placed++
}

// Free takes a request off the books: it ended, or never reached its worker. Unknown labels are ignored.
func (r *Router) Free(label string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free(label)
}

func (r *Router) free(label string) {
	if a := r.requests[label]; a != nil {
		r.books[a.index].remove(a)
		delete(r.requests, label)
	}
}

// SetOpen includes a worker in the choice or excludes it. What it holds and does stays known.
func (r *Router) SetOpen(worker int, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed[worker] = !open
}

// Forget excludes a worker for good measure: its cache is gone and its requests have ended.
func (r *Router) Forget(worker int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed[worker] = true
	for rank := range r.o.Ranks {
		r.index.Remove(worker*r.o.Ranks + rank)
	}
	for label, a := range r.requests {
		if a.index/r.o.Ranks == worker {
			r.free(label)
		}
	}
}

// SetPolicy changes how the next requests are placed. The error is a *engine.SettingError.
func (r *Router) SetPolicy(p Policy) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.o
	o.Policy = p
	if err := o.validate(); err != nil {
		return err
	}
	r.o = o
	return nil
}

// SetModel changes the cost weights of the next placements. The error is a *engine.SettingError.
func (r *Router) SetModel(m Model) error {
	if err := m.Validate(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.o.Model, r.selector.Model = m, m
	return nil
}

// SetBlockSize makes the router count in blocks of another size. What it knew of caches is forgotten.
func (r *Router) SetBlockSize(tokens int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if tokens < 1 || tokens == r.o.BlockSize {
		return
	}
	r.o.BlockSize, r.selector.BlockSize = tokens, tokens
	r.index = prefixindex.New(len(r.books))
}

// Options returns the present options, defaults filled in.
func (r *Router) Options() Options {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.o
}
