package vllm_test

import (
	"math"
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/engine/goldentest"
)

// life is what happened to one request.
type life struct {
	admitted, first, done engine.Time
	reused, preemptions   int
}

// run is one worker of one rank on a virtual clock.
type run struct {
	group  *engine.Group
	now    engine.Time
	passes int
	lives  map[string]*life
	last   engine.Pass
}

func newRun(t *testing.T, cfg engine.Config) *run {
	t.Helper()
	g, err := backend.NewGroup(cfg, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &run{group: g, lives: map[string]*life{}}
}

func request(n byte, output int, prompt ...[3]uint64) *engine.Request {
	return &engine.Request{ID: engine.ID{15: n}, Label: string('a' + rune(n) - 1), Prompt: goldentest.Prompt(prompt), MaxOutput: output}
}

func (r *run) submit(t *testing.T, q *engine.Request) {
	t.Helper()
	if err := r.group.Submit(0, q, r.now); err != nil {
		t.Fatal(err)
	}
	r.lives[q.Label] = &life{admitted: -1, first: -1, done: -1}
}

// until runs passes as long as they start before the time and one of them has length or effect.
func (r *run) until(end engine.Time) {
	for r.group.Ready() && r.now < end {
		start := r.now
		_, r.now = r.group.Begin(r.now)
		p := r.group.Complete()[0]
		r.last = *p
		if !p.Effect && r.now == start {
			return
		}
		r.passes++
		for _, a := range p.Admissions {
			if l := r.lives[a.Request.Label]; l.admitted < 0 {
				l.admitted, l.reused = start, a.Reused
			}
		}
		for _, x := range p.Preemptions {
			r.lives[x.Request.Label].preemptions++
		}
		for _, o := range p.Outputs {
			l := r.lives[o.Request.Label]
			if l.first < 0 {
				l.first = r.now
			}
			if o.Completed {
				l.done = r.now
			}
		}
	}
	if !r.group.Ready() && end != forever {
		r.now = max(r.now, end)
	}
}

func (r *run) expect(t *testing.T, label string, want life) {
	t.Helper()
	if got := *r.lives[label]; got != want {
		t.Errorf("%s: got %+v, want %+v", label, got, want)
	}
}

func fixedTiming(blocks, budget int) engine.Config {
	cfg := engine.DefaultConfig(engine.VLLM)
	cfg.NumGPUBlocks, cfg.BlockSize, cfg.MaxNumSeqs, cfg.MaxNumBatchedTokens = blocks, 16, 8, uint64(budget)
	cfg.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: 10, DecodeMS: 2}
	return cfg
}

const forever = engine.Time(math.MaxFloat64)

func TestWaitingRequestMustFitAsAWhole(t *testing.T) {
	r := newRun(t, fixedTiming(20, 64))
	r.submit(t, request(1, 40, [3]uint64{1, 0, 160}))
	r.until(1)
	r.submit(t, request(2, 8, [3]uint64{2, 0, 240}))
	r.until(forever)
	r.expect(t, "a", life{admitted: 0, first: 30, done: 108})
	r.expect(t, "b", life{admitted: 108, first: 148, done: 162})
	if r.passes != 53 || r.now != 162 {
		t.Errorf("%d passes until %v", r.passes, r.now)
	}
}

func TestCachedBlocksNobodyHoldsMakeNoRoom(t *testing.T) {
	r := newRun(t, fixedTiming(20, 512))
	r.submit(t, request(3, 1, [3]uint64{3, 0, 128}))
	r.until(20)
	r.submit(t, request(1, 40, [3]uint64{1, 0, 128}))
	r.until(40)
	if r.now != 40 {
		t.Fatalf("the clock is at %v", r.now)
	}
	r.submit(t, request(2, 4, [3]uint64{3, 0, 128}, [3]uint64{2, 0, 96}))
	r.until(forever)
	r.expect(t, "b", life{admitted: 108, first: 118, done: 124, reused: 128})
	if r.passes != 45 {
		t.Errorf("%d passes", r.passes)
	}
}

// outgrown has a request whose output does not fit the pool, and a small one behind it.
func outgrown(t *testing.T, blocks int) *run {
	r := newRun(t, fixedTiming(blocks, 256))
	r.submit(t, request(1, 60, [3]uint64{1, 0, 96}))
	r.until(5)
	r.submit(t, request(2, 4, [3]uint64{2, 0, 32}))
	return r
}

