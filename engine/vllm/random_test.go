package vllm_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"mockbench/engine"
	"mockbench/engine/spec"
	"mockbench/engine/timing"
	"mockbench/engine/vllm"
	"mockbench/kv"
)

// randomConfig draws small, crowded ranks.
func randomConfig(t *rapid.T) engine.Config {
	cfg := engine.DefaultConfig(engine.VLLM)
	cfg.NumGPUBlocks = rapid.IntRange(1, 20).Draw(t, "blocks")
	cfg.BlockSize = rapid.IntRange(2, 5).Draw(t, "block size")
	cfg.MaxNumSeqs = rapid.Uint64Range(1, 6).Draw(t, "sequences")
	cfg.MaxNumBatchedTokens = rapid.SampledFrom([]uint64{1, 2, 3, 5, 8, 16, 40, engine.Unlimited}).Draw(t, "budget")
	cfg.EnablePrefixCaching = rapid.IntRange(0, 4).Draw(t, "caching") > 0
	cfg.EnableChunkedPrefill = rapid.IntRange(0, 3).Draw(t, "chunks") > 0
	cfg.EmitKVEvents = cfg.EnablePrefixCaching
	cfg.PreemptionMode = rapid.SampledFrom([]engine.PreemptionMode{engine.LIFO, engine.FIFO}).Draw(t, "preemption")
	cfg.Role = rapid.SampledFrom([]engine.Role{engine.Aggregated, engine.Aggregated, engine.PrefillRole, engine.DecodeRole}).Draw(t, "role")
	cfg.MaxModelLen = rapid.SampledFrom([]int{0, 0, 0, 9, 24}).Draw(t, "model length")
	cfg.PrefillScheduleInterval = rapid.SampledFrom([]int{1, 1, 3}).Draw(t, "interval")
	if rapid.IntRange(0, 2).Draw(t, "drafts") == 0 {
		cfg.Nextn, cfg.NextnAcceptRates = rapid.IntRange(1, 3).Draw(t, "drafts"), "0.7,0.6,1"
	}
	return cfg
}

func randomRequest(t *rapid.T, n int) *engine.Request {
	r := &engine.Request{ID: engine.ID{15: byte(n), 14: byte(n >> 8)}, MaxOutput: rapid.IntRange(0, 14).Draw(t, "output")}
	seed := rapid.Uint32Range(1, 3).Draw(t, "prompt")
	for i := range rapid.IntRange(0, 24).Draw(t, "length") {
		r.Prompt = append(r.Prompt, seed*1000+uint32(i))
	}
	if rapid.IntRange(0, 3).Draw(t, "planned") == 0 {
		for i := range rapid.IntRange(1, 8).Draw(t, "planned output") {
			r.Output = append(r.Output, seed*1000+uint32(len(r.Prompt)+i))
		}
	}
	return r
}

// pair is a scheduler and the naive one, fed with the same commands.
type pair struct {
	cfg       engine.Config
	real      *vllm.Scheduler
	naive     *naive
	now       engine.Time
	step      uint64
	submitted []*engine.Request
	index     map[uint64]bool // hashes in the pool, as events have it
}

func newPair(t *rapid.T) *pair {
	cfg := randomConfig(t)
	model, err := timing.NewModel(cfg.Timing)
	if err != nil {
		t.Fatal(err)
	}
	rates, err := cfg.AcceptRates()
	if err != nil {
		t.Fatal(err)
	}
	var sampler, other *spec.Sampler
	if rates != nil {
		sampler, other = spec.NewSampler(rates, 7), spec.NewSampler(rates, 7)
	}
	return &pair{cfg: cfg, index: map[uint64]bool{},
		real:  vllm.New(cfg, vllm.Options{Ranks: 2, Timing: model, Sampler: sampler}),
		naive: newNaive(cfg, 2, timing.NewTimer(model, cfg), other)}
}

