package workload

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/router"
	"mockbench/engine/spawn"
)

// Clock is simulated time as a live clock gives it.
type Clock interface {
	Now() engine.Time
	Until(t engine.Time) (d time.Duration, changed <-chan struct{}, ok bool)
}

// Submitter is a live worker, as far as a load is concerned.
type Submitter interface {
	Submit(r live.Request) (*live.Stream, error)
}

// Target is where a load goes.
type Target struct {
	Clock  Clock
	Place  func(q *Request) (worker, rank int, err error)
	Free   func(q *Request) // the request did not reach a worker or ended; may be nil
	Submit func(worker int, r live.Request) (*live.Stream, error)

	// Mirror gets a copy of every request that a worker has taken, at the same moment; nil is none. Conversations go on
	// when the original is answered. Answers are drawn by the load then, so that both fleets come to hold the same blocks.
	Mirror *Target
}

// Fleet returns a target of live workers behind a router. The workers' records must reach the router's readers.
func Fleet[W Submitter](c Clock, r *router.Router, workers []W) Target {
	return Target{
		Clock: c,
		Place: func(q *Request) (worker, rank int, err error) {
			d, err := r.Place(router.Request{Label: q.Label, Prompt: q.Prompt, MaxOutput: q.MaxOutput})
			return d.Worker, d.Rank, err
		},
		Free:   func(q *Request) { r.Free(q.Label) },
		Submit: func(worker int, q live.Request) (*live.Stream, error) { return workers[worker].Submit(q) },
	}
}

const (
	// retry is how long a load waits, in wall time, after a request that no worker took.
	retry = 100 * time.Millisecond

	// usualOutput is for how many tokens of an answer there is room from the start.
	usualOutput = 1 << 12

	// backlog is how many simulated milliseconds of arrivals are made up for after a time without any.
	backlog = 1000
)

// runner is one run of a load.
type runner struct {
	l  *Load
	t  Target
	wg sync.WaitGroup // requests in flight

	due   engine.Time // open loop: next arrival
	rate  float64     // with which due was drawn; 0 = not drawn
	burst int         // requests of the present arrival that are still to be submitted

	copies atomic.Int64 // in flight at the mirror
	pause  bool         // the latest request found no worker
}

// Run submits requests and takes their answers until Options.Requests are done, Stop is called or ctx ends. Then it
// submits nothing more and waits for the requests in flight, which it cancels if ctx has ended; it returns ctx's error
// in that case.
func (l *Load) Run(ctx context.Context, t Target) error {
	r := &runner{l: l, t: t}
	for r.step(ctx) {
	}
	r.wg.Wait()
	return ctx.Err()
}

// Stop ends the run after the requests in flight.
func (l *Load) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.stopped = true
		l.signal()
	}
}

// step submits one request or waits until there may be one to submit. It returns false at the end of the run.
func (r *runner) step(ctx context.Context) bool {
	l := r.l
	l.mu.Lock()
	o, inFlight, changed := l.o, l.counts.InFlight, l.changed
	over := l.stopped || o.Requests > 0 && l.produced >= o.Requests
	l.mu.Unlock()
	switch {
	case over || ctx.Err() != nil:
		return false
	case r.pause:
		r.pause = false
		wait(ctx, retry, nil, nil)
	case o.Rate > 0:
		r.open(ctx, o, inFlight, changed)
	case o.Concurrency == 0:
		r.rate = 0
		r.session(ctx, changed)
	case inFlight < o.Concurrency:
		r.rate = 0
		r.submit(ctx, l.Next(r.t.Clock.Now()))
	default:
		r.rate = 0
		wait(ctx, forever, changed, nil)
	}
	return true
}

// open waits for the next arrival of an open loop, or lets it happen.
func (r *runner) open(ctx context.Context, o Options, inFlight int, changed <-chan struct{}) {
	now := r.t.Clock.Now()
	if r.rate != o.Rate { // arrivals have no memory: the time to the next one can be drawn anew
		r.due, r.rate, r.burst = now+r.gap(o), o.Rate, 0
	}
	if r.burst == 0 && r.due > now {
		r.until(ctx, r.due, changed)
		return
	}
	if r.burst == 0 {
		r.due, r.burst = max(r.due, now-backlog)+r.gap(o), o.Burst
	}
	r.burst--
	if inFlight < o.MaxInFlight {
		r.submit(ctx, r.l.Next(now))
		return
	}
	r.l.count(func(c *Counts) { c.Dropped++; r.l.produced++ })
}