func TestRequestThatOutgrowsThePoolIsExplained(t *testing.T) {
	r := outgrown(t, 8)
	r.until(forever)
	h := r.last.Hint
	if r.last.Effect || h.Kind != engine.HintExhausted || h.Test != engine.TestPool || h.Head == nil || h.Head.Label != "a" {
		t.Fatalf("effect %v, hint %+v", r.last.Effect, h)
	}
	if h.Need != 9 || h.Have != 8 || h.Setting != "engine.num_gpu_blocks" || h.Raise != 10 {
		t.Errorf("hint %+v", h)
	}
	if r.now != 74 || r.passes != 34 || r.last.Load.Waiting != 2 || r.last.Load.InactiveBlocks != 8 {
		t.Errorf("%d passes until %v, load %+v", r.passes, r.now, r.last.Load)
	}
	r.now = 90
	if c := r.group.Cancel(0, request(1, 0).ID, 90, true); !c.Applied {
		t.Error("the stuck request is not cancelled")
	}
	r.until(forever)
	r.expect(t, "b", life{admitted: 90, first: 100, done: 106})
}

func TestTheHintedPoolIsTheSmallestThatSuffices(t *testing.T) {
	r := outgrown(t, 9)
	r.until(forever)
	if r.last.Effect || r.now != 116 || r.last.Hint.Raise != 10 {
		t.Errorf("9 blocks: effect %v at %v, hint %+v", r.last.Effect, r.now, r.last.Hint)
	}
	r = outgrown(t, 10)
	r.until(forever)
	r.expect(t, "a", life{admitted: 0, first: 10, done: 138})
	r.expect(t, "b", life{admitted: 10, first: 22, done: 28})
}

func TestPromptBeyondTheBudgetIsExplained(t *testing.T) {
	cfg := fixedTiming(64, 100)
	cfg.EnableChunkedPrefill = false
	r := newRun(t, cfg)
	r.submit(t, request(1, 5, [3]uint64{1, 0, 120}))
	r.until(forever)
	h := r.last.Hint
	if h.Test != engine.TestBudget || h.Need != 120 || h.Have != 100 || h.Setting != "engine.max_num_batched_tokens" || h.Raise != 120 {
		t.Errorf("hint %+v", h)
	}
	cfg.MaxNumBatchedTokens = uint64(h.Raise)
	r = newRun(t, cfg)
	r.submit(t, request(1, 5, [3]uint64{1, 0, 120}))
	r.until(forever)
	if r.lives["a"].done < 0 {
		t.Error("the hinted budget does not suffice")
	}
}

func TestRecomputedBlocksAreNoFirstAdmissionHits(t *testing.T) {
	r := newRun(t, fixedTiming(16, 512))
	for i := range 4 {
		r.submit(t, request(byte(i+1), 40, [3]uint64{uint64(i + 1), 0, 112}))
	}
	r.until(forever)
	resumed := 0
	for label, l := range r.lives {
		if l.reused != 0 || l.done < 0 {
			t.Errorf("%s: %+v", label, *l)
		}
		resumed += l.preemptions
	}
	if resumed != 3 || r.now != 290 {
		t.Errorf("%d preemptions, end %v", resumed, r.now)
	}
}

func TestDecodeTimeCountsSharedPrefixesOnceARequest(t *testing.T) {
	cfg := engine.DefaultConfig(engine.VLLM)
	cfg.NumGPUBlocks, cfg.BlockSize, cfg.MaxNumSeqs = 512, 16, 8
	r := newRun(t, cfg)
	for i := range 4 {
		r.submit(t, request(byte(i+1), 3, [3]uint64{1, 0, 1600}, [3]uint64{uint64(5 + i), 0, 16}))
	}
	r.until(1)
	if r.last.Load.ActiveBlocks != 104 {
		t.Errorf("%d active blocks after the prefill", r.last.Load.ActiveBlocks)
	}
	r.until(r.now + 1)
	d := r.last.Decode
	if d.Requests != 4 || d.ActiveTokens != 6468 || d.MeanISL != 1617 || d.CapacityTokens != 8192 ||
		math.Abs(d.Milliseconds-32.337567868232725) > 1e-12 || r.last.Load.ActiveBlocks != 108 {
		t.Errorf("decode %+v, load %+v", d, r.last.Load)
	}
	if math.Abs(float64(r.now)-75.269934) > 2e-6 {
		t.Errorf("second pass ends at %v", r.now)
	}
}

func TestPassesWithoutLengthAreProgress(t *testing.T) {
	cfg := fixedTiming(256, 16)
	cfg.Timing = engine.TimingConfig{Type: "fixed"}
	r := newRun(t, cfg)
	r.submit(t, request(1, 5, [3]uint64{1, 0, 64}))
	r.submit(t, request(2, 5, [3]uint64{2, 0, 64}))
	r.until(forever)
	if r.passes != 13 || r.now != 0 || r.lives["a"].done != 0 || r.lives["b"].done != 0 {
		t.Errorf("%d passes until %v, lives %+v %+v", r.passes, r.now, *r.lives["a"], *r.lives["b"])
	}
}
