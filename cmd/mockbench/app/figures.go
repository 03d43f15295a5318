package app

import (
	"slices"
	"sync/atomic"
	"time"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/report/page"
	"mockbench/ui"
	"mockbench/ui/knobs"
)

// figures collects what a run amounts to, for screen, progress lines, summary and report.
type figures struct {
	p       *program
	fleet   *fleet
	collect *report.Collector
	began   time.Time
	line    report.Window
	last    report.Counts
	shown   report.Window
	notes   []string
	frozen  *closing // the figures at the end, if that was before the last record
	rival   *rival   // nil without a comparison
	slo     atomic.Pointer[knobs.SLO]
}

func newFigures(p *program, f *fleet) *figures {
	o := report.Options{Start: f.clock.Now(), Limits: p.s.SLO}
	for i := range p.s.Workers {
		o.Workers = append(o.Workers, p.workerName(f.first+i))
		if p.s.Split() {
			o.Roles = append(o.Roles, p.s.PoolOf(i).Role)
		}
	}
	figures := &figures{p: p, fleet: f, began: time.Now(), collect: report.NewCollector(o)}
	f.stalled = figures.collect.Stalled
	figures.slo.Store(&p.s.SLO)
	return figures
}

// reader returns the reader of one worker's records.
func (f *figures) reader(worker int) engine.Reader { return f.collect.Reader(worker) }

// ended returns the requests that need no more attention.
func (f *figures) ended() uint64 {
	c := f.collect.Counts(report.All)
	return uint64(c.Completed + c.Rejected + c.Cancelled)
}

// progress returns a line on the run, and whether anything has happened since the last one.
func (f *figures) progress() (line string, changed bool) {
	c := f.collect.Counts(report.All)
	changed = c != f.last
	f.last = c
	return f.collect.Line(&f.line, f.fleet.clock.Now(), int(f.p.s.Requests)), changed
}

// slowNote tells of what no figure shows: the reference's models of time.
const slowNote = "polynomial timing: a decode pass takes as long for one request as for many with the same total context"

// closing is the figures of a run at a moment.
type closing struct {
	report.Report
	shapes []report.Shape // of latencies
	plots  []page.Plot    // of the last minutes
}

// freeze makes now the end of the figures; the first call counts.
func (f *figures) freeze() {
	if f.frozen == nil {
		f.frozen = f.close()
	}
}

// report returns the figures of the whole run.
func (f *figures) report() report.Report {
	if f.frozen != nil {
		return f.frozen.Report
	}
	return f.soFar()
}

// soFar returns the figures up to now.
func (f *figures) soFar() report.Report {
	final := report.Final{Now: f.fleet.clock.Now(), Wall: time.Since(f.began), Generator: "mockbench " + flags.ReferenceVersion,
		Mode: "live", Notes: slices.Clone(f.notes)}
	for _, w := range f.fleet.workers {
		final.Slip = append(final.Slip, w.Slip())
	}
	if f.p.s.Launch.Engine.Timing.Type == "polynomial" {
		final.Notes = append(final.Notes, slowNote)
	}
	if noDelay(f.p.s) {
		final.Notes = append(final.Notes, "no simulated delay: latencies are those of the timing model, duration and throughput those of this machine")
	}
	r := f.collect.Report(final)
	if f.rival != nil {
		f.rival.compare(&r)
	}
	return r
}

// window returns the latencies of the last seconds, for the screen.
func (f *figures) window() ui.Window {
	f.collect.Window(&f.shown, report.All, f.fleet.clock.Now(), 0)
	slo := f.SLO()
	w := ui.WindowOf(&f.shown, slo)
	if kept, all := f.collect.Attained(slo, f.fleet.clock.Now()); all > 0 && slo != (knobs.SLO{}) {
		w.Goodput = float64(kept) / float64(all)
	}
	return w
}
