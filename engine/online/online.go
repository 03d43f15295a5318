// Package online replays a workload on the wall clock: requests are sent to live workers of this process when they are
// due, and tokens count from the moment at which they are seen. Figures and records are those of package replay.
package online

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/replay"
)

// progressEvery is how often Options.Progress is called, in wall time.
const progressEvery = 250 * time.Millisecond

// run is a replay under way.
type run struct {
	o       *replay.Options
	clock   *live.Clock
	workers []*live.Worker
	changed chan struct{} // holds one element when there may be something new to do

	mu    sync.Mutex // guards the rest
	paced *replay.Paced
	err   error // of a reader
}

// Run replays a workload on aggregated workers. Errors are those of [replay.Run]; the result of a run that was cut or
// got stuck covers what happened before.
func Run(o replay.Options) (*replay.Result, error) {
	ctx := o.Context
	if ctx == nil {
		ctx = context.Background()
	}
	r := &run{o: &o, clock: live.NewClock(1), changed: make(chan struct{}, 1)}
	var err error
	if r.paced, err = replay.NewPaced(o, r.send); err != nil {
		return nil, err
	}
	for i := range o.Workers.Workers {
		if err = r.start(ctx, i); err != nil {
			break
		}
	}
	if err == nil {
		err = r.loop(ctx)
	}
	r.mu.Lock()
	defer r.close()
	defer r.mu.Unlock()
	if _, stuck := err.(*replay.StuckError); err != nil && !stuck {
		return nil, err
	}
	r.err = live.ErrClosed // what workers tell from now on does not count
	return r.paced.Result(err == nil && !r.paced.Done() && !r.timeIsUp(r.clock.Now())), err
}

// start starts worker i.
func (r *run) start(ctx context.Context, i int) error {
	cfg, ranks := r.paced.Engine(), max(r.o.Workers.Ranks, 1)
	cfg.MTPSeed += uint64(i * ranks)
	w, err := live.Start(ctx, live.Options{Name: fmt.Sprintf("worker %d", i), Index: i, Engine: cfg, Ranks: ranks, Seed: r.o.Seed,
		Clock: r.clock, Readers: []engine.Reader{reader{r, i}}, Stalled: func(live.Stall) { r.signal() }})
	if err == nil {
		r.workers = append(r.workers, w)
	}
	return err
}

// close ends the workers.
func (r *run) close() {
	for _, w := range r.workers {
		w.Close()
	}
}

// send implements replay.Send. Answers are known from the records of passes, nobody takes the stream.
func (r *run) send(worker, rank int, q *engine.Request) error {
	_, err := r.workers[worker].Submit(live.Request{Label: q.Label, Prompt: q.Prompt, MaxOutput: q.MaxOutput, Output: q.Output, Rank: rank})
	return err
}

func (r *run) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// reader takes the records of one worker.
type reader struct {
	r      *run
	worker int
}

// Pass implements engine.Reader.
func (t reader) Pass(p *engine.Pass) {
	r := t.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	r.err = r.paced.Pass(t.worker, p, r.clock.Now())
	if r.err != nil || len(p.Outputs) > 0 {
		r.signal()
	}
}

// loop sends requests until all have ended or the run is cut.
func (r *run) loop(ctx context.Context) error {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		now := r.clock.Now()
		over, wait, err := r.step(now)
		if over || err != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.changed:
		case <-ctx.Done():
		case <-ticker.C:
			r.report()
		}
		timer.Stop()
	}
}

// step sends what is due and says how long nothing else will be, or that the run is over.
func (r *run) step(now engine.Time) (over bool, wait time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return true, 0, r.err
	}
	if r.timeIsUp(now) || !r.paced.GoesOn() {
		return true, 0, nil
	}
	if err := r.paced.Release(now); err != nil {
		return true, 0, err
	}
	if r.paced.Done() {
		return true, 0, nil
	}
	if err := r.broken(); err != nil {
		return true, 0, err
	}
	due := engine.Time(math.Inf(1))
	if at, ok := r.paced.Next(); ok {
		due = at
	}
	if r.o.MaxTime >= 0 {
		due = min(due, r.o.MaxTime)
	}
	wait, _, _ = r.clock.Until(due)
	return false, max(wait, 0), nil
}

// timeIsUp reports that the time limit is reached.
func (r *run) timeIsUp(now engine.Time) bool { return r.o.MaxTime >= 0 && now > r.o.MaxTime }

// broken reports that no request can go on any more, or that a worker failed.
func (r *run) broken() error {
	var stall *live.Stall
	for _, w := range r.workers {
		if err := w.Err(); err != nil {
			return err
		}
		stalls := w.Stalled()
		if len(stalls) < w.Ranks() && w.InFlight() > 0 {
			return nil
		}
		if len(stalls) > 0 {
			stall = &stalls[0]
		}
	}
	if stall == nil || r.paced.InFlight() == 0 {
		return nil
	}
	return r.paced.Stuck(stall.Worker, stall.Hint)
}

// report calls Options.Progress.
func (r *run) report() {
	if r.o.Progress == nil {
		return
	}
	r.mu.Lock()
	p := replay.Progress{Now: r.clock.Now(), Arrived: r.paced.Arrived(), Ended: r.paced.Arrived() - r.paced.InFlight(), Total: r.paced.Total()}
	r.mu.Unlock()
	r.o.Progress(p)
}
