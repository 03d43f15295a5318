package workload

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/router"
)

func newLoad(t *testing.T, o Options) *Load {
	t.Helper()
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(l *Load, n int) (all []*Request) {
	for range n {
		all = append(all, l.Next(0))
	}
	return all
}

func TestSameSeedSameRequests(t *testing.T) {
	o := Demo(4)
	o.Seed = 9
	ignore := cmpopts.IgnoreUnexported(Request{})
	a, b := newLoad(t, o), newLoad(t, o)
	if d := cmp.Diff(take(a, 50), take(b, 50), ignore); d != "" {
		t.Error(d)
	}
	if a.Gap() != b.Gap() {
		t.Error("arrivals differ")
	}
	o.Seed = 10
	if cmp.Equal(take(newLoad(t, o), 1), take(newLoad(t, Demo(4)), 1), ignore) {
		t.Error("another seed gives the same request")
	}
}

func TestRequestsAreAsAskedFor(t *testing.T) {
	const n = 4000
	o := Options{Concurrency: 1, PromptMean: 200, PromptSpread: 50, OutputMean: 80, OutputSpread: 20,
		PrefixCount: 3, PrefixLength: 64, PrefixShare: 0.25}
	heads := map[uint32]int{}
	var prompts, outputs, shared int
	l := newLoad(t, o)
	for _, q := range take(l, n) {
		for _, token := range q.Prompt {
			if token < FirstToken || token > LastToken {
				t.Fatalf("token %d", token)
			}
		}
		prompts += len(q.Prompt)
		outputs += q.MaxOutput
		heads[q.Prompt[0]]++
	}
	for i := range o.PrefixCount {
		shared += heads[l.prefix(i)[0]]
	}
	for _, f := range []struct {
		name            string
		got, want, slip float64
	}{
		{"share of prefixes", float64(shared) / n, 0.25, 0.03},
		{"mean prompt", float64(prompts) / n, 200 + 0.25*64, 4},
		{"mean output", float64(outputs) / n, 80, 2},
	} {
		if math.Abs(f.got-f.want) > f.slip {
			t.Errorf("%s is %v, want %v", f.name, f.got, f.want)
		}
	}
}

func TestArrivalRate(t *testing.T) {
	l := newLoad(t, Options{Rate: 20, PromptMean: 1, OutputMean: 1})
	var sum engine.Time
	for range 10_000 {
		sum += l.Gap()
	}
	if mean := sum / 10_000; mean < 48 || mean > 52 {
		t.Errorf("mean gap %v ms, want 50", mean)
	}
}

func TestFollowUpRepeatsTheConversation(t *testing.T) {
	l := newLoad(t, Options{Concurrency: 1, PromptMean: 10, OutputMean: 5, Turns: 40, ThinkTime: 100})
	first := l.Next(0)
	for first.turns == 1 {
		first = l.Next(0)
	}
	answer := []uint32{1, 2, 3}
	l.Follow(first, answer, 1000)
	if q := l.Next(1000); q.Turn != 1 {
		t.Fatalf("the follow-up came at once: %+v", q)
	}
	q := l.Next(1e9)
	said := append(slices.Clone(first.Prompt), answer...)
	if q.Turn != 2 || q.Due <= 1000 || len(q.Prompt) <= len(said) || !slices.Equal(q.Prompt[:len(said)], said) {
		t.Errorf("follow-up %+v of %+v", q, first)
	}
}

func TestLongConversationEnds(t *testing.T) {
	l := newLoad(t, Options{Concurrency: 1, PromptMean: 10, OutputMean: 5, Turns: 1000, MaxPrompt: 100})
	turns := 0
	for q := l.Next(0); q.Turn == turns+1; q = l.Next(1e9) {
		turns++
		if len(q.Prompt) > 100 {
			t.Fatalf("prompt of %d tokens", len(q.Prompt))
		}
		l.Follow(q, make([]uint32, 20), 0)
	}
	if turns < 2 || turns > 5 {
		t.Errorf("conversation of %d turns", turns)
	}
}

func TestWrongOptions(t *testing.T) {
	for setting, change := range map[string]func(*Options){
		"workload.concurrency":  func(o *Options) { o.Rate = 0 },
		"workload.rate":         func(o *Options) { o.Rate = math.NaN() },
		"workload.prompt_mean":  func(o *Options) { o.PromptMean = 0 },
		"workload.prefix_share": func(o *Options) { o.PrefixShare = 1.1 },
		"workload.think_time":   func(o *Options) { o.ThinkTime = -1 },

		"workload.output_mean":   func(o *Options) { o.OutputMean = 1 << 40 }, // would take all memory
		"workload.prefix_length": func(o *Options) { o.PrefixLength = mostTokens + 1 },
	} {
		o := Demo(1)
		change(&o)
		var wrong *engine.SettingError
		if _, err := New(o); !errors.As(err, &wrong) || wrong.Setting != setting {
			t.Errorf("%s: got %v", setting, err)
		}
		if err := newLoad(t, Demo(1)).Set(o); err == nil {
			t.Errorf("%s: accepted by Set", setting)
		}
	}
}

// fake is a worker that answers at once, or keeps requests until it is told to go on.
type fake struct {
	hold    chan struct{} // nil: at once
	closed  bool
	arrived chan live.Request
}

func (f *fake) Submit(r live.Request) (*live.Stream, error) {
	if f.closed {
		return nil, live.ErrClosed
	}
	cancelled := make(chan struct{}, 1)
	s := live.NewStream(0, func() { cancelled <- struct{}{} })
	go func() {
		select {
		case <-f.hold:
			for i := range r.MaxOutput {
				s.Push(live.Token{ID: uint32(i)})
			}
			s.Close(live.Finished, nil)
		case <-cancelled:
			s.Close(live.Cancelled, nil)
		}
	}()
	if f.arrived != nil {
		f.arrived <- r
	}
	return s, nil
}

func open() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func target(t *testing.T, workers ...*fake) Target {
	t.Helper()
	r, err := router.New(router.Options{Policy: router.KV, Workers: len(workers), BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	return Fleet(live.NewClock(1000), r, workers)
}

func within(t *testing.T, f func(ctx context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return f(ctx)
}

func TestRunEndsAfterItsRequests(t *testing.T) {
	for name, o := range map[string]Options{
		"open":   {Rate: 100, Requests: 200, PromptMean: 20, OutputMean: 5, Turns: 3},
		"closed": {Concurrency: 7, Requests: 200, PromptMean: 20, OutputMean: 5, Turns: 3},
	} {
		l := newLoad(t, o)
		err := within(t, func(ctx context.Context) error {
			return l.Run(ctx, target(t, &fake{hold: open()}, &fake{hold: open()}))
		})
		c := l.Counts()
		if err != nil || c.Submitted != 200 || c.Finished != 200 || c.InFlight != 0 {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		if name == "closed" && c.FollowUps == 0 { // an open loop may have sent all its requests before the first answer
			t.Errorf("%s: no conversation went on: %+v", name, c)
		}
	}
}

func TestConcurrencyIsKeptAndCanChange(t *testing.T) {
	f := &fake{hold: make(chan struct{}), arrived: make(chan live.Request, 100)}
	l := newLoad(t, Options{Concurrency: 3, PromptMean: 20, OutputMean: 5})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Run(ctx, target(t, f)) }()
	for range 3 {
		<-f.arrived
	}
	o := l.Options()
	o.Concurrency = 5
	if err := l.Set(o); err != nil {
		t.Fatal(err)
	}
	<-f.arrived
	<-f.arrived
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("run ended with %v", err)
	}
	if c := l.Counts(); c.Submitted != 5 || c.Cancelled != 5 || c.InFlight != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestStopFinishesWhatIsInFlight(t *testing.T) {
	f := &fake{hold: make(chan struct{}), arrived: make(chan live.Request, 100)}
	l := newLoad(t, Options{Concurrency: 2, PromptMean: 20, OutputMean: 5})
	done := make(chan error)
	go func() { done <- l.Run(context.Background(), target(t, f)) }()
	<-f.arrived
	<-f.arrived
	l.Stop()
	close(f.hold)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c := l.Counts(); c.Finished != 2 || c.InFlight != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestOverloadIsDroppedAndCounted(t *testing.T) {
	f := &fake{hold: make(chan struct{}), arrived: make(chan live.Request, 100)}
	l := newLoad(t, Options{Rate: 1000, Requests: 50, MaxInFlight: 4, PromptMean: 20, OutputMean: 5})
	done := make(chan error)
	go func() { done <- l.Run(context.Background(), target(t, f)) }()
	for l.Counts().Dropped < 46 {
		time.Sleep(time.Millisecond)
	}
	close(f.hold)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c := l.Counts(); c.Submitted != 4 || c.Dropped != 46 || c.Ended() != 50 {
		t.Errorf("counts %+v", c)
	}
}

func TestClosedWorkerIsNotHammered(t *testing.T) {
	l := newLoad(t, Options{Concurrency: 2, Requests: 3, PromptMean: 20, OutputMean: 5})
	start := time.Now()
	err := within(t, func(ctx context.Context) error { return l.Run(ctx, target(t, &fake{closed: true})) })
	if c := l.Counts(); err != nil || c.Failed != 3 || c.InFlight != 0 {
		t.Errorf("counts %+v, %v", c, err)
	}
	if spent := time.Since(start); spent < 2*retry {
		t.Errorf("three failures within %v", spent)
	}
}

// A session is in flight or thinking, never both and never lost; its next turn does not come before it is due.
func TestSessionsAreKept(t *testing.T) {
	const sessions = 3
	l := newLoad(t, Options{Sessions: sessions, Requests: 300, PromptMean: 20, OutputMean: 5, Turns: 20, ThinkTime: 200, MaxPrompt: 1000})
	err := within(t, func(ctx context.Context) error {
		to := target(t, &fake{hold: open()})
		place := to.Place
		to.Place = func(q *Request) (int, int, error) {
			l.mu.Lock()
			others := l.counts.InFlight + len(l.ready)
			l.mu.Unlock()
			if others >= sessions {
				t.Errorf("%s begins beside %d sessions", q.Label, others)
			}
			if now := to.Clock.Now(); q.Due > now {
				t.Errorf("%s begins at %v, due at %v", q.Label, now, q.Due)
			}
			return place(q)
		}
		return l.Run(ctx, to)
	})
	if c := l.Counts(); err != nil || c.Submitted != 300 || c.FollowUps < 200 {
		t.Errorf("counts %+v, %v", c, err)
	}
}