// TestRandomOperations runs the scheduler and the naive one side by side.
func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		for range 60 {
			switch rapid.IntRange(0, 8).Draw(t, "action") {
			case 0, 1:
				p.submit(t)
			case 2:
				p.cancel(t)
			case 3:
				p.tune(t)
			default:
				p.pass(t)
			}
			if err := invariants(p.real, p.cfg); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func (p *pair) submit(t *rapid.T) {
	r := randomRequest(t, len(p.submitted)+1)
	p.submitted = append(p.submitted, r)
	if err := p.real.Submit(r, p.now); err != nil {
		t.Fatal(err)
	}
	p.naive.submit(r)
}

// tune changes settings between two passes.
func (p *pair) tune(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "tune") > 0 {
		return
	}
	next := randomConfig(t).Tuning()
	next.SpeedupRatio = rapid.SampledFrom([]float64{0, 0.5, 1, 3}).Draw(t, "speed")
	if err := p.real.Tune(next); err != nil {
		t.Fatal(err)
	}
	p.cfg = p.cfg.With(next)
	model, err := timing.NewModel(p.cfg.Timing)
	if err != nil {
		t.Fatal(err)
	}
	p.naive.cfg, p.naive.timer = p.cfg, timing.NewTimer(model, p.cfg)
}

// cancel cancels any request, owned or not, and returns its id.
func (p *pair) cancel(t *rapid.T) (id engine.ID, result engine.CancelResult) {
	if len(p.submitted) == 0 {
		return id, result
	}
	id = rapid.SampledFrom(p.submitted).Draw(t, "request").ID
	result = p.real.Cancel(id, p.now, true)
	if want := p.naive.cancel(id); result.Applied != want {
		t.Fatalf("cancelled %v, want %v", result.Applied, want)
	}
	return id, result
}

// pass runs one pass, sometimes with a cancellation in it.
func (p *pair) pass(t *rapid.T) {
	if !p.real.Ready() {
		return
	}
	want := p.naive.run(p.now, p.step)
	planned := p.real.Plan(p.now, p.step)
	comparePass(t, planned, want)
	if rapid.IntRange(0, 7).Draw(t, "cancel during the pass") == 0 {
		id, result := p.cancel(t)
		outputs := len(want.Outputs)
		want.Outputs = slices.DeleteFunc(want.Outputs, func(o engine.Output) bool { return o.Request.ID == id })
		if dropped := len(want.Outputs) < outputs; result.Suppressed != dropped {
			t.Fatalf("suppressed %v, want %v", result.Suppressed, dropped)
		}
	}
	p.now = planned.RankEnd
	done := p.real.Commit(p.now)
	want.Load = p.naive.load()
	if d := cmp.Diff(want.Outputs, done.Outputs, sameRequest, cmpopts.EquateEmpty()); d != "" || done.Load != want.Load {
		t.Fatalf("pass at %v: load %+v, want %+v, outputs (-want +got):\n%s", done.Start, done.Load, want.Load, d)
	}
	follow(t, p.index, done, p.real, p.cfg)
	p.step++
}

var sameRequest = cmp.Comparer(func(a, b *engine.Request) bool { return a == b })

func comparePass(t *rapid.T, p *engine.Pass, want naivePass) {
	f := p.FPM
	got := naivePass{Work: p.Work, Admissions: p.Admissions, Preemptions: p.Preemptions, Outputs: p.Outputs, Events: p.Events.List,
		Sequence: p.Events.Sequence, End: p.RankEnd, BudgetLeft: p.BudgetLeft, Drafts: p.Drafts,
		Queued: [4]int{f.QueuedPrefills, f.QueuedPrefillTokens, f.QueuedDecodes, f.QueuedDecodeKVTokens}}
	if d := cmp.Diff(want, got, sameRequest, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("pass at %v differs (-want +got):\n%s", p.Start, d)
	}
	effect := len(p.Work)+len(p.Admissions)+len(p.Preemptions)+len(p.Outputs)+len(p.Events.List) > 0
	if p.Effect != effect || !effect && p.Hint.Kind != engine.HintExhausted {
		t.Fatalf("pass at %v: effect %v, hint %+v", p.Start, p.Effect, p.Hint)
	}
}

