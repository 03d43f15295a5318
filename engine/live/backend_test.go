package live

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mockbench/engine"
	"mockbench/engine/backend"
)

func fixedTiming(blocks int, prefill, decode float64) engine.Config {
	c := engine.DefaultConfig(engine.VLLM)
	c.BlockSize, c.NumGPUBlocks = 16, blocks
	c.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: prefill, DecodeMS: decode}
	return c
}

// inBubbleWith runs f beside a worker of one real rank.
func inBubbleWith(t *testing.T, o Options, f func(*bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		group, err := backend.NewGroup(o.Engine, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, clock: NewClock(1), begun: time.Now()}
		o.Clock = b.clock
		b.w = start(o, group, newRuntimeAlarm())
		defer b.w.Close()
		f(b)
	})
}

// prompt returns n tokens that no other prompt starts with.
func prompt(number, n int) []uint32 {
	p := make([]uint32, n)
	for i := range p {
		p[i] = uint32(number*100_000 + i)
	}
	return p
}

func (b *bench) send(number, tokens, output int) *Stream {
	b.t.Helper()
	s, err := b.w.Submit(Request{Label: fmt.Sprint("r", number), Prompt: prompt(number, tokens), MaxOutput: output, Rank: -1})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// A request that outgrows the pool stalls its rank, and the report says what would help.
func TestRequestOutgrowsThePool(t *testing.T) {
	c := fixedTiming(8, 10, 2)
	c.MaxNumBatchedTokens, c.MaxNumSeqs = 256, 8
	var told journal
	o := Options{Name: "w0", Engine: c, Stalled: func(s Stall) {
		told.note("%s needs %s of %d", s.Hint.Head.Label, s.Hint.Setting, s.Hint.Raise)
	}}
	inBubbleWith(t, o, func(b *bench) {
		big := b.send(1, 96, 60)
		b.at(5)
		small := b.send(2, 32, 4)
		b.at(80)
		passes := b.w.Passes()
		told.expect(t, "reports", "r1 needs engine.num_gpu_blocks of 10")
		b.at(90)
		equal(t, "passes while parked", b.w.Passes(), passes)
		big.Cancel()
		tokens, end := all(t, big)
		equal(t, "tokens of the cancelled request", len(tokens), 33)
		equal(t, "end", end, Cancelled)
		_, _, ms := b.next(small)
		equal(t, "first token of the next", ms, 100)
		_, end = all(t, small)
		equal(t, "end", end, Finished)
		equal(t, "done", b.ms(), 106)
		equal(t, "stalls", len(b.w.Stalled()), 0)
	})
}

// Ten requests in turn: time to first token counts from the arrival, the queue included.
func TestFirstTokenIncludesTheQueue(t *testing.T) {
	c := fixedTiming(64, 10, 2)
	c.MaxNumSeqs = 1
	var first journal
	o := Options{Engine: c, Readers: []engine.Reader{readerFunc(func(p *engine.Pass) {
		for _, out := range p.Outputs {
			if out.Position == 0 {
				first.note("%g", p.End-out.Request.Arrival)
			}
		}
	})}}
	inBubbleWith(t, o, func(b *bench) {
		var streams []*Stream
		for k := range 10 {
			streams = append(streams, b.send(k, 32, 5))
		}
		for k, s := range streams {
			_, _, ms := b.next(s)
			equal(t, "first token at the client", ms, float64(18*k+10))
			all(t, s)
		}
		first.expect(t, "first token in the records", "10", "28", "46", "64", "82", "100", "118", "136", "154", "172")
		equal(t, "duration", b.ms(), 180)
	})
}

// With passes of length zero everything finishes, and commands are served while it runs.
func TestZeroLengthPasses(t *testing.T) {
	for name, o := range map[string]Options{
		"fixed 0/0": {Engine: fixedTiming(16384, 0, 0)},
		"no delay":  {Engine: fixedTiming(16384, 10, 10), NoDelay: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Name, o.Ranks, o.Clock = "w0", 1, NewClock(1)
			w, err := Start(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			endless, err := w.Submit(Request{Prompt: prompt(0, 64), MaxOutput: 1 << 30, Rank: -1})
			if err != nil {
				t.Fatal(err)
			}
			var streams []*Stream
			for k := range 64 {
				s, err := w.Submit(Request{Prompt: prompt(k+1, 64), MaxOutput: 500, Rank: -1})
				if err != nil {
					t.Fatal(err)
				}
				streams = append(streams, s)
			}
			for _, s := range streams {
				tokens, end := all(t, s)
				equal(t, "tokens", len(tokens), 500)
				equal(t, "end", end, Finished)
			}
			var snapshot engine.Snapshot
			if err := w.Inspect(0, &snapshot); err != nil {
				t.Error(err)
			}
			equal(t, "running", len(snapshot.Running), 1)
			endless.Cancel()
			_, end := all(t, endless)
			equal(t, "end", end, Cancelled)
			equal(t, "in flight", w.InFlight(), 0)
		})
	}
}

func TestRejection(t *testing.T) {
	inBubbleWith(t, Options{Engine: fixedTiming(8, 10, 2)}, func(b *bench) {
		s := b.send(1, 200, 5)
		n, end, ms := b.next(s)
		equal(t, "tokens", n, 0)
		equal(t, "end", end, Rejected)
		equal(t, "time", ms, 0)
	})
}

func TestStartRefuses(t *testing.T) {
	good := Options{Name: "w0", Engine: fixedTiming(8, 1, 1), Ranks: 1, Clock: NewClock(1)}
	for setting, change := range map[string]func(*Options){
		"dp_size":      func(o *Options) { o.Ranks = 0 },
		"startup_time": func(o *Options) { o.Startup = -1 },
	} {
		o := good
		change(&o)
		_, err := Start(context.Background(), o)
		var wrong *engine.SettingError
		if !errors.As(err, &wrong) || wrong.Setting != setting {
			t.Errorf("%s: got %v", setting, err)
		}
	}
	o := good
	o.Engine.BlockSize = 1
	var wrong *engine.SettingError
	if _, err := Start(context.Background(), o); !errors.As(err, &wrong) {
		t.Errorf("block size 1: got %v", err)
	}
	o = good
	o.Clock = nil
	if _, err := Start(context.Background(), o); err == nil {
		t.Error("no clock: got no error")
	}
}

func TestStartupTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Name: "w0", Engine: fixedTiming(8, 1, 1), Ranks: 1, Clock: NewClock(1), Startup: time.Hour}
		begin := time.Now()
		w := startOf(t, o)
		served, err := w.Submit(Request{Prompt: make([]uint32, 4), MaxOutput: 1, Rank: -1})
		if err != nil {
			t.Fatal(err)
		}
		left, err := w.Submit(Request{Prompt: make([]uint32, 4), MaxOutput: 1, Rank: -1})
		if err != nil {
			t.Fatal(err)
		}
		left.Cancel()
		_, end, err := left.Take(t.Context(), nil)
		equal(t, "end of the request whose client left", end, Cancelled)
		equal(t, "its error", err, nil)
		equal(t, "time until it ended", time.Since(begin), 0)
		tokens, _, err := served.Take(t.Context(), nil)
		if err != nil || len(tokens) != 1 {
			t.Fatalf("got %d tokens, %v", len(tokens), err)
		}
		equal(t, "time until the first token", time.Since(begin), time.Hour+time.Millisecond)
		w.Close()

		begin = time.Now()
		w = startOf(t, o)
		w.Close()
		equal(t, "time until a worker that starts is closed", time.Since(begin), 0)
	})
}

// startOf starts a worker that waits with timers of the Go runtime alone, which follow a test's clock.
func startOf(t *testing.T, o Options) *Worker {
	t.Helper()
	group, err := backend.NewGroup(o.Engine, 0, o.Ranks)
	if err != nil {
		t.Fatal(err)
	}
	return start(o, group, newRuntimeAlarm())
}

// The draws of a worker follow from the seed in its configuration alone.
func TestDraftSeed(t *testing.T) {
	var bursts journal
	c := fixedTiming(64, 10, 2)
	c.Nextn, c.NextnAcceptRates = 3, "0.8,0.6,0.4"
	o := Options{Name: "w5", Index: 5, Engine: c, Ranks: 1, Clock: NewClock(1), NoDelay: true,
		Readers: []engine.Reader{readerFunc(func(p *engine.Pass) { bursts.note("%d", len(p.Outputs)) })}}
	w, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s, err := w.Submit(Request{Prompt: prompt(1, 32), MaxOutput: 23, Rank: -1})
	if err != nil {
		t.Fatal(err)
	}
	all(t, s)
	bursts.expect(t, "tokens a pass", "3", "3", "2", "3", "4", "4", "3", "1")
}
