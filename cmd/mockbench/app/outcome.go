package app

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"mockbench/engine/report"
	"mockbench/engine/report/limits"
	"mockbench/engine/report/page"
)

// lostError ends a run one of whose limits cannot hold any more.
type lostError struct{ limit string }

func (e *lostError) Error() string { return e.limit + " cannot hold any more" }

// lookAtLimits says when to look whether a limit is lost: never, unless that is to end the run.
func (p *program) lookAtLimits() (<-chan time.Time, func()) {
	if !p.s.Verdict.Abort {
		return nil, func() {}
	}
	t := time.NewTicker(250 * time.Millisecond)
	return t.C, t.Stop
}

// lost returns a *lostError for the first limit that cannot hold any more.
func (p *program) lost(j *job) error {
	r := j.figures.soFar()
	if l, lost := limits.FirstLost(p.s.Verdict.Limits, r.Source()); lost {
		return &lostError{l.Text}
	}
	return nil
}

// plottedColumns is how much of the end of a run its page shows over time: two minutes.
const plottedColumns = 600

// close returns the figures up to now.
func (f *figures) close() *closing {
	c := &closing{Report: f.soFar()}
	if f.p.s.Verdict.HTML == "" {
		return c
	}
	now := f.fleet.clock.Now()
	c.shapes = f.collect.Shapes(now)
	var w report.Window
	f.collect.Window(&w, report.All, now, plottedColumns)
	c.plots = w.Plots(float64(now))
	return c
}

// summaryWidth is the width of the summary where stdout is no terminal.
const summaryWidth = 100

// write writes summary, report and what else was asked for, and says whether all limits hold.
func (f *figures) write(e end) (hold bool, err error) {
	f.freeze()
	c, v := f.frozen, &f.p.s.Verdict
	c.Interrupted, c.Aborted = e.signal != nil && f.p.hasGoal(), e.lost
	c.Limits, hold = limits.CheckAll(v.Limits, c.Source())
	out := os.Stdout
	if f.p.s.Report == "-" || v.JUnit == "-" || v.HTML == "-" {
		out = os.Stderr
	}
	f.print(out, e, hold)
	for _, file := range []struct {
		flag, path string
		write      func(w io.Writer) error
	}{
		{"--report", f.p.s.Report, func(w io.Writer) error { return report.WriteJSON(w, c.Report) }},
		{"--junit", v.JUnit, func(w io.Writer) error {
			return limits.WriteJUnit(w, limits.Run{Name: "mockbench", Seconds: c.Summary.WallMS / 1000, Failure: e.trouble(f.p)}, c.Limits)
		}},
		{"--html", v.HTML, func(w io.Writer) error {
			return page.Write(w, c.Page(report.Document{Title: "Live run", Subtitle: strings.Join(os.Args, " "), Status: e.trouble(f.p),
				Outcomes: c.Limits, Shapes: c.shapes, Time: c.plots}))
		}},
	} {
		if file.path == "" {
			continue
		}
		if err := report.WriteTo(file.path, os.Stdout, file.write); err != nil {
			return hold, fmt.Errorf("%s: %w", file.flag, err)
		}
	}
	return hold, nil
}

// print writes the summary, or the one line that was asked for instead.
func (f *figures) print(out *os.File, e end, hold bool) {
	r := f.frozen.Report
	if f.p.s.Verdict.Line {
		fmt.Fprintln(out, report.OneLine(e.word(f.p, hold), r.Source(), r.Limits))
		return
	}
	width := summaryWidth
	if w := terminalWidth(out); w > 0 {
		width = w
	}
	writeText(out, r, width)
	for _, o := range r.Limits {
		fmt.Fprintln(out, o)
	}
	if s := f.p.saved.Load(); s != nil {
		s.print(out)
	}
	if e.lost != "" {
		fmt.Fprintln(out, e.trouble(f.p))
	}
}

// trouble says why a run ended before its end; empty if it did not.
func (e *end) trouble(p *program) string {
	switch {
	case e.err != nil:
		return e.err.Error()
	case e.lost != "":
		return "aborted: " + e.lost + " cannot hold any more"
	case e.signal != nil && p.hasGoal():
		return "interrupted by a signal"
	}
	return ""
}

// word says in a word how a run ended.
func (e *end) word(p *program, hold bool) string {
	switch {
	case e.err != nil:
		return "error"
	case e.lost != "":
		return "aborted"
	case e.signal != nil && p.hasGoal():
		return "interrupted"
	case !hold:
		return "failed"
	}
	return "ok"
}
