package live

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"mockbench/engine"
)

// prefillAfter and decodeAfter are the lengths of passes, in ms.
const prefillAfter, decodeAfter = 10, 2

func roleOptions(role engine.Role, backend engine.Backend, blocks int) Options {
	c := engine.DefaultConfig(backend)
	c.BlockSize, c.NumGPUBlocks, c.Role, c.EmitKVEvents = 16, blocks, role, role == engine.PrefillRole
	c.EnablePrefixCaching = backend != engine.SGLang // whose cached pages count as active
	c.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: prefillAfter, DecodeMS: decodeAfter}
	return Options{Name: "w", Engine: c}
}

// both runs f for a vLLM and an SGLang rank.
func both(t *testing.T, role engine.Role, blocks int, f func(*bench)) {
	for _, b := range []engine.Backend{engine.VLLM, engine.SGLang} {
		t.Run(string(b), func(t *testing.T) { inBubbleWith(t, roleOptions(role, b, blocks), f) })
	}
}

func handoffID(n int) engine.ID { return engine.ID{0: 7, 15: byte(n)} }

func (b *bench) source(n, tokens int) *Transfer {
	b.t.Helper()
	t, err := b.w.Source(Request{Label: fmt.Sprint("s", n), Prompt: prompt(n, tokens), MaxOutput: 1, Rank: -1}, handoffID(n))
	if err == nil {
		err = t.Submit()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

func (b *bench) destination(n, tokens, output int) *Transfer {
	b.t.Helper()
	t, err := b.w.Destination(Request{Label: fmt.Sprint("d", n), Prompt: prompt(n, tokens), MaxOutput: output, Rank: -1}, handoffID(n))
	if err == nil {
		err = t.Submit()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

// expectStep takes the next step and checks when it comes, in ms.
func (b *bench) expectStep(t *Transfer, kind StepKind, tokens int, ms float64) {
	b.t.Helper()
	select {
	case s := <-t.Steps():
		if s.Kind != kind || s.Tokens != tokens || b.ms() != ms {
			b.t.Errorf("step %+v at %g ms, want kind %d with %d tokens at %g ms", s, b.ms(), kind, tokens, ms)
		}
	case <-time.After(time.Minute):
		b.t.Errorf("no step, want kind %d at %g ms", kind, ms)
	}
}

func (b *bench) active(what string, want int) {
	b.t.Helper()
	b.at(b.ms())
	if got := b.w.Load()[0].ActiveBlocks; got != want {
		b.t.Errorf("%s: %d active blocks, want %d", what, got, want)
	}
}

func TestSourceIsHeldUntilItsRelease(t *testing.T) {
	both(t, engine.PrefillRole, 64, func(b *bench) {
		s := b.source(1, 40)
		b.expectStep(s, Accepted, 0, 0)
		tokens, end, ms := b.next(s.Stream)
		equal(b.t, "tokens", tokens, 1)
		equal(b.t, "end", end, Finished)
		equal(b.t, "time", ms, prefillAfter)
		b.expectStep(s, Ready, 40, prefillAfter)
		equal(b.t, "in flight", b.w.InFlight(), 0)
		b.at(500)
		if l := b.w.Load()[0]; l.ActiveBlocks < 3 {
			b.t.Errorf("a held source has %d active blocks", l.ActiveBlocks)
		}
		holds := b.w.Holds()
		if len(holds) != 1 || holds[0] != (Hold{Handoff: handoffID(1), Request: "s1", Rank: 0, Source: true, Since: prefillAfter}) {
			b.t.Errorf("holds %+v", holds)
		}
		equal(b.t, "release", s.Release(), true)
		b.active("after the release", 0)
		equal(b.t, "second release", s.Release(), false)
		equal(b.t, "cancel after the release", s.Cancel(), false)
		equal(b.t, "holds", len(b.w.Holds()), 0)
	})
}

func TestDestinationRunsWhenActivated(t *testing.T) {
	both(t, engine.DecodeRole, 64, func(b *bench) {
		d := b.destination(1, 40, 3)
		b.expectStep(d, Accepted, 0, 0)
		b.expectStep(d, Ready, 48, 0)
		b.at(100)
		equal(b.t, "tokens before", len(d.tokens), 0)
		equal(b.t, "activate", d.Activate(), true)
		equal(b.t, "second activate", d.Activate(), false)
		tokens, end := all(b.t, d.Stream)
		equal(b.t, "tokens", len(tokens), 3)
		equal(b.t, "end", end, Finished)
		equal(b.t, "time", b.ms(), 100+3*decodeAfter)
		b.active("at the end", 0)
		equal(b.t, "cancel at the end", d.Cancel(), false)
	})
}

// A destination that finds the pool full becomes ready when a request ends; both may happen in the middle of a pass.
func TestDestinationsWaitForRoom(t *testing.T) {
	both(t, engine.DecodeRole, 8, func(b *bench) {
		first := b.destination(1, 90, 20)
		b.expectStep(first, Accepted, 0, 0)
		b.expectStep(first, Ready, 96, 0)
		equal(b.t, "activate", first.Activate(), true)
		b.at(1) // in a pass
		second := b.destination(2, 60, 1)
		b.expectStep(second, Accepted, 0, 1)
		equal(b.t, "activation without room", second.Activate(), false)
		all(b.t, first.Stream)
		b.expectStep(second, Ready, 64, 20*decodeAfter)
		equal(b.t, "activate", second.Activate(), true)
		_, end := all(b.t, second.Stream)
		equal(b.t, "end", end, Finished)
		b.active("at the end", 0)
	})
}

func TestCancelledHandoffsKeepNothing(t *testing.T) {
	both(t, engine.PrefillRole, 64, func(b *bench) {
		held := b.source(1, 40)
		b.at(20)
		equal(b.t, "cancel of a held source", held.Cancel(), true)
		b.active("after it", 0)

		running := b.source(2, 40)
		b.at(25)
		equal(b.t, "cancel of a running source", running.Cancel(), true)
		equal(b.t, "time", b.ms(), 30) // with the pass
		tokens, end := all(b.t, running.Stream)
		equal(b.t, "tokens", len(tokens), 1)
		equal(b.t, "end", end, Finished)
		b.active("after it", 0)

		left := b.source(3, 40)
		b.at(35)
		left.Stream.Cancel()
		tokens, end = all(b.t, left.Stream)
		equal(b.t, "tokens of a client that left", len(tokens), 0)
		equal(b.t, "end", end, Cancelled)
		equal(b.t, "time", b.ms(), 35)
		b.expectStep(left, Accepted, 0, 35)
		b.expectStep(left, Lost, 0, 35)
		b.at(60)
		b.active("after it", 0)

		gone := b.source(4, 40)
		b.at(80)
		gone.Stream.Cancel() // the stream has ended, the hold stands
		b.active("after a client that left too late", 0)
	})
	both(t, engine.DecodeRole, 64, func(b *bench) {
		reserved := b.destination(1, 40, 5)
		b.at(1)
		equal(b.t, "cancel of a reserved destination", reserved.Cancel(), true)
		_, end := all(b.t, reserved.Stream)
		equal(b.t, "end", end, Cancelled)
		b.active("after it", 0)

		running := b.destination(2, 40, 500)
		b.at(2)
		running.Activate()
		b.at(100.5)
		equal(b.t, "cancel of a running destination", running.Cancel(), true)
		equal(b.t, "time", b.ms(), 100.5)
		_, end = all(b.t, running.Stream)
		equal(b.t, "end", end, Cancelled)
		b.at(110)
		b.active("after it", 0)

		last := b.destination(3, 40, 1)
		b.at(120)
		last.Activate()
		b.at(121) // its last token is in the running pass
		last.Stream.Cancel()
		tokens, end := all(b.t, last.Stream)
		equal(b.t, "tokens", len(tokens), 0)
		equal(b.t, "end", end, Cancelled)
		b.at(130)
		b.active("after it", 0)
		equal(b.t, "in flight", b.w.InFlight(), 0)
	})
}

// A handoff whose id is all zeros is one like any other.
func TestZeroHandoffID(t *testing.T) {
	both(t, engine.PrefillRole, 64, func(b *bench) {
		zero, err := b.w.Source(Request{Prompt: prompt(1, 40), MaxOutput: 1, Rank: -1}, engine.ID{})
		if err == nil {
			err = zero.Submit()
		}
		if err != nil {
			b.t.Fatal(err)
		}
		b.at(15)
		all(b.t, b.send(2, 40, 1)) // no handoff
		equal(b.t, "release", zero.Release(), true)
		b.active("after the release", 0)
	})
}

func TestReleaseBeforeTheSourceIsComplete(t *testing.T) {
	both(t, engine.PrefillRole, 64, func(b *bench) {
		b.source(1, 40)
		b.at(1)
		waiting := b.source(2, 40)
		b.at(2)
		equal(b.t, "release before the engine has it", waiting.Release(), false)
		unread := b.source(3, 40)
		equal(b.t, "cancel before the engine has it", unread.Cancel(), true)
		equal(b.t, "time", b.ms(), prefillAfter)
		b.at(prefillAfter + 1)
		equal(b.t, "release of a running source", waiting.Release(), true)
		tokens, end := all(b.t, waiting.Stream)
		equal(b.t, "tokens", len(tokens), 1)
		equal(b.t, "end", end, Finished)
		b.active("the first is held, the second is not", 3)
		b.expectStep(waiting, Accepted, 0, 2*prefillAfter)
		b.expectStep(waiting, Lost, 0, 2*prefillAfter)
		b.expectStep(unread, Lost, 0, 2*prefillAfter)
	})
}

func TestRefusedDestination(t *testing.T) {
	both(t, engine.DecodeRole, 4, func(b *bench) {
		d := b.destination(1, 400, 5)
		s := <-d.Steps()
		var wrong *engine.SettingError
		if s.Kind != Refused || !errors.As(s.Err, &wrong) {
			b.t.Errorf("step %+v", s)
		}
		_, end := all(b.t, d.Stream)
		equal(b.t, "end", end, Failed)
		equal(b.t, "cancel", d.Cancel(), false)

		b.destination(2, 4, 5)
		again := b.destination(2, 4, 5)
		if s := <-again.Steps(); s.Kind != Refused || !errors.Is(s.Err, engine.ErrActive) {
			b.t.Errorf("step of a second transfer of the same handoff %+v", s)
		}
	})
}

// rejections notes the requests that readers are told of, and those that records call rejected.
type rejections struct{ submitted, rejected []string }

func (n *rejections) Pass(p *engine.Pass) {
	for _, o := range p.Outputs {
		if o.Rejected && o.Completed {
			n.rejected = append(n.rejected, o.Request.Label)
		}
	}
}

func (n *rejections) Submitted(_ int, r *engine.Request, _ engine.Time) {
	n.submitted = append(n.submitted, r.Label)
}

func (n *rejections) Cancelled(int, *engine.Request, engine.Time) {}

// Without a word of it in the records, reports would not count a request that no decode worker can hold.
func TestReadersLearnOfRefusedDestinations(t *testing.T) {
	for _, backend := range []engine.Backend{engine.VLLM, engine.SGLang} {
		var notes rejections
		o := roleOptions(engine.DecodeRole, backend, 4)
		o.Readers = []engine.Reader{&notes}
		inBubbleWith(t, o, func(b *bench) {
			b.destination(1, 400, 5)
			b.destination(2, 4, 5)
			b.destination(2, 4, 5) // another request under the handoff of one that goes on
			b.at(1)
			equal(b.t, "submitted", fmt.Sprint(notes.submitted), "[d1 d2]")
			equal(b.t, "rejected", fmt.Sprint(notes.rejected), "[d1]")
		})
	}
}

func TestRejectedSourceIsLost(t *testing.T) {
	inBubbleWith(t, roleOptions(engine.PrefillRole, engine.VLLM, 4), func(b *bench) {
		s := b.source(1, 400)
		_, end := all(b.t, s.Stream)
		equal(b.t, "end", end, Rejected)
		b.expectStep(s, Accepted, 0, 0)
		b.expectStep(s, Lost, 0, 0)
		equal(b.t, "cancel", s.Cancel(), false)
	})
}

func TestCancelBeforeSubmit(t *testing.T) {
	inBubbleWith(t, roleOptions(engine.PrefillRole, engine.VLLM, 64), func(b *bench) {
		for _, cancel := range []func(*Transfer){func(t *Transfer) { t.Cancel() }, func(t *Transfer) { t.Stream.Cancel() }} {
			s, err := b.w.Source(Request{Prompt: prompt(1, 4), MaxOutput: 1, Rank: -1}, handoffID(1))
			if err != nil {
				b.t.Fatal(err)
			}
			cancel(s)
			_, end := all(b.t, s.Stream)
			equal(b.t, "end", end, Cancelled)
			equal(b.t, "submit", s.Submit(), ErrClosed)
			equal(b.t, "in flight", b.w.InFlight(), 0)
		}
	})
}

// Whoever drains a worker or closes it is not kept by handoffs, and their sides learn of it.
func TestDrainAndCloseLetGoOfHandoffs(t *testing.T) {
	inBubbleWith(t, roleOptions(engine.DecodeRole, engine.VLLM, 64), func(b *bench) {
		d := b.destination(1, 40, 5)
		b.at(1)
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		if err := b.w.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			b.t.Errorf("drain: %v", err)
		}
		_, end := all(b.t, d.Stream)
		equal(b.t, "end", end, Cancelled)
		b.active("after the drain", 0)
	})
	inBubbleWith(t, roleOptions(engine.PrefillRole, engine.VLLM, 64), func(b *bench) {
		held, running := b.source(1, 40), b.source(2, 40)
		b.at(5)
		b.w.Close()
		for _, s := range []*Transfer{held, running} {
			_, end := all(b.t, s.Stream)
			equal(b.t, "end", end, Cancelled)
			equal(b.t, "release", s.Release(), false)
			equal(b.t, "cancel", s.Cancel(), false)
		}
		equal(b.t, "holds", len(b.w.Holds()), 0)
	})
}

func TestSleepFollowsTheClock(t *testing.T) {
	inBubbleWith(t, roleOptions(engine.PrefillRole, engine.VLLM, 64), func(b *bench) {
		b.clock.SetSpeed(2)
		slept := make(chan float64)
		go func() { _ = b.w.Sleep(context.Background(), 100); slept <- b.ms() }()
		b.at(25)
		b.clock.Pause()
		b.at(1025)
		b.clock.Resume()
		equal(b.t, "woke", <-slept, 1050)
		ctx, stop := context.WithTimeout(context.Background(), time.Millisecond)
		defer stop()
		equal(b.t, "error", b.w.Sleep(ctx, 1000), context.DeadlineExceeded)
	})
}
