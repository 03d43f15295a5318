package live

import (
	"testing"
	"time"

	"mockbench/engine"
)

// readerFunc is a Reader made of a function.
type readerFunc func(*engine.Pass)

func (f readerFunc) Pass(p *engine.Pass) { f(p) }

func TestPassesAreSpacedByModelledTime(t *testing.T) {
	inBubble(t, 10, 1, nil, func(b *bench) {
		b.at(7)
		s := b.submit("a", 5)
		for k := 1; k <= 5; k++ {
			n, _, ms := b.next(s)
			equal(t, "tokens", n, 1)
			equal(t, "time", ms, float64(7+10*k))
		}
		equal(t, "slip", b.w.Slip(), 0)
		equal(t, "passes", b.w.Passes(), 5)
	})
}

// stalling lets the reader of records block the worker once, after the given pass.
func stalling(pass uint64, d time.Duration) func(*bench, *Options) {
	return func(b *bench, o *Options) {
		o.Readers = []engine.Reader{readerFunc(func(p *engine.Pass) {
			if p.Number == pass {
				time.Sleep(d)
			}
		})}
	}
}

func TestLatenessIsMadeUpFor(t *testing.T) {
	inBubble(t, 10, 1, stalling(0, 4*time.Millisecond), func(b *bench) {
		s := b.submit("a", 3)
		for _, want := range []float64{14, 20, 30} {
			_, _, ms := b.next(s)
			equal(t, "time", ms, want)
		}
		equal(t, "slip", b.w.Slip(), 0)
	})
}

func TestLatenessBeyondTheLimitIsLost(t *testing.T) {
	inBubble(t, 10, 1, stalling(0, 30*time.Millisecond), func(b *bench) {
		s := b.submit("a", 3)
		for _, want := range []float64{40, 45, 55} {
			_, _, ms := b.next(s)
			equal(t, "time", ms, want)
		}
		equal(t, "slip", b.w.Slip(), 25*time.Millisecond)
	})
}

func TestLimitIsWallTime(t *testing.T) {
	inBubble(t, 10, 1, stalling(0, 8*time.Millisecond), func(b *bench) {
		b.clock.SetSpeed(10) // a pass takes 1 ms; of 8 ms late, 5 are made up for
		s := b.submit("a", 9)
		all(t, s)
		equal(t, "slip", b.w.Slip(), 3*time.Millisecond)
	})
}

func TestBreakForgetsTheDeadline(t *testing.T) {
	inBubble(t, 10, 1, nil, func(b *bench) {
		all(t, b.submit("a", 1))
		b.at(50)
		s := b.submit("b", 1)
		_, _, ms := b.next(s)
		equal(t, "time", ms, 60)
		equal(t, "slip", b.w.Slip(), 0)
	})
}

func TestSpeedActsDuringAPass(t *testing.T) {
	inBubble(t, 100, 1, nil, func(b *bench) {
		s := b.submit("a", 2)
		b.at(50)
		b.clock.SetSpeed(10) // 50 ms are left: 5 ms of wall time
		_, _, ms := b.next(s)
		equal(t, "first", ms, 55)
		_, _, ms = b.next(s)
		equal(t, "second", ms, 65)
	})
}

func TestPauseStopsTime(t *testing.T) {
	inBubble(t, 10, 1, nil, func(b *bench) {
		s := b.submit("a", 2)
		b.at(4)
		b.clock.Pause()
		b.at(1000)
		equal(t, "passes while paused", b.w.Passes(), 0)
		b.clock.Resume()
		_, _, ms := b.next(s)
		equal(t, "first", ms, 1006)
		_, _, ms = b.next(s)
		equal(t, "second", ms, 1016)
		equal(t, "slip", b.w.Slip(), 0)
	})
}

func TestStep(t *testing.T) {
	var ends journal
	note := func(b *bench, o *Options) {
		o.Readers = []engine.Reader{readerFunc(func(p *engine.Pass) { ends.note("%g", p.End) })}
	}
	inBubble(t, 10, 1, note, func(b *bench) {
		b.w.Step() // nothing: the clock runs
		s := b.submit("a", 9)
		b.at(4)
		b.clock.Pause()
		for k := uint64(1); k <= 3; k++ {
			b.w.Step()
			b.at(100)
			equal(t, "passes", b.w.Passes(), k)
		}
		n, _, ms := b.next(s)
		equal(t, "tokens", n, 3)
		equal(t, "time", ms, 100)
		b.clock.Resume() // the clock stands at 4, the worker at 30
		_, _, ms = b.next(s)
		equal(t, "after resume", ms, 110)
		ends.expect(t, "ends", "10", "20", "30", "40")
	})
}

func TestStepWithoutWorkIsForgotten(t *testing.T) {
	inBubble(t, 10, 1, nil, func(b *bench) {
		b.clock.Pause()
		b.w.Step()
		b.at(5)
		b.submit("a", 2)
		b.at(50)
		equal(t, "passes", b.w.Passes(), 0)
		b.clock.Resume()
		b.at(55)
		equal(t, "passes", b.w.Passes(), 0)
		b.at(60)
		equal(t, "passes", b.w.Passes(), 1)
	})
}

func TestNoDelay(t *testing.T) {
	var log journal
	fast := func(b *bench, o *Options) {
		o.NoDelay = true
		o.Readers = []engine.Reader{readerFunc(func(p *engine.Pass) { log.note("%g to %g", p.Start, p.End) })}
	}
	inBubble(t, 10, 1, fast, func(b *bench) {
		tokens, end := all(t, b.submit("a", 500))
		equal(t, "tokens", len(tokens), 500)
		equal(t, "end", end, Finished)
		all(t, b.submit("b", 1))
		equal(t, "wall time", b.ms(), 0)
		passes := log.take()
		equal(t, "last pass of a", passes[499], "4990 to 5000")
		equal(t, "pass of b", passes[500], "5000 to 5010")
	})
}

func TestNoDelayPauses(t *testing.T) {
	inBubble(t, 10, 1, func(b *bench, o *Options) { o.NoDelay = true }, func(b *bench) {
		b.clock.Pause()
		s := b.submit("a", 3)
		b.at(10)
		equal(t, "passes", b.w.Passes(), 0)
		b.w.Step()
		b.at(20)
		equal(t, "passes", b.w.Passes(), 1)
		b.clock.Resume()
		tokens, _ := all(t, s)
		equal(t, "tokens", len(tokens), 3)
	})
}

func TestInternalEvents(t *testing.T) {
	change := func(b *bench, o *Options) {
		b.ranks[0].deadline = 30
		o.Readers = []engine.Reader{readerFunc(func(p *engine.Pass) { b.ranks[0].log.note("record") })}
	}
	inBubble(t, 10, 1, change, func(b *bench) {
		b.at(29)
		b.ranks[0].log.expect(t, "before")
		b.at(30)
		b.ranks[0].log.expect(t, "events", "advance at 30", "record")
	})
}
