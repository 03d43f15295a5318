package live

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/kv"
)

// Settings change at the end of the pass under way, not in the middle of it.
func TestTuneActsAtTheNextPass(t *testing.T) {
	var told []engine.Config
	o := Options{Name: "w", Engine: fixedTiming(100, 10, 4), Changed: func(c engine.Config) { told = append(told, c) }}
	inBubbleWith(t, o, func(b *bench) {
		s := b.send(1, 16, 4)
		b.next(s) // prefill, at 10 ms
		b.at(11)
		c := b.w.Config()
		c.Timing.DecodeMS = 7
		wait, err := b.w.Tune(c.Tuning())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		equal(t, "decode time during the pass", b.w.Config().Timing.DecodeMS, 4)
		_, _, ms := b.next(s)
		equal(t, "end of the pass under way", ms, 14)
		if err := wait(); err != nil {
			t.Error(err)
		}
		equal(t, "moment of the change", b.ms(), 14)
		equal(t, "decode time", b.w.Config().Timing.DecodeMS, 7)
		_, _, ms = b.next(s)
		equal(t, "end of the next pass", ms, 21)
		if len(told) != 1 || told[0].Timing.DecodeMS != 7 {
			t.Errorf("told of %d changes", len(told))
		}
		c.MaxNumSeqs = 0
		var wrong *engine.SettingError
		if _, err := b.w.Tune(c.Tuning()); !errors.As(err, &wrong) || wrong.Setting != "engine.max_num_seqs" {
			t.Errorf("a wrong value: %v", err)
		}
	})
}

// A restart lets what runs end, keeps back what waits and what comes meanwhile, and serves it in the order it came.
func TestRestart(t *testing.T) {
	c := fixedTiming(100, 10, 4)
	c.MaxNumSeqs, c.EmitKVEvents = 1, true
	var mu sync.Mutex
	held, finished := map[uint64]bool{}, []string{}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(held)
	}
	reader := passReader(func(p *engine.Pass) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range p.Events.List {
			hashes, _ := p.Events.Blocks(e)
			for _, h := range hashes {
				if held[h] = e.Kind == kv.Stored; !held[h] {
					delete(held, h)
				}
			}
		}
		for _, o := range p.Outputs {
			if o.Completed {
				finished = append(finished, fmt.Sprintf("%s at %v", o.Request.Label, p.End))
			}
		}
	})
	inBubbleWith(t, Options{Name: "w", Engine: c, Readers: []engine.Reader{reader}}, func(b *bench) {
		runs, waits, leaves := b.send(1, 32, 3), b.send(2, 32, 1), b.send(3, 32, 1)
		b.at(1)
		c.NumGPUBlocks, c.MaxNumSeqs = 200, 2
		wait, err := b.w.Restart(c)
		if err != nil {
			t.Fatal(err)
		}
		b.at(11)
		equal(t, "restarting", b.w.Restarting(), true)
		late := b.send(4, 32, 1)
		leaves.Cancel()
		b.at(17)
		equal(t, "blocks before", b.w.Load()[0].TotalBlocks, 100)
		equal(t, "blocks held", count(), 2)
		if err := wait(); err != nil {
			t.Error(err)
		}
		equal(t, "moment of the change", b.ms(), 18)
		equal(t, "blocks", b.w.Load()[0].TotalBlocks, 200)
		equal(t, "setting", b.w.Config().NumGPUBlocks, 200)
		equal(t, "restarting", b.w.Restarting(), false)
		for s, want := range map[*Stream]End{runs: Finished, waits: Finished, leaves: Cancelled, late: Finished} {
			if _, end := all(t, s); end != want {
				t.Errorf("a request ended as %v, want %v", end, want)
			}
		}
		synctest.Wait()
		equal(t, "order", fmt.Sprint(finished), "[r1 at 18 r2 at 28 r4 at 28]")
		equal(t, "blocks held", count(), 4)
		equal(t, "in flight", b.w.InFlight(), 0)
	})
}

// passReader is a reader of records alone.
type passReader func(p *engine.Pass)

func (f passReader) Pass(p *engine.Pass) { f(p) }

