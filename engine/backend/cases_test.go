package backend_test

import (
	"encoding/binary"
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/engine/goldentest"
)

// engines are the three engines in one configuration: blocks of 16 tokens, fixed pass lengths.
func engines(t *testing.T, test func(t *testing.T, cfg engine.Config)) {
	for _, b := range []engine.Backend{engine.VLLM, engine.SGLang, engine.TRTLLM} {
		t.Run(string(b), func(t *testing.T) {
			cfg := engine.DefaultConfig(b)
			cfg.BlockSize = 16
			cfg.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: 10, DecodeMS: 2}
			test(t, cfg)
		})
	}
}

func request(n uint64, output int, prompt ...[3]uint64) *engine.Request {
	r := &engine.Request{MaxOutput: output, Prompt: goldentest.Prompt(prompt)}
	binary.BigEndian.PutUint64(r.ID[8:], n)
	return r
}

// play runs requests until the rank is drained or stuck, and hands every record to look. It returns the last one.
func play(t *testing.T, cfg engine.Config, requests []*engine.Request, look func(p *engine.Pass)) (last engine.Pass, drained bool) {
	t.Helper()
	g, err := backend.NewGroup(cfg, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if err := g.Submit(0, r, 0); err != nil {
			t.Fatal(err)
		}
	}
	var now engine.Time
	for range 20000 {
		if !g.Ready() {
			return last, true
		}
		_, now = g.Begin(now)
		p := g.Complete()[0]
		look(p)
		last = *p
		if !p.Effect && p.Hint.Kind == engine.HintExhausted {
			return last, false
		}
	}
	t.Fatal("the rank neither drains nor says that it is stuck")
	return last, false
}

// TestWholePromptMustFit has a request come that leaves room for a part of it only: nobody loses blocks for it. SGLang
// lets its chunks in one by one, the others admit it when all of it fits.
func TestWholePromptMustFit(t *testing.T) {
	engines(t, func(t *testing.T, cfg engine.Config) {
		cfg.NumGPUBlocks, cfg.MaxNumBatchedTokens, cfg.SGLang.ChunkedPrefillSize = 20, 64, 64
		admitted := map[byte]engine.Time{}
		finished := map[byte]engine.Time{}
		_, drained := play(t, cfg, []*engine.Request{request(1, 40, [3]uint64{1, 0, 160}), request(2, 8, [3]uint64{2, 0, 240})}, func(p *engine.Pass) {
			for _, a := range p.Admissions {
				admitted[a.Request.ID[15]] = p.Start
			}
			for _, o := range p.Outputs {
				if o.Completed {
					finished[o.Request.ID[15]] = p.End
				}
			}
			if len(p.Preemptions) > 0 {
				t.Errorf("a preemption at %v", p.Start)
			}
		})
		if whole := cfg.Backend != engine.SGLang; !drained || whole && admitted[2] < finished[1] {
			t.Errorf("drained %v; the second was admitted at %v, the first finished at %v", drained, admitted[2], finished[1])
		}
	})
}

// TestOwnBlocksAreNoHit runs prompts that share nothing through a pool that is too small for them together: what is found
// again after a preemption does not count as a first admission's reuse.
func TestOwnBlocksAreNoHit(t *testing.T) {
	engines(t, func(t *testing.T, cfg engine.Config) {
		cfg.NumGPUBlocks, cfg.MaxNumBatchedTokens = 16, 512
		cfg.SGLang.ClipMaxNewTokens = 0 // nothing is set aside for output
		var list []*engine.Request
		for n := range uint64(4) {
			list = append(list, request(n+1, 40, [3]uint64{n + 1, 0, 112}))
		}
		first, again, tokens := 0, 0, 0
		if _, drained := play(t, cfg, list, func(p *engine.Pass) {
			for _, a := range p.Admissions {
				if a.First {
					first += a.Reused
				} else {
					again++
				}
			}
			for _, o := range p.Outputs {
				if o.HasToken {
					tokens++
				}
			}
		}); !drained {
			t.Fatal("the rank is stuck")
		}
		if first != 0 || tokens != 160 {
			t.Errorf("%d tokens reused at first admission, %d outputs", first, tokens)
		}
		if preempts := cfg.Backend != engine.TRTLLM; preempts != (again > 0) {
			t.Errorf("%d resumptions", again)
		}
	})
}

// TestDecodeTimeCountsWhatIsRead gives four requests one long prefix: in memory it is there once, a decode reads it for
// each of them.
func TestDecodeTimeCountsWhatIsRead(t *testing.T) {
	engines(t, func(t *testing.T, cfg engine.Config) {
		cfg.NumGPUBlocks = 512
		cfg.Timing = engine.TimingConfig{Type: "polynomial"}
		var list []*engine.Request
		for n := range uint64(4) {
			list = append(list, request(n+1, 4, [3]uint64{1, 0, 1600}, [3]uint64{n + 5, 0, 16}))
		}
		most := 0
		play(t, cfg, list, func(p *engine.Pass) {
			if p.Decode.Requests == 4 {
				most = max(most, p.Decode.ActiveTokens)
				if held := p.Load.ActiveBlocks * cfg.BlockSize; cfg.Backend != engine.SGLang && held >= p.Decode.ActiveTokens {
					t.Errorf("%d tokens are held, %d read: the prefix is not shared", held, p.Decode.ActiveTokens)
				}
			}
		})
		if most < 4*1617 {
			t.Errorf("a decode of four reads %d tokens, want at least %d", most, 4*1617)
		}
	})
}

// TestOutgrowsThePool gives each engine a request whose output does not fit its pool. TensorRT-LLM cuts the output; the
// others get stuck, say which setting to raise, and finish with the value they name.
func TestOutgrowsThePool(t *testing.T) {
	engines(t, func(t *testing.T, cfg engine.Config) {
		cfg.NumGPUBlocks, cfg.MaxNumBatchedTokens = 8, 256
		list := func() []*engine.Request {
			return []*engine.Request{request(1, 60, [3]uint64{1, 0, 96}), request(2, 4, [3]uint64{2, 0, 16})}
		}
		last, drained := play(t, cfg, list(), func(*engine.Pass) {})
		if cfg.Backend == engine.TRTLLM {
			if !drained {
				t.Errorf("stuck with %+v", last.Hint)
			}
			return
		}
		h := last.Hint
		if drained || h.Head == nil || h.Setting != "engine.num_gpu_blocks" || h.Raise <= cfg.NumGPUBlocks {
			t.Fatalf("drained %v, hint %+v", drained, h)
		}
		cfg.NumGPUBlocks = h.Raise
		if last, drained = play(t, cfg, list(), func(*engine.Pass) {}); !drained {
			t.Errorf("with %d blocks as told it is still stuck: %+v", cfg.NumGPUBlocks, last.Hint)
		}
	})
}
