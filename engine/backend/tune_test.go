package backend_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/engine/timing"
	"mockbench/kv"
)

// crowd submits requests that share prefixes and do not all fit at once.
func crowd(t testing.TB, g *engine.Group, first, n int, now engine.Time) {
	for i := range n {
		k := uint64(first + i)
		r := request(k+1, 20+i%7*5, [3]uint64{k % 3, 0, 48}, [3]uint64{100 + k, 0, 16 + k%5*16})
		if err := g.Submit(0, r, now); err != nil {
			t.Fatal(err)
		}
	}
}

// rank is a group of one rank that is run pass by pass.
type rank struct {
	*engine.Group
	cfg engine.Config
	now engine.Time
}

func newRank(t testing.TB, cfg engine.Config) *rank {
	g, err := backend.NewGroup(cfg, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &rank{Group: g, cfg: cfg}
}

// pass runs one pass; nil if there is nothing to run.
func (r *rank) pass() *engine.Pass {
	if !r.Ready() {
		return nil
	}
	_, r.now = r.Begin(r.now)
	return r.Complete()[0]
}

func (r *rank) tune(t testing.TB, change func(c *engine.Config)) {
	next := r.cfg
	change(&next)
	if err := r.Tune(r.cfg, next.Tuning()); err != nil {
		t.Fatal(err)
	}
	r.cfg = next
}

// slower changes everything that can change.
func slower(c *engine.Config) {
	c.MaxNumSeqs, c.MaxNumBatchedTokens = 2, 32
	c.SpeedupRatio, c.DecodeSpeedupRatio = 0.5, 2
	c.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: 7, DecodeMS: 3}
	c.SGLang.SchedulePolicy, c.SGLang.ChunkedPrefillSize, c.SGLang.MaxPrefillTokens = "lpm", 32, 64
	c.SGLang.ClipMaxNewTokens, c.SGLang.ScheduleConservativeness = 8, 0.5
	if c.Backend == engine.SGLang {
		c.PrefillDecodeInterval = 2
		return
	}
	c.PreemptionMode, c.PrefillScheduleInterval = engine.FIFO, map[engine.Backend]int{engine.VLLM: 2, engine.TRTLLM: 1}[c.Backend]
}

// TestTunedAtTheStart: a rank that is tuned before its first request does what a rank built that way does.
func TestTunedAtTheStart(t *testing.T) {
	engines(t, func(t *testing.T, cfg engine.Config) {
		cfg.NumGPUBlocks, cfg.EmitKVEvents = 24, true
		tuned := newRank(t, cfg)
		tuned.tune(t, slower)
		built := newRank(t, tuned.cfg)
		crowd(t, tuned.Group, 0, 12, 0)
		crowd(t, built.Group, 0, 12, 0)
		for n := 0; ; n++ {
			a, b := tuned.pass(), built.pass()
			if d := cmp.Diff(b, a, cmp.Comparer(sameID)); d != "" {
				t.Fatalf("pass %d (-built +tuned):\n%s", n, d)
			}
			if a == nil {
				break
			}
		}
		if !tuned.Drained() {
			t.Error("requests are left over")
		}
	})
}

func sameID(a, b *engine.Request) bool { return a == b || a != nil && b != nil && a.ID == b.ID }

