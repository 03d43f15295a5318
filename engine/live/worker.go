package live

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mockbench/engine"
	"mockbench/engine/spawn"
)

// Worker is one simulated worker that runs on the wall clock. Its methods are safe for concurrent use, but Close,
// Inspect and Block must not be called by its readers.
type Worker struct {
	o      Options
	ranks  int
	mail   *mailbox
	done   chan struct{}
	failed error // set before done is closed

	intake struct { // numbers of requests; guarded by mail.mu
		draining bool
		count    uint64
		turn     int // rank of the next request that leaves the choice to us
	}
	inFlight atomic.Int64
	empty    chan struct{} // holds one element when inFlight may have become 0

	config     atomic.Pointer[engine.Config] // in force
	restarting atomic.Bool                   // the engine is to be replaced

	passes atomic.Uint64
	slip   atomic.Int64  // nanoseconds of wall time
	ahead  atomic.Uint64 // bits of the engine.Time by which the worker is ahead of the clock

	mu     sync.Mutex // guards the lists below
	loads  []engine.Load
	stalls []Stall
}

// PanicError is the end of a worker whose engine or reader panicked.
type PanicError struct {
	Worker string
	Value  any
	Stack  []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("worker %s: engine failed: %v", e.Worker, e.Value)
}

// start runs a worker on a group that it owns from now on.
func start(o Options, group *engine.Group, a alarm) *Worker {
	w := &Worker{o: o, ranks: group.Ranks(), mail: newMailbox(), done: make(chan struct{}), empty: make(chan struct{}, 1),
		loads: make([]engine.Load, group.Ranks())}
	w.config.Store(&o.Engine)
	for r := range w.loads {
		w.loads[r] = group.Rank(r).Load()
	}
	o.Clock.hold()
	d := newDriver(w, group, a)
	spawn.Go("worker "+o.Name, func() { w.run(d) })
	return w
}

// run is the worker's goroutine.
func (w *Worker) run(d *driver) {
	failure := w.drive(d)
	waiting := w.mail.close()
	d.abandon(waiting, failure)
	d.alarm.close()
	w.o.Clock.release()
	w.failed = failure
	close(w.done)
}

func (w *Worker) drive(d *driver) (failure error) {
	defer func() {
		if v := recover(); v != nil {
			failure = &PanicError{Worker: w.o.Name, Value: v, Stack: debug.Stack()}
		}
	}()
	d.loop()
	return nil
}

// Name returns the name shown to people.
func (w *Worker) Name() string { return w.o.Name }

// Ranks returns the data-parallel size.
func (w *Worker) Ranks() int { return w.ranks }

// Submit queues a request and returns its stream at once; the engine sees it before its next pass. It returns an
// *engine.SettingError for a rank the worker does not have and for a request of no output token, ErrClosed if the
// worker takes nothing more. The worker keeps Prompt and Output until the stream has ended.
func (w *Worker) Submit(r Request) (*Stream, error) {
	f, err := w.newFlight(r)
	if err != nil {
		return nil, err
	}
	if err := w.enter(f, w.mail.work, func() { w.mail.submits = append(w.mail.submits, f) }); err != nil {
		return nil, err
	}
	return f.stream, nil
}

// newFlight checks a request.
func (w *Worker) newFlight(r Request) (*flight, error) {
	if r.Rank < -1 || r.Rank >= w.ranks {
		return nil, &engine.SettingError{Setting: "dp_rank", Kind: engine.KindRange, Given: fmt.Sprint(r.Rank),
			Allowed: fmt.Sprintf("must be below the data-parallel size %d", w.ranks)}
	}
	if r.Output != nil {
		r.MaxOutput = len(r.Output)
	}
	if r.MaxOutput < 1 {
		return nil, &engine.SettingError{Setting: "max_tokens", Kind: engine.KindRange, Given: fmt.Sprint(r.MaxOutput),
			Allowed: "must be at least 1"}
	}
	f := &flight{request: engine.Request{Label: r.Label, Prompt: r.Prompt, MaxOutput: r.MaxOutput, Output: r.Output}}
	f.stream = NewStream(r.Rank, func() {
		if !w.drop(f) {
			w.mail.post(func(l *letters) { l.cancels = append(l.cancels, f) })
		}
	})
	return f, nil
}

// choose gives a request its rank. mail.mu is locked.
func (w *Worker) choose(f *flight) {
	if f.stream.Rank < 0 {
		f.stream.Rank = w.intake.turn
		w.intake.turn = (w.intake.turn + 1) % w.ranks
	}
}

