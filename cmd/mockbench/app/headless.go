package app

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"mockbench/engine/spawn"
	"mockbench/ui"
)

// headless waits for the end without a screen and drains.
func (p *program) headless(j *job, signals <-chan os.Signal) end {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan error, 1)
	spawn.Go("goal", func() { over <- p.untilGoal(ctx, j) })
	var e end
	ticks, stop := p.progressTicks()
	defer stop()
	for running := true; running; {
		select {
		case e.signal = <-signals:
			running = false
		case err := <-over:
			e.because(err)
			running = false
		case <-ticks:
			if line, changed := j.figures.progress(); changed {
				fmt.Fprintln(p.stderr, line)
			}
		}
	}
	if e.signal != nil {
		p.logger("app").Info("shutting down", "signal", e.signal)
	}
	p.headlessDrain(j, signals, &e)
	return e
}

// headlessDrain drains; another signal cuts it short.
func (p *program) headlessDrain(j *job, signals <-chan os.Signal, e *end) {
	grace := j.grace
	if e.lost != "" && p.s.Load != nil {
		grace = 0 // nobody waits for the answers
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	done := make(chan struct{})
	spawn.Go("drain", func() {
		defer close(done)
		j.drain(ctx, func(ui.Draining) {})
		j.close()
	})
	select {
	case <-done:
	case sig := <-signals:
		e.signal, e.forced = sig, true
		cancel()
		select { // withdrawing takes no time; a network that hangs is not waited for
		case <-done:
		case <-time.After(time.Second):
		}
	}
}

// Intervals of progress lines: people watch a terminal, files are read later.
const terminalProgress, fileProgress = time.Second, 10 * time.Second

// progressTicks says when progress lines are due.
func (p *program) progressTicks() (<-chan time.Time, func()) {
	every := p.s.Screen.Progress
	if !p.s.Screen.ProgressGiven {
		every = fileProgress
		if isTerminal(os.Stderr) {
			every = terminalProgress
		}
	}
	if every <= 0 || p.s.Screen.Quiet || p.level > 0 {
		return nil, func() {}
	}
	t := time.NewTicker(every)
	return t.C, t.Stop
}

// finish writes summary and report and returns the exit status.
func (p *program) finish(j *job, e end) int {
	p.flush()
	hold, err := j.figures.write(e)
	status := fail(os.Stderr, err)
	switch {
	case e.err != nil:
		return fail(os.Stderr, e.err)
	case e.signal == syscall.SIGHUP:
		return exitHangup
	case e.signal != nil && p.hasGoal() && status == exitOK:
		return exitAborted
	case !hold && status == exitOK:
		return exitLimits
	}
	return status
}

// hasGoal reports whether the run ends by itself.
func (p *program) hasGoal() bool { return p.s.Duration > 0 || p.s.Requests > 0 }
