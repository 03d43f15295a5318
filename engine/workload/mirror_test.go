package workload

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
	"mockbench/engine/live"
)

// Both fleets get the same requests in the same order, with answers that make the conversations go on alike.
func TestMirror(t *testing.T) {
	const requests = 200
	l := newLoad(t, Options{Concurrency: 7, Requests: requests, PromptMean: 20, OutputMean: 5, Turns: 3, Seed: 4})
	a := &fake{hold: open(), arrived: make(chan live.Request, requests)}
	b := &fake{hold: open(), arrived: make(chan live.Request, requests)}
	to, mirror := target(t, a), target(t, b)
	to.Mirror = &mirror
	if err := within(t, func(ctx context.Context) error { return l.Run(ctx, to) }); err != nil {
		t.Fatal(err)
	}
	for range requests {
		original, copied := <-a.arrived, <-b.arrived
		if d := cmp.Diff(original, copied); d != "" || len(original.Output) != original.MaxOutput {
			t.Fatalf("%d tokens planned of %d, (-original +copy):\n%s", len(original.Output), original.MaxOutput, d)
		}
	}
	if c := l.Counts(); c.Finished != requests || c.Mirrored != requests || c.Unmirrored != 0 {
		t.Errorf("counts %+v", c)
	}
}

// A mirror that takes nothing, or falls behind, does not hold the load up; what it misses is counted.
func TestMirrorThatFails(t *testing.T) {
	held := make(chan struct{})
	for name, c := range map[string]struct {
		worker *fake
		copies int
	}{"closed": {&fake{closed: true}, 0}, "slow": {&fake{hold: held}, 5}} {
		l := newLoad(t, Options{Concurrency: 3, Requests: 40, PromptMean: 20, OutputMean: 5, MaxInFlight: 5})
		to, mirror := target(t, &fake{hold: open()}), target(t, c.worker)
		to.Mirror = &mirror
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- l.Run(ctx, to) }()
		err := within(t, func(ctx context.Context) error {
			for l.Counts().Finished < 40 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				wait(ctx, 1e6, nil, nil)
			}
			return nil
		})
		cancel()
		<-done
		if got := l.Counts(); err != nil || got.Mirrored != c.copies || got.Unmirrored != 40-c.copies {
			t.Errorf("%s: counts %+v, %v", name, got, err)
		}
	}
}

// jump is a clock that is at once where somebody waits for it to be.
type jump struct{ now engine.Time }

func (c *jump) Now() engine.Time { return c.now }

func (c *jump) Until(t engine.Time) (time.Duration, <-chan struct{}, bool) {
	c.now = t
	return 0, nil, true
}

// Bursts keep the rate: fewer arrivals, each of several requests.
func TestBurst(t *testing.T) {
	const burst, requests = 10, 4000
	l := newLoad(t, Options{Rate: 200, Burst: burst, Requests: requests, MaxInFlight: requests, PromptMean: 20, OutputMean: 1, Seed: 3})
	clock, arrivals := &jump{}, map[engine.Time]int{}
	to := target(t, &fake{hold: open()})
	to.Clock = clock
	place := to.Place
	to.Place = func(q *Request) (int, int, error) {
		arrivals[clock.now]++
		return place(q)
	}
	if err := within(t, func(ctx context.Context) error { return l.Run(ctx, to) }); err != nil {
		t.Fatal(err)
	}
	for at, n := range arrivals {
		if n != burst {
			t.Errorf("%d requests arrive at %v", n, at)
		}
	}
	if want := engine.Time(requests / 200 * 1000); clock.now < want*0.8 || clock.now > want*1.2 {
		t.Errorf("%d requests take %v ms, want about %v", requests, clock.now, want)
	}
}
