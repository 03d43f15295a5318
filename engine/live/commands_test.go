package live

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mockbench/engine"
)

func TestSubmitDuringAPassWaitsForItsEnd(t *testing.T) {
	var arrivals journal
	change := func(b *bench, o *Options) {
		o.Readers = []engine.Reader{readerFunc(func(p *engine.Pass) {
			for _, out := range p.Outputs {
				if out.Position == 0 {
					arrivals.note("%s %g", out.Request.Label, out.Request.Arrival)
				}
			}
		})}
	}
	inBubble(t, 200, 1, change, func(b *bench) {
		b.submit("a", 2)
		b.at(50)
		s := b.submit("b", 1)
		b.at(199)
		b.ranks[0].log.expect(t, "commands during the pass", "submit a at 0")
		_, end, ms := b.next(s)
		equal(t, "time", ms, 400)
		equal(t, "end", end, Finished)
		b.ranks[0].log.expect(t, "commands", "submit b at 200")
		arrivals.expect(t, "arrivals", "a 0", "b 50")
	})
}

// A pass that makes up for lateness starts in the past, but not before the requests in it arrived.
func TestNoArrivalAfterTheStart(t *testing.T) {
	change := func(b *bench, o *Options) {
		stalling(0, 3*time.Millisecond)(b, o)
		o.Readers = append(o.Readers, readerFunc(func(p *engine.Pass) {
			for _, out := range p.Outputs {
				if out.Request.Arrival > p.Start {
					t.Errorf("%s arrived at %g, after the start at %g", out.Request.Label, out.Request.Arrival, p.Start)
				}
			}
		}))
	}
	inBubble(t, 10, 1, change, func(b *bench) {
		b.submit("a", 3)
		b.at(12) // the worker is stalled between passes
		s := b.submit("b", 1)
		_, _, ms := b.next(s)
		equal(t, "time", ms, 20)
	})
}

func TestCancelDuringAPassActsAtOnce(t *testing.T) {
	inBubble(t, 200, 1, nil, func(b *bench) {
		b.clock.Pause() // so that both are in the first pass
		s := b.submit("a", 2)
		other := b.submit("b", 1)
		b.at(0)
		b.clock.Resume()
		b.at(50)
		s.Cancel()
		n, end, ms := b.next(s)
		equal(t, "tokens", n, 0)
		equal(t, "end", end, Cancelled)
		equal(t, "time", ms, 50)
		s.Cancel() // does nothing
		_, end, ms = b.next(other)
		equal(t, "other's end", end, Finished)
		equal(t, "other's time", ms, 200)
		equal(t, "in flight", b.w.InFlight(), 0)
		b.ranks[0].log.expect(t, "commands", "submit a at 0", "submit b at 0", "cancel a at 0")
	})
}

func TestCancelBeforeTheEngineHasIt(t *testing.T) {
	inBubble(t, 100, 1, nil, func(b *bench) {
		b.submit("a", 1)
		b.at(10)
		s := b.submit("b", 1)
		s.Cancel()
		_, end, ms := b.next(s)
		equal(t, "end", end, Cancelled)
		equal(t, "time", ms, 10)
		b.at(300)
		b.ranks[0].log.expect(t, "commands", "submit a at 0")
	})
}

func TestCancellationsComeBeforeSubmits(t *testing.T) {
	var boundary, more chan bool
	change := func(b *bench, o *Options) {
		boundary, more = make(chan bool), make(chan bool)
		o.Readers = []engine.Reader{readerFunc(func(p *engine.Pass) {
			if p.Number == 0 {
				boundary <- true
				<-more
			}
		})}
	}
	inBubble(t, 10, 1, change, func(b *bench) {
		a := b.submit("a", 9)
		<-boundary
		c := b.submit("c", 1)
		a.Cancel()
		more <- true
		all(t, c)
		b.ranks[0].log.expect(t, "commands", "submit a at 0", "cancel a at 10", "submit c at 10")
	})
}

// watcher notes what it is told.
type watcher struct {
	name string
	log  *journal
}

func (w watcher) Pass(p *engine.Pass) { w.log.note("%s pass %d", w.name, p.Rank) }
func (w watcher) Load(rank int, now engine.Time, l engine.Load) {
	w.log.note("%s load %d: %d", w.name, rank, l.Running)
}
func (w watcher) Submitted(rank int, r *engine.Request, now engine.Time) {
	w.log.note("%s submitted %s", w.name, r.Label)
}
func (w watcher) Cancelled(rank int, r *engine.Request, now engine.Time) {
	w.log.note("%s cancelled %s", w.name, r.Label)
}

func TestOrderOfPublication(t *testing.T) {
	var log journal
	change := func(b *bench, o *Options) { o.Readers = []engine.Reader{watcher{"x", &log}, watcher{"y", &log}} }
	inBubble(t, 10, 2, change, func(b *bench) {
		b.clock.Pause()
		a := b.submit("a", 2)
		b.at(1)
		log.expect(t, "submit", "x submitted a", "y submitted a", "x load 0: 1", "y load 0: 1")
		c := b.submit("c", 1)
		b.at(2)
		log.expect(t, "submit", "x submitted c", "y submitted c", "x load 1: 1", "y load 1: 1")
		b.w.Step()
		b.at(3)
		log.expect(t, "pass", "x pass 0", "y pass 0", "x pass 1", "y pass 1",
			"x load 0: 1", "y load 0: 1", "x load 1: 0", "y load 1: 0")
		b.clock.Resume()
		b.at(4)
		a.Cancel()
		b.at(5)
		log.expect(t, "cancel that empties a rank", "x cancelled a", "y cancelled a", "x load 0: 0", "y load 0: 0")
		equal(t, "rank of a", a.Rank, 0)
		equal(t, "rank of c", c.Rank, 1)
		equal(t, "loads", len(b.w.Load()), 2)
	})
}

