package sglang

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"mockbench/engine"
	"mockbench/engine/spec"
	"mockbench/engine/timing"
	"mockbench/kv"
	"mockbench/kv/radix"
)

// rig is one rank under random operations, with the index that its KV events add up to.
type rig struct {
	t        *rapid.T
	s        *Scheduler
	index    map[uint64]bool
	next     uint64 // event id
	now      engine.Time
	alive    map[engine.ID]*engine.Request
	produced map[engine.ID]int
	requests uint64
}

func newRig(t *rapid.T) *rig {
	cfg := engine.DefaultConfig(engine.SGLang)
	cfg.BlockSize = rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "page")
	cfg.NumGPUBlocks = rapid.IntRange(8, 40).Draw(t, "pool")
	cfg.MaxNumSeqs = uint64(rapid.IntRange(1, 6).Draw(t, "seqs"))
	cfg.SGLang.ChunkedPrefillSize = cfg.BlockSize * rapid.IntRange(2, 12).Draw(t, "chunk")
	cfg.SGLang.ScheduleConservativeness = rapid.SampledFrom([]float64{0, 0.2, 1}).Draw(t, "conservativeness")
	cfg.SGLang.ClipMaxNewTokens = rapid.IntRange(0, 8).Draw(t, "clip")
	cfg.SGLang.SchedulePolicy = rapid.SampledFrom([]string{"fifo", "lpm"}).Draw(t, "policy")
	cfg.EmitKVEvents = true
	cfg.EnablePrefixCaching = rapid.SampledFrom([]bool{true, true, false}).Draw(t, "caching")
	var sampler *spec.Sampler
	if rapid.Bool().Draw(t, "drafts") {
		cfg.Nextn, cfg.NextnAcceptRates = 2, "0.6,0.5"
		sampler = spec.NewSampler([]float64{0.6, 0.5}, 1)
	}
	model, err := timing.NewModel(engine.TimingConfig{Type: "fixed", PrefillMS: 3, DecodeMS: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(cfg, 0, 1, timing.NewTimer(model, cfg), sampler)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, s: s, index: map[uint64]bool{}, alive: map[engine.ID]*engine.Request{}, produced: map[engine.ID]int{}}
}

// submit adds a request that fits the pool, with a prompt out of few tokens so that prefixes are shared.
func (r *rig) submit() {
	r.requests++
	q := &engine.Request{MaxOutput: rapid.IntRange(0, 10).Draw(r.t, "output")}
	binary.BigEndian.PutUint64(q.ID[8:], r.requests)
	room := r.s.tokensOf(r.s.pool.Total()) - q.MaxOutput
	q.Prompt = rapid.SliceOfN(rapid.Uint32Range(1, 2), 1, max(1, room)).Draw(r.t, "prompt")
	if err := r.s.Submit(q, r.now); err != nil {
		r.t.Fatal(err)
	}
	if err := r.s.Submit(q, r.now); err == nil {
		r.t.Fatal("the same request was taken twice")
	}
	r.alive[q.ID] = q
}

func (r *rig) cancel(discard bool) {
	for n := uint64(1); n <= r.requests; n++ {
		var id engine.ID
		binary.BigEndian.PutUint64(id[8:], n)
		if r.alive[id] == nil {
			continue
		}
		result := r.s.Cancel(id, r.now, discard)
		if result.Retired != (result.Applied || result.Suppressed) {
			r.t.Fatalf("cancel: got %+v", result)
		}
		if result.Events != nil {
			r.apply(result.Events)
		}
		if result.Applied || result.Suppressed {
			delete(r.alive, id)
		}
		return
	}
}

// pass runs a pass, perhaps with a cancellation in its middle.
func (r *rig) pass() {
	if !r.s.Ready() {
		return
	}
	p := r.s.Plan(r.now, 0)
	if p.RankEnd < r.now {
		r.t.Fatalf("the pass ends at %v before its start %v", p.RankEnd, r.now)
	}
	if rapid.IntRange(0, 5).Draw(r.t, "cancel in pass") == 0 {
		r.cancel(true)
	}
	p = r.s.Commit(p.RankEnd)
	r.s.EndRound(r.s.Round())
	r.now = p.End
	r.apply(&p.Events)
	for _, o := range p.Outputs {
		q := r.alive[o.Request.ID]
		if q == nil {
			r.t.Fatalf("an output of request %x, which is over", o.Request.ID[15])
		}
		if o.HasToken {
			if int(o.Position) != r.produced[q.ID] || o.Token != kv.SyntheticToken(q.ID, int(o.Position)) {
				r.t.Fatalf("request %x: token %d at position %d of %d", q.ID[15], o.Token, o.Position, r.produced[q.ID])
			}
			r.produced[q.ID]++
		}
		if o.Completed {
			if r.produced[q.ID] != q.MaxOutput {
				r.t.Fatalf("request %x ended after %d of %d tokens", q.ID[15], r.produced[q.ID], q.MaxOutput)
			}
			delete(r.alive, q.ID)
		}
	}
}

