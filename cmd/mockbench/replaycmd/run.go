package replaycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine/online"
	"mockbench/engine/replay"
	"mockbench/engine/report"
	"mockbench/engine/report/limits"
	"mockbench/engine/trace"
)

// Exit statuses.
const (
	exitOK      = 0
	exitError   = 1
	exitUsage   = 2
	exitLimits  = 99
	exitAborted = 105
)

// Main runs the command and returns its exit status. args are those after the word replay.
func Main(args []string, stdout, stderr io.Writer) int {
	a, err := parse(args)
	if err != nil {
		return fail(stderr, err)
	}
	if a.help {
		io.WriteString(stdout, helpText())
		return exitOK
	}
	j, err := resolve(a)
	if err != nil {
		return fail(stderr, err)
	}
	status, err := j.run(stdout, stderr)
	if err != nil {
		return fail(stderr, err)
	}
	return status
}

// fail reports an error in one line and returns the exit status of its class.
func fail(w io.Writer, err error) int {
	var usage *flags.UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(w, "%smockbench replay: error: %s\n", usageLine, flags.Line(err))
		return exitUsage
	}
	fmt.Fprintf(w, "error: %s\n", flags.Line(err))
	return exitError
}

// garbagePercent is how much garbage may lie around, in per cent of what is in use. A replay makes little of it, so that
// looking for it often costs next to nothing and keeps the peak low.
const garbagePercent = 50

func (j *job) run(stdout, stderr io.Writer) (status int, err error) {
	a := j.a
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent))
	}
	for _, text := range j.warnings {
		fmt.Fprintf(stderr, "warning: %s\n", text)
	}
	for _, path := range []string{a.reportJSON, a.reportJSONL, a.telemetryJSONL, a.html, a.junit} {
		if path != "" {
			if err := report.CheckFile(path); err != nil {
				return exitError, err
			}
		}
	}
	if err := a.checkScreen(); err != nil {
		return exitError, err
	}
	if err := j.load(); err != nil {
		return exitError, err
	}
	tape, err := j.openTape(a.files)
	if err != nil {
		return exitError, err
	}
	defer tape.remove()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if a.progress > 0 && !a.quiet && isTerminal(stderr) {
		j.options.Progress = progress(stderr, a.progress)
	}
	samples := j.openTelemetry(stdout)
	o, err := j.execute(ctx)
	if failure := samples.close(); err == nil && failure != nil {
		err = fmt.Errorf("--telemetry-jsonl: %w", failure)
	}
	if failure := tape.close(); err == nil {
		err = failure
	}
	if err != nil {
		return exitError, err
	}
	if !o.Interrupted {
		if err := tape.watch(stdout, stderr); err != nil {
			return exitError, fmt.Errorf("--screen: %w", err)
		}
	}
	status, err = j.finish(o, samples, stdout)
	if o.stuck != nil {
		return exitError, o.stuck
	}
	return status, err
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progress returns what prints a line from time to time.
func progress(w io.Writer, every time.Duration) func(replay.Progress) {
	last := time.Now()
	return func(p replay.Progress) {
		if time.Since(last) >= every {
			last = time.Now()
			of := ""
			if p.Total > 0 {
				of = fmt.Sprintf(" of %d", p.Total)
			}
			fmt.Fprintf(w, "%9.1f s simulated, %d%s requests ended, %d in flight\n", float64(p.Now)/1000, p.Ended, of, p.Arrived-p.Ended)
		}
	}
}

// outcome is a run that has ended, one way or another.
type outcome struct {
	*replay.Result
	summary report.Fields
	source  limits.Source
	limits  []limits.Outcome
	hold    bool   // all of them
	lost    string // the limit that ended the run; empty if none did
	stuck   error  // why the fleet could not go on; nil if it could
}

// execute runs what was loaded until its end, or that of the context.
func (j *job) execute(ctx context.Context) (*outcome, error) {
	j.options.Context = ctx
	if j.options.Cores == 0 {
		j.options.Cores = runtime.GOMAXPROCS(0)
	}
	look := lookout{limits: j.limits, views: map[*report.Offline]*report.SoFar{}}
	if j.a.abortOnFail {
		j.options.Stop = look.stop
	}
	start := time.Now()
	r, err := j.replay()
	var stuck *replay.StuckError
	if err != nil && !errors.As(err, &stuck) {
		return nil, err
	}
	o := &outcome{Result: r, lost: look.lost}
	if stuck != nil {
		o.stuck = stuck
	}
	r.Interrupted = r.Interrupted && o.lost == ""
	r.Fleet.WallMS = time.Since(start).Seconds() * 1000
	if g := j.graph(); g != nil {
		r.Fleet.Extra = append(report.Fields{{Key: "agentic_model_projection", Value: report.Fields{
			{Key: "policy", Value: "project_to_configured_target"}, {Key: "source_models", Value: g.Models()},
			{Key: "target_model", Value: j.a.executionModel}}}}, r.Fleet.Extra...)
	}
	o.summary = r.Offline.Summary(r.Fleet)
	o.source = r.Offline.Source(o.summary, r.Unfinished)
	o.limits, o.hold = limits.CheckAll(j.limits, o.source)
	return o, nil
}

// replay runs what was loaded on the clock that was asked for.
func (j *job) replay() (*replay.Result, error) {
	if j.a.replayMode == "online" {
		return online.Run(j.options)
	}
	return replay.Run(j.options)
}

// graph returns the graph of the workload, nil if there is none.
func (j *job) graph() *trace.Graph {
	if j.options.Trace == nil {
		return nil
	}
	return j.options.Trace.Graph
}

// lookout ends a run when one of its limits is lost. The figures of a worker that is simulated by itself bound those of
// the fleet: maxima and counts from below, minima from above.
type lookout struct {
	limits []limits.Limit

	mu    sync.Mutex
	views map[*report.Offline]*report.SoFar
	lost  string
}

func (l *lookout) stop(c *report.Offline) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != "" {
		return true
	}
	view := l.views[c]
	if view == nil {
		view = c.SoFar()
		l.views[c] = view
	}
	if lost, ok := limits.FirstLost(l.limits, view); ok {
		l.lost = lost.Text
	}
	return l.lost != ""
}
