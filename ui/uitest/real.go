package uitest

import (
	"context"
	"fmt"
	"testing"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/spawn"
	"mockbench/engine/workload"
	"mockbench/ui"
)

// Real is live workers under a load, with all that a screen needs of them.
type Real struct {
	Options ui.Options
	Workers []*live.Worker
	Load    *workload.Load
	Figures *report.Collector
}

// StartReal runs workers with an engine under a load until the test ends. Simulated time runs so many times as fast as
// the wall clock. What wrap returns takes the place of the readers of the screen, if it is given.
func StartReal(t testing.TB, cfg engine.Config, workers int, speed float64, o workload.Options,
	wrap ...func(engine.Reader) engine.Reader) *Real {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	clock := live.NewClock(speed)
	place, err := router.New(router.Options{Policy: router.KV, Workers: workers, BlockSize: cfg.BlockSize})
	must(err)
	load, err := workload.New(o)
	must(err)
	var names []string
	for i := range workers {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	r := &Real{Load: load, Figures: report.NewCollector(report.Options{Workers: names})}
	var sources []ui.Source
	for i, name := range names {
		feed := ui.NewFeed(1)
		var reader engine.Reader = feed
		for _, f := range wrap {
			reader = f(reader)
		}
		w, err := live.Start(context.Background(), live.Options{Name: name, Index: i, Engine: cfg, Ranks: 1, Clock: clock,
			Readers: []engine.Reader{place.Reader(i), r.Figures.Reader(i), reader}})
		must(err)
		t.Cleanup(w.Close)
		r.Workers = append(r.Workers, w)
		sources = append(sources, ui.Source{Worker: w, Feed: feed})
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	spawn.Go("load", func() {
		defer close(done)
		_ = load.Run(ctx, workload.Fleet(clock, place, r.Workers))
	})
	t.Cleanup(func() { cancel(); clock.Resume(); <-done })
	r.Options = ui.Options{Model: "test", Backend: string(cfg.Backend), Clock: clock, Routing: place, Load: load, Router: place,
		Fleet: func() []ui.Source { return sources }}
	return r
}
