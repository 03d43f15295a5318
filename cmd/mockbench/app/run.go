package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"mockbench/engine/report"
	"mockbench/engine/spawn"
	"mockbench/engine/workload"
	"mockbench/ui"
)

// job is what runs until the end: a built-in load or workers for a frontend.
type job struct {
	fleet   *fleet
	figures *figures
	model   string
	routing ui.Routing
	load    *workload.Load // built in; nil if requests come from a frontend
	place   *placement     // of the load
	rival   *rival         // a second fleet under the same load; nil without
	planes  func() ui.Status
	tape    *tape           // what is recorded of it; nil if nothing is
	lost    <-chan error    // the first worker that discovery has lost for good; nil if that cannot happen
	done    <-chan struct{} // closed when a load has reached its end; nil if it has none
	drain   func(ctx context.Context, progress func(ui.Draining))
	close   func() // after the drain; takes back what outlives the workers
	abandon func() // takes records back, in short time, because the process is about to die; nil if there are none
	grace   time.Duration
}

// end is why a run ended.
type end struct {
	signal os.Signal // nil if no signal did it
	forced bool      // and a second one cut the drain short
	err    error
	goal   bool   // duration or number of requests reached
	lost   string // the limit that ended the run; empty if none did
}

// because notes why a run ended by itself.
func (e *end) because(err error) {
	var lost *lostError
	switch {
	case errors.Is(err, errGoal):
		e.goal = true
	case errors.As(err, &lost):
		e.lost = lost.limit
	default:
		e.err = err
	}
}

// headlessDemo is how long the demonstration runs where there is no screen and no other goal.
const headlessDemo = 10 * time.Second

// run starts the workers, waits for the end, drains and reports.
func (p *program) run() int {
	if p.s.Load != nil && !p.screen && p.s.Duration == 0 && p.s.Requests == 0 {
		p.s.Duration = headlessDemo
	}
	signals := watchInterrupts()
	j, sig, err := p.start(signals)
	if sig != nil {
		p.closeLog()
		die(sig)
	}
	if err != nil {
		signals.release()
		p.flush()
		return fail(os.Stderr, err)
	}
	if j.tape, err = p.record(j); err != nil {
		signals.release()
		p.flush()
		p.cleanUp(j)
		return fail(os.Stderr, err)
	}
	var e end
	if p.screen {
		e = p.watch(j, signals.c)
	} else {
		e = p.headless(j, signals.c)
	}
	signals.release()
	if err := j.tape.end(j.figures); err != nil && e.err == nil {
		e.err = err
	}
	j.fleet.close()
	if e.forced {
		p.closeLog()
		die(e.signal)
	}
	return p.finish(j, e)
}

// start brings everything up. A signal meanwhile ends the program as if it did not handle signals, but not before what
// was registered is withdrawn. One that comes when all is up is left to the run.
func (p *program) start(signals *interrupts) (*job, os.Signal, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var j *job
	var err error
	ready := make(chan struct{})
	spawn.Go("start", func() {
		defer close(ready)
		if p.s.Load != nil {
			j, err = p.startLoad(ctx)
		} else {
			j, err = p.startServing(ctx)
		}
	})
	select {
	case <-ready:
		return j, nil, err
	case sig := <-signals.c:
		cancel()
		<-ready
		if err == nil && !p.screen {
			signals.again(sig)
			return j, nil, nil
		}
		if err == nil {
			p.cleanUp(j)
		}
		return nil, sig, nil
	}
}

// cleanUp ends a job that never ran.
func (p *program) cleanUp(j *job) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	j.drain(ctx, func(ui.Draining) {})
	j.close()
	j.fleet.close()
}

// die ends the process by a signal, so that its parent sees that.
func die(sig os.Signal) {
	signal.Reset(sig)
	if s, ok := sig.(syscall.Signal); ok {
		syscall.Kill(os.Getpid(), s)
	}
	time.Sleep(time.Second)
	os.Exit(exitError)
}