// TestTunedInBetween changes settings at random moments and recomputes what each pass may do from the settings of that
// moment: who may enter, how many tokens, and how long it takes. In the end every request has all its tokens.
func TestTunedInBetween(t *testing.T) {
	engines(t, func(t *testing.T, cfg engine.Config) {
		cfg.NumGPUBlocks = 40
		rapid.Check(t, func(rt *rapid.T) {
			r, running := newRank(t, cfg), map[engine.ID]bool{}
			crowd(t, r.Group, 0, 10, 0)
			tokens := map[engine.ID]int{}
			for range 5000 {
				if rapid.IntRange(0, 9).Draw(rt, "tune") == 0 {
					r.tune(t, func(c *engine.Config) {
						c.MaxNumSeqs = rapid.Uint64Range(1, 8).Draw(rt, "sequences")
						c.MaxNumBatchedTokens = rapid.Uint64Range(8, 64).Draw(rt, "budget")
						c.SpeedupRatio = rapid.SampledFrom([]float64{0, 0.5, 1, 4}).Draw(rt, "speed")
						c.Timing.DecodeMS = rapid.SampledFrom([]float64{0.5, 2}).Draw(rt, "decode")
						c.SGLang.ChunkedPrefillSize = 16 * rapid.IntRange(1, 4).Draw(rt, "chunk")
						c.PreemptionMode = rapid.SampledFrom([]engine.PreemptionMode{engine.LIFO, engine.FIFO}).Draw(rt, "mode")
					})
				}
				p := r.pass()
				if p == nil {
					break
				}
				checkPass(rt, &r.cfg, p, running)
				for _, o := range p.Outputs {
					if o.HasToken {
						tokens[o.Request.ID]++
					}
					if o.Completed && tokens[o.Request.ID] != o.Request.MaxOutput {
						rt.Fatalf("%x ended after %d of %d tokens", o.Request.ID, tokens[o.Request.ID], o.Request.MaxOutput)
					}
				}
			}
			if !r.Drained() || len(tokens) != 10 {
				rt.Fatalf("drained %v, %d requests answered", r.Drained(), len(tokens))
			}
		})
	})
}

// checkPass checks one pass against the settings it was planned with; running are the requests that hold a slot.
func checkPass(t *rapid.T, cfg *engine.Config, p *engine.Pass, running map[engine.ID]bool) {
	before := len(running)
	for _, v := range p.Preemptions {
		delete(running, v.Request.ID)
	}
	for _, a := range p.Admissions {
		running[a.Request.ID] = true
	}
	if len(p.Admissions) > 0 && uint64(len(running)) > cfg.MaxNumSeqs {
		t.Fatalf("pass %d admits up to %d requests (%d before), allowed %d", p.Number, len(running), before, cfg.MaxNumSeqs)
	}
	total, prompt := 0, 0
	for _, w := range p.Work {
		total += w.Tokens
		prompt += w.Prompt
	}
	if cfg.Backend == engine.SGLang {
		if prompt > cfg.SGLang.ChunkedPrefillSize {
			t.Fatalf("pass %d computes %d prompt tokens, allowed %d", p.Number, prompt, cfg.SGLang.ChunkedPrefillSize)
		}
	} else if uint64(total) > cfg.MaxNumBatchedTokens || p.Budget != cfg.MaxNumBatchedTokens {
		t.Fatalf("pass %d computes %d tokens of %d, allowed %d", p.Number, total, p.Budget, cfg.MaxNumBatchedTokens)
	}
	for _, o := range p.Outputs {
		if o.Completed {
			delete(running, o.Request.ID)
		}
	}
	length := engine.Time(0)
	if p.Prefill.Requests > 0 {
		length += timing.Scale(cfg.Timing.PrefillMS, cfg.SpeedupRatio)
	}
	if p.Decode.Requests > 0 {
		length += timing.Scale(cfg.Timing.DecodeMS, cfg.SpeedupRatio*cfg.DecodeSpeedupRatio)
	}
	if got := p.RankEnd - p.Start; got < length-1e-6 || got > length+1e-6 {
		t.Fatalf("pass %d takes %v, want %v", p.Number, got, length)
	}
}

