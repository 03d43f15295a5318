package sglang

import (
	"encoding/binary"
	"testing"

	"mockbench/engine"
	"mockbench/engine/timing"
	"mockbench/kv"
)

// rank returns a rank with fixed timing; change adapts its configuration.
func rank(t *testing.T, change func(*engine.Config)) *Scheduler {
	t.Helper()
	cfg := engine.DefaultConfig(engine.SGLang)
	cfg.BlockSize, cfg.NumGPUBlocks, cfg.EmitKVEvents = 4, 16, true
	cfg.SGLang.ChunkedPrefillSize = 64
	change(&cfg)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	model, err := timing.NewModel(engine.TimingConfig{Type: "fixed", PrefillMS: 10, DecodeMS: 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(cfg, 0, 1, timing.NewTimer(model, cfg), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// request has a prompt of length tokens that starts with the given ones and goes on with tokens of its own.
func request(n uint64, length, output int, prefix ...uint32) *engine.Request {
	r := &engine.Request{MaxOutput: output, Prompt: prefix}
	binary.BigEndian.PutUint64(r.ID[8:], n)
	for i := len(prefix); i < length; i++ {
		r.Prompt = append(r.Prompt, uint32(1000*n)+uint32(i))
	}
	return r
}

func submit(t *testing.T, s *Scheduler, list ...*engine.Request) {
	t.Helper()
	for _, r := range list {
		if err := s.Submit(r, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// step runs one pass and returns its record.
func step(s *Scheduler, now *engine.Time) *engine.Pass {
	p := s.Plan(*now, 0)
	p = s.Commit(p.RankEnd)
	s.EndRound(s.Round())
	*now = p.End
	return p
}

// TestReserveIsClippedInTheSum lets one request with a huge output run: what it sets aside for others is the clipped
// remainder times the ratio, so a second one is admitted.
func TestReserveIsClippedInTheSum(t *testing.T) {
	for clip, want := range map[int]int{8: 1, 1000: 0} {
		s := rank(t, func(c *engine.Config) { c.SGLang.ClipMaxNewTokens = clip })
		var now engine.Time
		submit(t, s, request(1, 8, 40))
		step(s, &now)
		submit(t, s, request(2, 30, 2))
		if p := step(s, &now); len(p.Admissions) != want {
			t.Errorf("clip %d: %d admissions, want %d", clip, len(p.Admissions), want)
		}
	}
}

// TestFirstTokensAllOrNone fills the pool with prompts, so that the slots for their first tokens do not suffice for
// all: none gets its token from the prefill pass.
func TestFirstTokensAllOrNone(t *testing.T) {
	s := rank(t, func(c *engine.Config) { c.NumGPUBlocks, c.SGLang.ClipMaxNewTokens = 5, 1 })
	var now engine.Time
	submit(t, s, request(1, 8, 4), request(2, 8, 4))
	p := step(s, &now)
	if len(p.Admissions) != 2 || len(p.Outputs) != 0 || len(s.running) != 2 {
		t.Fatalf("%d admissions, %d outputs, %d running, want both admitted and no token", len(p.Admissions), len(p.Outputs), len(s.running))
	}
	if p = step(s, &now); len(p.Preemptions) != 1 || len(p.Outputs) != 1 {
		t.Errorf("%d retractions, %d outputs, want one of each in the decode pass", len(p.Preemptions), len(p.Outputs))
	}
}

// TestLaterPagesOfAStoredEvent computes the same prompt twice at once: the second one announces nothing until its first
// page of its own, and from there on everything.
func TestLaterPagesOfAStoredEvent(t *testing.T) {
	s := rank(t, func(*engine.Config) {})
	var now engine.Time
	shared := []uint32{1, 2, 3, 4, 5, 6, 7, 8}
	submit(t, s, request(1, 12, 4, shared...), request(2, 12, 4, shared...))
	p := step(s, &now)
	if len(p.Events.List) < 2 {
		t.Fatalf("%d events", len(p.Events.List))
	}
	first, second := p.Events.List[0], p.Events.List[1]
	if first.Count != 3 || second.Kind != kv.Stored || second.Count != 1 || !second.HasParent || second.Parent != p.Events.Sequence[1] {
		t.Errorf("got %+v and %+v, want three pages, then one below the second of them", first, second)
	}
}

// TestSpreadNeedsWholePages compares requests of one batch by their first 32 tokens, rounded up to pages.
func TestSpreadNeedsWholePages(t *testing.T) {
	for length, want := range map[int][3]uint64{47: {1, 2, 3}, 48: {1, 3, 2}} {
		s := rank(t, func(c *engine.Config) {
			c.BlockSize, c.SGLang.SchedulePolicy, c.SGLang.ChunkedPrefillSize = 24, "lpm", 24*20
		})
		prefix := make([]uint32, 48)
		for i := range prefix {
			prefix[i] = uint32(i)
		}
		submit(t, s, request(1, length, 2, prefix[:length]...), request(2, length, 2, prefix[:length]...), request(3, length, 2))
		s.order()
		var got [3]uint64
		for i, q := range s.waiting.list {
			got[i] = binary.BigEndian.Uint64(q.req.ID[8:])
		}
		if got != want {
			t.Errorf("length %d: order %v, want %v", length, got, want)
		}
	}
}

// TestSourceRejectedForItsLengthIsForgotten releases a handoff whose prompt was refused: there is nothing to release.
func TestSourceRejectedForItsLengthIsForgotten(t *testing.T) {
	s := rank(t, func(c *engine.Config) { c.MaxModelLen, c.Role = 10, engine.PrefillRole })
	var now engine.Time
	if err := s.SubmitSource(request(1, 12, 1), engine.ID{15: 7}, now); err != nil {
		t.Fatal(err)
	}
	if p := step(s, &now); len(p.Outputs) != 1 || !p.Outputs[0].Rejected {
		t.Fatalf("got %+v", p.Outputs)
	}
	if r := s.ReleaseSource(engine.ID{15: 7}, now); r.Applied {
		t.Errorf("got %+v, want nothing to release", r)
	}
	if !s.Drained() {
		t.Error("the rank still owns something")
	}
}

// TestRoomWakesADestination fills a decode rank and shows which events let the next destination in: a retraction does.
func TestRoomWakesADestination(t *testing.T) {
	s := rank(t, func(c *engine.Config) { c.NumGPUBlocks, c.Role = 4, engine.DecodeRole })
	var now engine.Time
	first, err := s.Reserve(request(1, 12, 4), engine.ID{15: 1}, now)
	if err != nil || len(first.Steps) != 1 {
		t.Fatalf("got %+v, %v", first, err)
	}
	second, err := s.Reserve(request(2, 8, 4), engine.ID{15: 2}, now)
	if err != nil || len(second.Steps) != 0 {
		t.Fatalf("got %+v, %v, want it to wait", second, err)
	}
	if r := s.CancelDestination(engine.ID{15: 1}, now); len(r.Steps) != 1 || r.Steps[0].ID != (engine.ID{15: 2}) || r.Steps[0].Tokens != 8 {
		t.Errorf("got %+v, want the second destination to get its room at once", r)
	}
	if queued := s.Load().Waiting; queued != 1 {
		t.Errorf("%d waiting, want the held destination", queued)
	}
}

// TestStalls covers what can never be admitted, and what outgrows the pool: the hint names the request and the size that
// would do, and with that size the request finishes.
func TestStalls(t *testing.T) {
	for name, c := range map[string]struct {
		length, output int
	}{
		"prompt beyond the pool": {80, 2}, "output beyond the pool": {40, 200}, "reserve beyond the pool": {60, 40},
	} {
		t.Run(name, func(t *testing.T) {
			blocks := 16
			for range 3 {
				s := rank(t, func(cfg *engine.Config) { cfg.NumGPUBlocks, cfg.SGLang.ClipMaxNewTokens = blocks, 20 })
				var now engine.Time
				submit(t, s, request(1, c.length, c.output))
				var p *engine.Pass
				for range 2000 {
					if p = step(s, &now); s.Drained() || !p.Effect && p.Hint.Kind == engine.HintExhausted {
						break
					}
				}
				if s.Drained() {
					if blocks == 16 {
						t.Fatal("nothing was stuck in the small pool")
					}
					return
				}
				h := p.Hint
				if h.Head == nil || h.Setting != "engine.num_gpu_blocks" || h.Raise <= blocks {
					t.Fatalf("with %d blocks: hint %+v", blocks, h)
				}
				blocks = h.Raise
			}
			t.Errorf("raising the pool to %d as told did not help", blocks)
		})
	}
}