// apply adds KV events to the index.
func (r *rig) apply(e *kv.Events) {
	for _, ev := range e.List {
		if ev.ID != r.next {
			r.t.Fatalf("event %d, want %d", ev.ID, r.next)
		}
		r.next++
		if ev.HasParent && !r.index[ev.Parent] {
			r.t.Fatalf("event %d hangs below a block that is not stored", ev.ID)
		}
		blocks, _ := e.Blocks(ev)
		for _, h := range blocks {
			r.index[h] = ev.Kind == kv.Stored
		}
	}
}

// check holds the invariants of a rank against each other.
func (r *rig) check() {
	s := r.s
	owner := map[int32]string{}
	own := func(page int32, who string) {
		if before, taken := owner[page]; taken {
			r.t.Fatalf("page %d belongs to %s and %s", page, before, who)
		}
		owner[page] = who
	}
	announced := map[uint64]bool{}
	note := func(page int32) {
		if s.pages.announced[page] {
			announced[s.pages.hash[page]] = true
		}
	}
	locks := map[*radix.Node]int{}
	s.pool.Walk(func(n *radix.Node, _ int) {
		for _, p := range n.Pages() {
			own(p, "the tree")
			note(p)
		}
	})
	for _, q := range s.sequences {
		for _, p := range q.pages[q.cached/s.page:] {
			own(p, q.req.Label+" privately")
			note(p)
		}
		for n := q.last; n != s.pool.Root(); n = n.Parent() {
			locks[n]++
		}
		if len(q.pages) != s.pagesFor(q.materialised) || q.cached > q.materialised {
			r.t.Fatalf("%d pages for %d tokens, %d cached", len(q.pages), q.materialised, q.cached)
		}
	}
	if len(owner)+s.pool.Available() != s.pool.Total() {
		r.t.Fatalf("%d owned and %d free pages of %d", len(owner), s.pool.Available(), s.pool.Total())
	}
	s.pool.Walk(func(n *radix.Node, _ int) {
		if n.Locks() != locks[n] {
			r.t.Fatalf("a node has %d locks, %d requests use it", n.Locks(), locks[n])
		}
	})
	if tree := s.Tree(1000); tree.Blocks != s.pool.Evictable()+s.pool.Protected() || len(tree.Nodes) != tree.All {
		r.t.Fatalf("the tree %+v has %d pages, %d are evictable and %d protected", tree, tree.Blocks, s.pool.Evictable(), s.pool.Protected())
	}
	for h, stored := range r.index {
		if stored != announced[h] {
			r.t.Fatalf("block %x: events say %v, the rank %v", h, stored, announced[h])
		}
	}
	for h := range announced {
		if !r.index[h] {
			r.t.Fatalf("block %x was never announced", h)
		}
	}
	if got := len(s.sequences); got != len(r.alive) {
		r.t.Fatalf("the rank owns %d requests, %d are alive", got, len(r.alive))
	}
	want := tally{}
	for _, q := range s.waiting.list {
		want.add(q)
	}
	if s.waiting.count != want {
		r.t.Fatalf("queue figures %+v, want %+v", s.waiting.count, want)
	}
}

// TestRandomOperations runs random submissions, cancellations and passes and checks after each that no page is owned
// twice, that KV events add up to the cache, that locks are those of the requests, and that outputs are complete.
func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t)
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(*rapid.T) { r.submit() },
			"cancel": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
					r.cancel(false)
				}
			},
			"pass":   func(*rapid.T) { r.pass() },
			"passes": func(*rapid.T) { r.pass(); r.pass(); r.pass() },
			"":       func(*rapid.T) { r.check() },
		})
	})
}