// watch shows the screen until it ends.
func (p *program) watch(j *job, signals <-chan os.Signal) end {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	running, draining := context.WithCancel(ctx)
	defer draining()
	spawn.Go("goal", func() {
		if err := p.untilGoal(running, j); running.Err() == nil {
			cancel(err)
		}
	})
	p.shown.Store(true)
	err := ui.Run(ctx, p.withControls(j, ui.Options{
		Model: j.model, Backend: p.engineText(), Fleet: j.fleet.sources, Clock: j.fleet.clock,
		NoDelay: noDelay(p.s), Status: j.planes, Window: j.figures.window, Routing: j.routing, Log: &p.ring,
		Crash: p.crashed, Abandon: j.abandon, Signals: signals, FPS: p.s.Screen.FPS, NoMouse: p.s.Screen.NoMouse, Colors: p.colors(),
		ExportDir: p.s.Screen.ExportDir, Report: func(w io.Writer) error { return report.WriteJSON(w, j.figures.report()) },
		Drain: func(ctx context.Context, progress func(ui.Draining)) {
			draining() // a load that ends now has not reached its goal
			ctx, cancel := context.WithTimeout(ctx, j.grace)
			defer cancel()
			j.drain(ctx, progress)
		},
	}))
	p.shown.Store(false)
	p.log.SetOutput(p.afterScreen()...)
	var e end
	var sig *ui.SignalError
	switch {
	case errors.Is(err, ui.ErrQuit):
	case errors.As(err, &sig):
		e.signal, e.forced = sig.Signal, sig.Forced
	case errors.Is(err, context.Canceled):
		e.because(context.Cause(ctx))
		p.drainNow(j)
	default:
		e.err = err
		p.drainNow(j)
	}
	j.close()
	return e
}

// crashed keeps the report of a panic; the screen has printed it already.
func (p *program) crashed(report string) {
	if p.logFile != nil {
		fmt.Fprintln(p.logFile, report)
	}
}

// drainNow drains within the grace period.
func (p *program) drainNow(j *job) {
	ctx, cancel := context.WithTimeout(context.Background(), j.grace)
	defer cancel()
	j.drain(ctx, func(ui.Draining) {})
}

// errGoal ends a run whose duration or number of requests is reached.
var errGoal = errors.New("goal reached")

// untilGoal waits for the goal of the run or the failure of a worker, and says which.
func (p *program) untilGoal(ctx context.Context, j *job) error {
	var timeout <-chan time.Time
	if p.s.Duration > 0 {
		timer := time.NewTimer(p.s.Duration)
		defer timer.Stop()
		timeout = timer.C
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	if p.s.Requests == 0 || j.done != nil {
		poll.Stop()
	}
	failed := j.fleet.failed(ctx)
	stuck := make(chan error, 1)
	if j.done != nil && !p.screen { // at the screen a person can help, and a frontend's client can leave
		spawn.Go("watch for a standstill", func() { stuck <- j.fleet.stuck(ctx) })
	}
	look, done := p.lookAtLimits()
	defer done()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look:
			if err := p.lost(j); err != nil {
				return err
			}
		case <-timeout:
			return errGoal
		case <-j.done:
			return errGoal
		case err := <-j.lost:
			return err
		case err := <-failed:
			return err
		case err := <-stuck:
			return err
		case <-poll.C:
			if j.figures.ended() >= p.s.Requests {
				return errGoal
			}
		}
	}
}

// failed delivers the first failure of a worker.
func (f *fleet) failed(ctx context.Context) <-chan error {
	out := make(chan error, len(f.workers))
	for _, w := range f.workers {
		spawn.Go("failure of "+w.Name(), func() {
			select {
			case <-w.Done():
				if err := w.Err(); err != nil {
					out <- fmt.Errorf("worker %s: %w", w.Name(), err)
				}
			case <-ctx.Done():
			}
		})
	}
	return out
}
