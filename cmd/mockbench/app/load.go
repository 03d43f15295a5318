package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"mockbench/engine"
	"mockbench/engine/spawn"
	"mockbench/engine/workload"
	"mockbench/transport/modelcard"
	"mockbench/ui"
)

// loadGrace is how long a built-in load may finish what it has begun.
const loadGrace = 5 * time.Second

// startLoad starts workers behind a placement policy and a load that keeps them busy. No socket is opened.
func (p *program) startLoad(ctx context.Context) (*job, error) {
	place, err := p.openPlacement()
	if err != nil {
		return nil, err
	}
	o := p.s.Load.Options
	o.Seed, o.Requests = p.s.Seed, int(p.s.Requests)
	load, err := workload.New(o)
	if err != nil {
		return nil, err
	}
	f := p.newFleet()
	figures, second, err := p.openFigures(f, place)
	if err != nil {
		return nil, err
	}
	for i := range f.workers {
		figures, place := figures, place
		if i >= p.s.Workers {
			figures, place = second.figures, second.place
		}
		readers := []engine.Reader{figures.reader(i % p.s.Workers), place.reader(i % p.s.Workers)}
		if _, err := p.startWorker(ctx, f, i, p.s.Launch.Startup(), readers...); err != nil {
			f.close()
			return nil, err
		}
	}
	target := p.target(f, place)
	if second != nil {
		mirror := p.target(f.half(true), second.place)
		target.Mirror, second.load = &mirror, load
	}
	done := make(chan struct{})
	running, stop := context.WithCancel(context.Background())
	spawn.Go("load", func() {
		defer close(done)
		if err := load.Run(running, target); err != nil && !errors.Is(err, context.Canceled) {
			p.logger("load").Error("load ended", "error", err)
		}
	})
	p.logger("app").Info(fmt.Sprintf("%d workers with a built-in load", p.s.Workers), "profile", p.s.Profile, "seed", p.s.Seed, "routing", p.s.Load.Routing)
	return &job{
		fleet: f, figures: figures, model: cmp.Or(p.s.Model.Name, p.s.Model.Path, modelcard.BuiltinName), load: load, place: place, rival: second, routing: place, done: done, grace: loadGrace,
		planes: func() ui.Status { return ui.Status{} },
		close:  stop,
		drain: func(ctx context.Context, progress func(ui.Draining)) {
			p.endLoad(ctx, load, figures, done, progress)
			figures.freeze() // what is cut off now is unfinished, not cancelled
			stop()
			<-done
		},
	}, nil
}

// openFigures prepares the figures of a run, and the second fleet if there is to be one.
func (p *program) openFigures(f *fleet, place *placement) (*figures, *rival, error) {
	if p.s.AB == "" {
		f.changed = place.changed
		return newFigures(p, f), nil, nil
	}
	second, err := p.openRival(f, place)
	if err != nil {
		return nil, nil, err
	}
	figures := newFigures(p, f.half(false))
	figures.rival = second
	sides, n := [2]*placement{place, second.place}, p.s.Workers
	f.changed = func(worker int, c engine.Config) { sides[worker/n].changed(worker%n, c) }
	f.stalled = func(worker int) {
		if worker >= n {
			second.figures.collect.Stalled(worker - n)
			return
		}
		figures.collect.Stalled(worker)
	}
	return figures, second, nil
}

// endLoad lets a load finish what it has begun, unless the run has a duration: then the end is the end, and what is
// unfinished is told.
func (p *program) endLoad(ctx context.Context, load *workload.Load, f *figures, done <-chan struct{}, progress func(ui.Draining)) {
	if p.s.Duration > 0 && time.Since(f.began) >= p.s.Duration {
		return
	}
	load.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		progress(ui.Draining{Streams: load.Counts().InFlight})
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