func TestRefusedBeforeTheEngine(t *testing.T) {
	inBubble(t, 10, 2, nil, func(b *bench) {
		for _, c := range []struct {
			r       Request
			setting string
		}{
			{Request{MaxOutput: 1, Rank: 2}, "dp_rank"},
			{Request{MaxOutput: 1, Rank: -2}, "dp_rank"},
			{Request{MaxOutput: 0, Rank: 0}, "max_tokens"},
			{Request{MaxOutput: 5, Output: []uint32{}, Rank: 0}, "max_tokens"},
		} {
			_, err := b.w.Submit(c.r)
			var wrong *engine.SettingError
			if !errors.As(err, &wrong) || wrong.Setting != c.setting || wrong.Kind != engine.KindRange {
				t.Errorf("%+v: got %v", c.r, err)
			}
		}
		b.at(5)
		b.ranks[0].log.expect(t, "commands")
		equal(t, "in flight", b.w.InFlight(), 0)
	})
}

func TestLooksNeverWait(t *testing.T) {
	inBubble(t, 100, 1, nil, func(b *bench) {
		look := func(when string, running int) {
			t.Helper()
			before := b.ms()
			var s engine.Snapshot
			if err := b.w.Inspect(0, &s); err != nil {
				t.Fatal(err)
			}
			equal(t, when+": running", s.Load.Running, running)
			info, err := b.w.Block(0, 7)
			if err != nil || info.Block != 7 {
				t.Errorf("%s: block %v, %v", when, info, err)
			}
			equal(t, when+": time taken", b.ms()-before, 0)
		}
		look("idle", 0)
		b.submit("a", 9)
		b.at(50)
		look("in a pass", 1)
		b.clock.Pause()
		look("paused", 1)
		var wrong *engine.SettingError
		if err := b.w.Inspect(1, &engine.Snapshot{}); !errors.As(err, &wrong) {
			t.Errorf("rank 1: got %v", err)
		}
		b.clock.Resume()
	})
}

func TestDrain(t *testing.T) {
	inBubble(t, 10, 1, nil, func(b *bench) {
		s := b.submit("a", 3)
		if err := b.w.Drain(context.Background()); err != nil {
			t.Fatal(err)
		}
		equal(t, "time", b.ms(), 30)
		tokens, end := all(t, s)
		equal(t, "tokens", len(tokens), 3)
		equal(t, "end", end, Finished)
		if _, err := b.w.Submit(Request{MaxOutput: 1}); err != ErrClosed {
			t.Errorf("submit after drain: got %v", err)
		}
		if err := b.w.Inspect(0, &engine.Snapshot{}); err != nil {
			t.Errorf("inspect after drain: got %v", err)
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	inBubble(t, 10, 1, nil, func(b *bench) {
		s := b.submit("a", 1000)
		ctx, stop := context.WithTimeout(context.Background(), 35*time.Millisecond)
		defer stop()
		second := make(chan error)
		go func() { second <- b.w.Drain(context.Background()) }()
		if err := b.w.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		equal(t, "time", b.ms(), 35)
		equal(t, "second", <-second, nil)
		tokens, end := all(t, s)
		equal(t, "tokens", len(tokens), 3)
		equal(t, "end", end, Cancelled)
	})
}

func TestClose(t *testing.T) {
	inBubble(t, 10, 1, nil, func(b *bench) {
		s := b.submit("a", 1000)
		b.at(15)
		queued := b.submit("b", 1000)
		b.w.Close()
		equal(t, "time", b.ms(), 15)
		_, end := all(t, s)
		equal(t, "end", end, Cancelled)
		_, end = all(t, queued)
		equal(t, "queued end", end, Cancelled)
		equal(t, "in flight", b.w.InFlight(), 0)
		equal(t, "err", b.w.Err(), nil)
		<-b.w.Done()
		if _, err := b.w.Submit(Request{MaxOutput: 1}); err != ErrClosed {
			t.Errorf("submit: got %v", err)
		}
		if err := b.w.Inspect(0, &engine.Snapshot{}); err != ErrClosed {
			t.Errorf("inspect: got %v", err)
		}
		s.Cancel()
		b.w.Step()
		b.w.Close()
	})
}

func TestEngineFailureEndsTheWorker(t *testing.T) {
	inBubble(t, 10, 1, func(b *bench, o *Options) { b.ranks[0].onCommit = func() { panic("out of blocks") } }, func(b *bench) {
		a := b.submit("a", 3)
		b.at(5)
		queued := b.submit("b", 3)
		<-b.w.Done()
		var failure *PanicError
		if !errors.As(b.w.Err(), &failure) || failure.Value != "out of blocks" || len(failure.Stack) == 0 {
			t.Fatalf("got %v", b.w.Err())
		}
		for _, s := range []*Stream{a, queued} {
			_, end := all(t, s)
			equal(t, "end", end, Failed)
			equal(t, "stream's error", s.Err(), b.w.Err())
		}
		if err := b.w.Drain(context.Background()); err != nil {
			t.Errorf("drain: got %v", err) // nothing is in flight
		}
	})
}

func TestTakeEndsWithItsContext(t *testing.T) {
	inBubble(t, 10, 1, nil, func(b *bench) {
		s := b.submit("a", 1)
		ctx, stop := context.WithTimeout(context.Background(), time.Millisecond)
		defer stop()
		if _, _, err := s.Take(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
	})
}