// enter lets a request in; write adds it to the mail that the bell is for.
func (w *Worker) enter(f *flight, bell chan struct{}, write func()) error {
	w.mail.mu.Lock()
	if w.mail.shut || w.intake.draining || f.dropped {
		w.mail.mu.Unlock()
		return ErrClosed
	}
	w.choose(f)
	f.request.ID = requestID(w.o.Seed, w.o.Index, w.intake.count)
	f.request.Arrival = w.now()
	f.entered, f.number = true, w.intake.count
	w.intake.count++
	w.inFlight.Add(1)
	write()
	w.mail.mu.Unlock()
	ring(bell)
	return nil
}

// drop gives up a request that was not submitted yet, and reports whether it was one.
func (w *Worker) drop(f *flight) bool {
	w.mail.mu.Lock()
	dropped := !f.entered
	f.dropped = dropped
	w.mail.mu.Unlock()
	if dropped {
		f.stream.Close(Cancelled, nil)
	}
	return dropped
}

// now returns the worker's simulated time: that of the clock, and what steps and skipped sleeps went ahead of it.
func (w *Worker) now() engine.Time {
	return w.o.Clock.Now() + engine.Time(math.Float64frombits(w.ahead.Load()))
}

// Inspect copies the state of a rank into s. A running pass does not delay it; what the pass planned is in the state
// already.
func (w *Worker) Inspect(rank int, s *engine.Snapshot) error {
	return w.look(rank, func(r engine.Scheduler) { r.Inspect(s) })
}

// Block returns what is known of one block of a rank.
func (w *Worker) Block(rank int, n int32) (b engine.BlockInfo, err error) {
	err = w.look(rank, func(r engine.Scheduler) { b = r.Block(n) })
	return b, err
}

// look runs f in the driver.
func (w *Worker) look(rank int, f func(engine.Scheduler)) error {
	if rank < 0 || rank >= w.ranks {
		return &engine.SettingError{Setting: "rank", Kind: engine.KindRange, Given: fmt.Sprint(rank),
			Allowed: fmt.Sprintf("must be below the data-parallel size %d", w.ranks)}
	}
	return w.ask(&call{f: func(d *driver) { f(d.group.Rank(rank)) }, done: make(chan struct{})})
}

// ask runs a call in the driver and waits for it.
func (w *Worker) ask(c *call) error {
	if !w.mail.post(func(l *letters) { l.calls = append(l.calls, c) }) {
		return ErrClosed
	}
	return w.await(c)
}

// await waits for a call that was posted.
func (w *Worker) await(c *call) error {
	select {
	case <-c.done:
		return nil
	case <-w.done:
	}
	select {
	case <-c.done: // just before the end
		return nil
	default:
		return ErrClosed
	}
}

// Sleep waits for some simulated time, or until ctx ends.
func (w *Worker) Sleep(ctx context.Context, d engine.Time) error { return w.o.Clock.Sleep(ctx, d) }

// Step lets a paused worker run one pass, or end the one that was running when the clock stopped. The simulated time
// of this worker, not of others, goes on by the pass without waiting. It returns at once, and does nothing unless the
// clock is paused.
func (w *Worker) Step() {
	if w.o.Clock.Paused() {
		w.mail.post(func(l *letters) { l.steps++ })
	}
}

// Load returns the load of each rank after the latest pass or command.
func (w *Worker) Load() []engine.Load {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.loads)
}

// Stalled returns the ranks that cannot make progress at the moment.
func (w *Worker) Stalled() []Stall {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.stalls)
}

// Slip returns the wall time by which passes were late and that was never made up for. It stays 0 without delay.
func (w *Worker) Slip() time.Duration { return time.Duration(w.slip.Load()) }

// Passes returns the number of passes of the whole group that have ended.
func (w *Worker) Passes() uint64 { return w.passes.Load() }

// InFlight returns the number of streams that have not ended.
func (w *Worker) InFlight() int { return int(w.inFlight.Load()) }

// Drain refuses new requests and waits until all streams have ended. If ctx ends first, the remaining requests are
// cancelled and its error is returned. The worker can still be looked at afterwards. A paused worker drains when its
// clock goes on.
func (w *Worker) Drain(ctx context.Context) error {
	w.mail.mu.Lock()
	w.intake.draining = true
	w.mail.mu.Unlock()
	defer ring(w.empty) // for others who wait
	expired := ctx.Done()
	for w.inFlight.Load() > 0 {
		select {
		case <-w.empty:
		case <-w.done:
			return w.Err()
		case <-expired:
			expired = nil
			w.mail.post(func(l *letters) { l.cancelAll = true })
		}
	}
	if expired == nil {
		return ctx.Err()
	}
	return nil
}

// Close ends the worker; streams that are open are cancelled. It waits until the worker's goroutine has ended.
func (w *Worker) Close() {
	w.mail.post(func(l *letters) { l.stop = true })
	<-w.done
}

// Done returns a channel that is closed when the worker has ended, by Close or by a failure.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Err returns why the worker ended: nil while it runs and after Close.
func (w *Worker) Err() error {
	select {
	case <-w.done:
		return w.failed
	default:
		return nil
	}
}
