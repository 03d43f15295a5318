package live

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"mockbench/engine"
)

// bench is a worker on fake ranks in a bubble of fake wall time.
type bench struct {
	t     *testing.T
	clock *Clock
	ranks []*fakeRank
	w     *Worker
	begun time.Time
}

// inBubble runs f beside a worker whose passes have a length in ms. Wall time is virtual: every sleep is exact.
func inBubble(t *testing.T, length engine.Time, ranks int, change func(*bench, *Options), f func(*bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, clock: NewClock(1), begun: time.Now()}
		schedulers := make([]engine.Scheduler, ranks)
		for r := range ranks {
			b.ranks = append(b.ranks, &fakeRank{rank: r, length: length})
			schedulers[r] = b.ranks[r]
		}
		o := Options{Name: "w", Clock: b.clock, Seed: 1}
		if change != nil {
			change(b, &o)
		}
		b.w = start(o, engine.NewGroup(schedulers), newRuntimeAlarm())
		defer b.w.Close()
		f(b)
	})
}

// at sleeps until a wall time in ms since the start, and until all goroutines have come to rest.
func (b *bench) at(ms float64) {
	time.Sleep(time.Duration(ms*1e6) - time.Since(b.begun))
	synctest.Wait()
}

func (b *bench) submit(label string, tokens int) *Stream {
	b.t.Helper()
	s, err := b.w.Submit(Request{Label: label, Prompt: []uint32{1}, MaxOutput: tokens, Rank: -1})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// next waits for the next tokens of a stream and returns how many there are and the wall time in ms.
func (b *bench) next(s *Stream) (tokens int, end End, ms float64) {
	b.t.Helper()
	got, end, err := s.Take(context.Background(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return len(got), end, b.ms()
}

func (b *bench) ms() float64 { return float64(time.Since(b.begun)) / 1e6 }

// all takes a stream to its end.
func all(t *testing.T, s *Stream) ([]Token, End) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var tokens []Token
	for {
		var end End
		var err error
		tokens, end, err = s.Take(ctx, tokens)
		if err != nil {
			t.Fatal(err)
		}
		if end != Open {
			return tokens, end
		}
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
