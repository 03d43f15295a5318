package app

import (
	"fmt"
	"os"

	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/workload"
	"mockbench/ui"
)

// rival is a second fleet that gets the same traffic under another placement policy. Its workers are the second half of
// those of the process.
type rival struct {
	figures *figures
	place   *placement
	load    *workload.Load
	first   *placement // of the first fleet
}

// half returns one of the two fleets of a comparison.
func (f *fleet) half(second bool) *fleet {
	n := len(f.workers) / 2
	if second {
		return &fleet{clock: f.clock, workers: f.workers[n:], first: n}
	}
	return &fleet{clock: f.clock, workers: f.workers[:n]}
}

// openRival prepares the second fleet of a comparison.
func (p *program) openRival(f *fleet, first *placement) (*rival, error) {
	place, err := p.openPlacement()
	if err != nil {
		return nil, err
	}
	if err := place.SetPolicy(p.s.AB); err != nil {
		return nil, err
	}
	return &rival{place: place, figures: newFigures(p, f.half(true)), first: first}, nil
}

// compare adds the figures of the second fleet to the report of the first.
func (r *rival) compare(a *report.Report) {
	policies := [2]string{string(r.first.Options().Policy), string(r.place.Options().Policy)}
	a.AB = report.Compare(policies, *a, r.figures.report(), r.load.Counts().Unmirrored)
	a.Notes = append(a.Notes, fmt.Sprintf("A/B: the same traffic under %s and %s; conversations go on when %s has answered",
		policies[0], policies[1], policies[0]))
}

// sides returns the figures of both fleets, for the screen.
func (r *rival) sides(first *figures) func() [2]ui.Side {
	return func() [2]ui.Side { return [2]ui.Side{side(first, r.first), side(r.figures, r.place)} }
}

func side(f *figures, place *placement) ui.Side {
	c := f.collect.Counts(report.All)
	return ui.Side{Policy: place.Options().Policy, Window: f.window(), Counters: place.Counters(nil),
		Completed: c.Completed, Preemptions: c.Preemptions}
}

// second is the placement policy of the second fleet, for the screen.
func (r *rival) second(policy router.Policy) error { return r.place.SetPolicy(policy) }

// writeText writes the summary of a run for people.
func writeText(out *os.File, r report.Report, width int) {
	_ = report.WriteText(out, r, width) // a reader that has gone is no failure of the run
	if r.AB != nil {
		_ = report.WriteComparison(out, r, width)
	}
}