// A restart in a hurry cancels what runs and nothing else.
func TestRestartInAHurry(t *testing.T) {
	c := fixedTiming(100, 10, 4)
	c.MaxNumSeqs = 1
	inBubbleWith(t, Options{Name: "w", Engine: c}, func(b *bench) {
		runs, waits := b.send(1, 32, 1000), b.send(2, 32, 1)
		b.at(11)
		c.BlockSize = 32
		wait, err := b.w.Restart(c)
		if err != nil {
			t.Fatal(err)
		}
		b.at(100)
		equal(t, "restarting", b.w.Restarting(), true)
		b.w.Hurry()
		if err := wait(); err != nil {
			t.Error(err)
		}
		equal(t, "moment of the change", b.ms() < 105, true)
		if _, end := all(t, runs); end != Cancelled {
			t.Errorf("what ran ended as %v", end)
		}
		if _, end := all(t, waits); end != Finished {
			t.Errorf("what waited ended as %v", end)
		}
	})
}

func TestRestartOfClosedAndClosing(t *testing.T) {
	c := fixedTiming(100, 10, 4)
	inBubbleWith(t, Options{Name: "w", Engine: c}, func(b *bench) {
		runs := b.send(1, 32, 1000)
		b.at(5)
		wait, err := b.w.Restart(c)
		if err != nil {
			t.Fatal(err)
		}
		b.at(11)
		late := b.send(2, 32, 1)
		b.w.Close()
		if err := wait(); !errors.Is(err, ErrClosed) {
			t.Errorf("a restart that was cut off: %v", err)
		}
		for _, s := range []*Stream{runs, late} {
			if _, end := all(t, s); end != Cancelled {
				t.Errorf("a request ended as %v", end)
			}
		}
		if _, err := b.w.Restart(c); !errors.Is(err, ErrClosed) {
			t.Errorf("restart of a closed worker: %v", err)
		}
		wrong := c
		wrong.NumGPUBlocks = 0
		if _, err := b.w.Restart(wrong); err == nil || errors.Is(err, ErrClosed) {
			t.Errorf("a wrong value: %v", err)
		}
	})
}

// Whatever is changed, replaced and cancelled: every stream ends, and with all its tokens unless it was cancelled.
func TestRandomChanges(t *testing.T) {
	for _, kind := range []engine.Backend{engine.VLLM, engine.SGLang, engine.TRTLLM} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s/%d", kind, seed), func(t *testing.T) { randomChanges(t, kind, seed) })
		}
	}
}

func randomChanges(t *testing.T, kind engine.Backend, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 5))
	c := engine.DefaultConfig(kind)
	c.BlockSize, c.NumGPUBlocks = 16, 60
	c.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: 10, DecodeMS: 2}
	synctest.Test(t, func(t *testing.T) {
		group, err := backend.NewGroup(c, 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		clock := NewClock(1)
		w := start(Options{Name: "w", Engine: c, Clock: clock}, group, newRuntimeAlarm())
		defer w.Close()
		wanted, streams, cancelled := map[*Stream]int{}, []*Stream{}, map[*Stream]bool{}
		var last func() error
		hurries := seed%2 == 1
		for range 200 {
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			switch random.IntN(8) {
			case 0:
				next := w.Config()
				next.MaxNumSeqs = uint64(1 + random.IntN(6))
				next.Timing.DecodeMS = float64(1 + random.IntN(4))
				if _, err := w.Tune(next.Tuning()); err != nil {
					t.Fatal(err)
				}
			case 1:
				next := w.Config()
				next.NumGPUBlocks = 40 + random.IntN(40)
				if last, err = w.Restart(next); err != nil {
					t.Fatal(err)
				}
			case 2:
				if hurries {
					w.Hurry()
				}
			case 3:
				if len(streams) > 0 {
					s := streams[random.IntN(len(streams))]
					cancelled[s] = true
					s.Cancel()
				}
			default:
				n := 1 + random.IntN(30)
				s, err := w.Submit(Request{Label: fmt.Sprint(len(streams)), Prompt: prompt(len(streams), 20+random.IntN(200)), MaxOutput: n, Rank: -1})
				if err != nil {
					t.Fatal(err)
				}
				streams, wanted[s] = append(streams, s), n
			}
		}
		for _, s := range streams {
			tokens, end := all(t, s)
			if end != Finished && !(end == Cancelled && (hurries || cancelled[s])) || end == Finished && len(tokens) != wanted[s] {
				t.Errorf("a stream ended as %v after %d of %d tokens", end, len(tokens), wanted[s])
			}
		}
		if last != nil {
			if err := last(); err != nil {
				t.Error(err)
			}
		}
		if n := w.InFlight(); n != 0 || w.Restarting() {
			t.Errorf("%d in flight, restarting %v", n, w.Restarting())
		}
	})
}