// session submits the next request of a load of sessions or waits until there is one.
func (r *runner) session(ctx context.Context, changed <-chan struct{}) {
	now := r.t.Clock.Now()
	submit, due := r.l.session(now)
	if submit {
		r.submit(ctx, r.l.Next(now))
		return
	}
	r.until(ctx, due, changed)
}

// until waits for a simulated time, or a reason to look again.
func (r *runner) until(ctx context.Context, due engine.Time, changed <-chan struct{}) {
	if math.IsInf(float64(due), 1) {
		wait(ctx, forever, changed, nil)
		return
	}
	left, clock, running := r.t.Clock.Until(due)
	if !running {
		left = forever
	}
	wait(ctx, left, changed, clock)
}

// gap returns the time to the next arrival, which brings a burst of requests.
func (r *runner) gap(o Options) engine.Time { return r.l.Gap() * engine.Time(o.Burst) }

const forever = math.MaxInt64

// wait returns when d has passed, a channel is closed or ctx has ended.
func wait(ctx context.Context, d time.Duration, a, b <-chan struct{}) {
	var timer <-chan time.Time
	if d != forever {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-timer:
	case <-a:
	case <-b:
	case <-ctx.Done():
	}
}

func (l *Load) count(f func(c *Counts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.counts)
}

// submit places a request and follows its answer in a goroutine of its own.
func (r *runner) submit(ctx context.Context, q *Request) {
	if r.t.Mirror != nil {
		q.output = r.l.answer(q)
	}
	stream, err := r.t.send(q)
	if err != nil {
		r.pause = true
		r.l.count(func(c *Counts) { c.Failed++ })
		return
	}
	r.l.count(func(c *Counts) {
		c.Submitted++
		c.InFlight++
		if q.Turn > 1 {
			c.FollowUps++
		}
	})
	r.wg.Add(1)
	spawn.Go("load "+q.Label, func() {
		defer r.wg.Done()
		tokens, end := r.t.take(ctx, q, stream)
		r.l.end(q, tokens, end, r.t.Clock.Now())
	})
	if r.t.Mirror != nil {
		r.mirror(ctx, q)
	}
}

// mirror sends a copy of a request to the mirror and takes its answer.
func (r *runner) mirror(ctx context.Context, q *Request) {
	stream, err := (*live.Stream)(nil), live.ErrClosed
	if r.copies.Load() < int64(r.l.Options().MaxInFlight) {
		stream, err = r.t.Mirror.send(q)
	}
	if err != nil {
		r.l.count(func(c *Counts) { c.Unmirrored++ })
		return
	}
	r.l.count(func(c *Counts) { c.Mirrored++ })
	r.copies.Add(1)
	r.wg.Add(1)
	spawn.Go("mirror "+q.Label, func() {
		defer r.wg.Done()
		defer r.copies.Add(-1)
		r.t.Mirror.take(ctx, q, stream)
	})
}

// send places a request and submits it.
func (t *Target) send(q *Request) (*live.Stream, error) {
	worker, rank, err := t.Place(q)
	if err != nil {
		return nil, err
	}
	stream, err := t.Submit(worker, live.Request{Label: q.Label, Prompt: q.Prompt, MaxOutput: q.MaxOutput, Output: q.output, Rank: rank})
	if err != nil {
		t.free(q)
	}
	return stream, err
}

func (t *Target) free(q *Request) {
	if t.Free != nil {
		t.Free(q)
	}
}

// take takes the answer of a request to its end; it cancels the request if ctx ends before.
func (t *Target) take(ctx context.Context, q *Request, s *live.Stream) ([]live.Token, live.End) {
	tokens, end, err := collect(ctx, s, make([]live.Token, 0, min(q.MaxOutput, usualOutput)))
	if err != nil {
		s.Cancel()
		tokens, end, _ = collect(context.WithoutCancel(ctx), s, tokens)
	}
	t.free(q)
	return tokens, end
}

// collect takes tokens until the stream has ended.
func collect(ctx context.Context, s *live.Stream, dst []live.Token) ([]live.Token, live.End, error) {
	for {
		tokens, end, err := s.Take(ctx, dst)
		if err != nil || end != live.Open {
			return tokens, end, err
		}
		dst = tokens
	}
}

// end notes how a request ended and lets its conversation go on, in one step: a session is never between two turns.
func (l *Load) end(q *Request, tokens []live.Token, e live.End, now engine.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.InFlight--
	switch e {
	case live.Finished:
		l.counts.Finished++
		answer := make([]uint32, len(tokens))
		for i, t := range tokens {
			answer[i] = t.ID
		}
		l.follow(q, answer, now)
	case live.Rejected:
		l.counts.Rejected++
	case live.Cancelled:
		l.counts.Cancelled++
	default:
		l.counts.Failed++
	}
	l.signal()
}