// follow replays the events of a pass into an index and compares it with the contents of the pool.
func follow(t *rapid.T, index map[uint64]bool, p *engine.Pass, s *vllm.Scheduler, cfg engine.Config) {
	for _, e := range p.Events.List {
		hashes, _ := p.Events.Blocks(e)
		for _, h := range hashes {
			if index[h] == (e.Kind == kv.Stored) {
				t.Fatalf("event %d repeats itself for block %x", e.ID, h)
			}
			if e.Kind == kv.Stored {
				index[h] = true
			} else {
				delete(index, h)
			}
		}
	}
	held := map[uint64]bool{}
	for u := range int32(cfg.NumGPUBlocks) {
		if b := s.Block(u); b.Hash != 0 {
			held[b.Hash] = true
		}
	}
	if cfg.EmitKVEvents && !cmp.Equal(held, index) {
		t.Fatalf("the pool holds %v, events say %v", held, index)
	}
}

// invariants checks that blocks add up and that nobody owns a private block of somebody else.
func invariants(s *vllm.Scheduler, cfg engine.Config) error {
	var snapshot engine.Snapshot
	s.Inspect(&snapshot)
	c, l := snapshot.Counts, s.Load()
	active := c[engine.BlockActive] + c[engine.BlockShared]
	if active != l.ActiveBlocks || c[engine.BlockCached] != l.InactiveBlocks || active+c[engine.BlockCached]+c[engine.BlockFree] != cfg.NumGPUBlocks {
		return fmt.Errorf("blocks %v, load %+v", c, l)
	}
	owned := 0
	for u := range int32(cfg.NumGPUBlocks) {
		b := s.Block(u)
		owned += len(b.Requests)
		if len(b.Requests) != b.References || b.Hash == 0 && len(b.Requests) > 1 {
			return fmt.Errorf("block %+v has %d owners", b, len(b.Requests))
		}
	}
	for _, r := range snapshot.Running {
		owned -= r.Blocks
	}
	if err := treeInvariants(s, cfg); err != nil {
		return err
	}
	if owned != 0 {
		return fmt.Errorf("the owners of blocks are off by %d", owned)
	}
	if waiting := len(snapshot.Waiting); waiting != l.Waiting || slices.ContainsFunc(snapshot.Waiting, func(r engine.RequestState) bool { return r.Blocks > 0 }) {
		return fmt.Errorf("%d waiting, load %+v, rows %v", waiting, l, snapshot.Waiting)
	}
	return nil
}

// treeInvariants checks that the tree holds each hash of the pool once, below its parent if the pool has that.
func treeInvariants(s *vllm.Scheduler, cfg engine.Config) error {
	hashes := map[uint64]engine.BlockInfo{}
	for u := range int32(cfg.NumGPUBlocks) {
		if b := s.Block(u); b.Hash != 0 {
			hashes[b.Hash] = b
		}
	}
	tree := s.Tree(cfg.NumGPUBlocks)
	if tree.Blocks != len(hashes) || len(tree.Nodes) != tree.All {
		return fmt.Errorf("the tree %+v does not hold %d blocks", tree, len(hashes))
	}
	var path []engine.TreeNode
	for _, n := range tree.Nodes {
		path = append(path[:n.Depth], n)
		first := hashes[n.Hash]
		for range n.Blocks - 1 {
			first = hashes[first.Parent]
		}
		switch _, parent := hashes[first.Parent]; {
		case n.Depth == 0 && parent && first.HasParent:
			return fmt.Errorf("node %+v is at the top, its parent is in the pool", n)
		case n.Depth > 0 && path[n.Depth-1].Hash != first.Parent:
			return fmt.Errorf("node %+v is below %+v, its parent is %x", n, path[n.Depth-1], first.Parent)
		}
	}
	return nil
}
