package replaycmd

import (
	"fmt"
	"io"
	"os"
	"time"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/viewcmd"
	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/replay"
	"mockbench/engine/report"
	"mockbench/ui"
	"mockbench/ui/knobs"
	"mockbench/ui/recording"
)

// checkScreen says before the run that its recording could not be written or shown.
func (a *arguments) checkScreen() error {
	if a.record == "-" {
		return &flags.UsageError{Text: "--record: must be a file, got -"}
	}
	if a.screen && !ui.Available(os.Stdin, os.Stdout) {
		return &flags.UsageError{Text: "--screen: needs a terminal on stdin and stdout; --record FILE, then mockbench view, do not"}
	}
	if a.record != "" {
		if err := report.CheckFile(a.record); err != nil {
			return fmt.Errorf("--record: %w", err)
		}
	}
	return nil
}

// openTape makes the run be recorded if the command line asks for it.
func (j *job) openTape(args []string) (*tape, error) {
	t := &tape{path: j.a.record, show: j.a.screen}
	switch {
	case t.path != "":
	case t.show:
		f, err := os.CreateTemp("", "mockbench-replay-*.mbrec")
		if err != nil {
			return nil, fmt.Errorf("--screen: %w", err)
		}
		f.Close()
		t.path, t.temporary = f.Name(), true
	default:
		return nil, nil
	}
	o := &j.options
	t.header = recording.Header{Program: "mockbench " + flags.ReferenceVersion, Started: time.Now(), Mode: "replay",
		Model: "replay", Backend: string(o.Workers.Engine.Backend), Settings: args}
	if o.Decode.Workers > 0 {
		t.header.Backend = fmt.Sprintf("%s %d prefill + %d decode", o.Decode.Engine.Backend, o.Prefill.Workers,
			o.Decode.Workers)
	}
	t.slo = knobs.SLO{TTFT: j.a.ttft, ITL: j.a.itl, E2E: j.a.e2e}
	o.Observer = t
	return t, nil
}

// tape is the recording of a replay: it sees the records of passes and takes a sample every tenth of a simulated second.
// It stands for the clock of the run.
type tape struct {
	path            string
	temporary, show bool
	header          recording.Header
	slo             knobs.SLO

	recorder *recording.Recorder
	feeds    []*ui.Feed
	readers  []engine.Reader // of the figures
	collect  *report.Collector
	window   report.Window
	now, due engine.Time
	err      error
}

// Begin opens the recording.
func (t *tape) Begin(fleet []replay.Observed) {
	var sources []recording.Source
	split := false
	for i := range fleet {
		w := &fleet[i]
		t.feeds = append(t.feeds, ui.NewFeed(w.Ranks))
		t.header.Workers = append(t.header.Workers, w.Name)
		sources = append(sources, recording.Source{Worker: replayed{w}, Feed: t.feeds[i]})
		split = split || w.Engine.Role != engine.Aggregated
	}
	run := recording.Run{Clock: t, Setup: recording.Setup(nil, nil, nil)}
	if !split { // latencies of requests that visit two workers are not those of either
		t.header.Window, run.Window = true, t.figures
		t.collect = report.NewCollector(report.Options{Workers: t.header.Workers})
		for i := range fleet {
			t.readers = append(t.readers, t.collect.Reader(i))
		}
	}
	w, err := recording.Create(t.path, t.header)
	if err != nil {
		t.err = err
		return
	}
	t.recorder = recording.NewRecorder(w, run, sources)
	t.sample()
}

func (t *tape) sample() {
	t.due = t.now + engine.Time(recording.Every.Seconds()*1000)
	t.err = t.recorder.Sample()
}

// Submitted notes a request.
func (t *tape) Submitted(worker, rank int, r *engine.Request, now engine.Time) {
	if t.err != nil {
		return
	}
	t.advance(now)
	t.feeds[worker].Submitted(rank, r, now)
	if t.readers != nil {
		if reader, ok := t.readers[worker].(live.RequestReader); ok {
			reader.Submitted(rank, r, now)
		}
	}
}

// Pass notes a record.
func (t *tape) Pass(worker int, p *engine.Pass) {
	if t.err != nil {
		return
	}
	t.advance(p.End)
	t.feeds[worker].Pass(p)
	if t.readers != nil {
		t.readers[worker].Pass(p)
	}
}

// advance takes the sample that is due.
func (t *tape) advance(now engine.Time) {
	if now >= t.due {
		t.sample()
	}
	t.now = max(t.now, now)
}

// figures are the latencies of the last seconds.
func (t *tape) figures() ui.Window {
	t.collect.Window(&t.window, report.All, t.now, 0)
	return ui.WindowOf(&t.window, t.slo)
}

// close ends the recording.
func (t *tape) close() error {
	if t == nil {
		return nil
	}
	if t.recorder != nil {
		if err := t.recorder.Close(recording.End{}); t.err == nil {
			t.err = err
		}
	}
	if t.err != nil {
		return fmt.Errorf("--record: %w", t.err)
	}
	return nil
}

// watch opens the recording in the screen, if that was asked for.
func (t *tape) watch(stdout, stderr io.Writer) error {
	if t == nil || !t.show {
		return nil
	}
	return viewcmd.Open(t.path, stdout, stderr, func(r *recording.Recording, _ io.Writer) error {
		return viewcmd.Watch(viewcmd.Options(r))
	})
}

// remove takes a file away that was only for the screen.
func (t *tape) remove() {
	if t != nil && t.temporary {
		os.Remove(t.path)
	}
}

// What follows makes it a clock.

func (t *tape) Now() engine.Time   { return t.now }
func (t *tape) Pause()             {}
func (t *tape) Resume()            {}
func (t *tape) Paused() bool       { return false }
func (t *tape) Speed() float64     { return 1 }
func (t *tape) SetSpeed(x float64) {}

// replayed is a worker of the replay as a recorder sees it.
type replayed struct{ w *replay.Observed }

func (r replayed) Name() string          { return r.w.Name }
func (r replayed) Ranks() int            { return r.w.Ranks }
func (r replayed) Config() engine.Config { return r.w.Engine }
func (r replayed) Stalled() []live.Stall { return nil }
func (r replayed) Slip() time.Duration   { return 0 }

func (r replayed) Inspect(rank int, s *engine.Snapshot) error {
	r.w.Rank(rank).Inspect(s)
	return nil
}

func (r replayed) Tree(rank, limit int) (t engine.PrefixTree, ok bool, err error) {
	tree, ok := r.w.Rank(rank).(engine.TreeInspector)
	if ok {
		t = tree.Tree(limit)
	}
	return t, ok, nil
}