// TestRefusedTuning: a wrong value, and one that a rank of a group cannot take, change nothing.
func TestRefusedTuning(t *testing.T) {
	engines(t, func(t *testing.T, cfg engine.Config) {
		g, err := backend.NewGroup(cfg, 0, 20)
		if err != nil {
			t.Fatal(err)
		}
		changes := map[string]func(c *engine.Config){
			"engine.max_num_seqs":  func(c *engine.Config) { c.MaxNumSeqs = 0 },
			"engine.speedup_ratio": func(c *engine.Config) { c.SpeedupRatio = -1 },
			"engine.timing_model":  func(c *engine.Config) { c.Timing.Type = "unheard-of" },
		}
		if cfg.Backend == engine.SGLang {
			changes["engine.sglang.chunked_prefill_size"] = func(c *engine.Config) { c.SGLang.ChunkedPrefillSize = 16 }
		}
		for setting, change := range changes {
			next := cfg
			change(&next)
			var wrong *engine.SettingError
			if err := g.Tune(cfg, next.Tuning()); !errors.As(err, &wrong) || wrong.Setting != setting {
				t.Errorf("%s: got error %v", setting, err)
			}
		}
		fresh := newRank(t, cfg)
		one, err := backend.NewGroup(cfg, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		_ = one.Tune(cfg, engine.Tuning{})
		tried := &rank{Group: one, cfg: cfg}
		crowd(t, fresh.Group, 0, 5, 0)
		crowd(t, tried.Group, 0, 5, 0)
		for {
			a, b := tried.pass(), fresh.pass()
			if d := cmp.Diff(b, a, cmp.Comparer(sameID)); d != "" {
				t.Fatalf("after a refusal (-fresh +refused):\n%s", d)
			}
			if a == nil {
				return
			}
		}
	})
}

// TestReplaced: the successor of a drained rank starts with an empty cache, of which its readers are told, and its
// records go on with the numbers of the one before.
func TestReplaced(t *testing.T) {
	engines(t, func(t *testing.T, cfg engine.Config) {
		cfg.NumGPUBlocks, cfg.EmitKVEvents = 64, true
		if cfg.Backend == engine.VLLM {
			cfg.KVCacheBytesPerToken, cfg.HostOffload = 1000, engine.DefaultHostOffload(32)
		}
		r := newRank(t, cfg)
		held, passes, events := map[kv.Tier]map[uint64]bool{kv.Device: {}, kv.HostPinned: {}}, uint64(0), uint64(0)
		see := func(p *engine.Pass) {
			if !p.Idle && p.Number != passes {
				t.Fatalf("pass %d follows pass %d", p.Number, passes)
			}
			if !p.Idle {
				passes = p.Number + 1
			}
			for _, e := range p.Events.List {
				if e.ID != events {
					t.Fatalf("event %d, want %d", e.ID, events)
				}
				events++
				hashes, _ := p.Events.Blocks(e)
				for _, h := range hashes {
					if held[e.Tier][h] = e.Kind == kv.Stored; !held[e.Tier][h] {
						delete(held[e.Tier], h)
					}
				}
			}
		}
		run := func() {
			for p := r.pass(); p != nil; p = r.pass() {
				see(p)
			}
			for !r.Drained() {
				at, ok := r.Deadline()
				if !ok {
					t.Fatal("the rank never drains")
				}
				r.now = max(r.now, at)
				if p := r.Advance(r.now)[0]; p != nil {
					see(p)
				}
			}
		}
		crowd(t, r.Group, 0, 12, 0)
		run()
		if len(held[kv.Device]) == 0 || cfg.HostOffload != nil && len(held[kv.HostPinned]) == 0 {
			t.Fatalf("nothing was cached: %v", held)
		}
		cfg.NumGPUBlocks = 128
		next, err := backend.NewGroup(cfg, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		records, err := r.Replace(next, r.now)
		if err != nil {
			t.Fatal(err)
		}
		see(records[0])
		if len(held[kv.Device])+len(held[kv.HostPinned]) > 0 {
			t.Errorf("readers still believe in %v", held)
		}
		if got := r.Rank(0).Load().TotalBlocks; got != 128 || records[0].Load.TotalBlocks != 128 {
			t.Errorf("%d blocks, told %d, want 128", got, records[0].Load.TotalBlocks)
		}
		crowd(t, r.Group, 12, 12, r.now)
		run()
	})
}
