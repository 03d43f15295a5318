package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"mockbench/cmd/mockbench/settings"
	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/ui"
)

// fleet is the workers of the process.
type fleet struct {
	clock   *live.Clock
	workers []*live.Worker // by number; nil until started
	first   int            // number in the process of the first of them
	feeds   []*ui.Feed     // of the screen; nil without
	taps    taps           // of the recorder; nil without
	stalled func(worker int)
	changed func(worker int, c engine.Config) // settings have come into force; nil if nobody cares
}

// newFleet makes room for the workers of a run.
func (p *program) newFleet() *fleet {
	n := p.s.Workers
	if p.s.AB != "" {
		n *= 2
	}
	f := &fleet{clock: live.NewClock(1), workers: make([]*live.Worker, n)}
	if p.screen {
		f.feeds = make([]*ui.Feed, n)
	}
	if p.s.Record != "" {
		f.taps = make(taps, n)
	}
	return f
}

// workerName returns the name of a worker for people: its letter says its role where there are
// two, and what is in front of it the fleet of a comparison.
func (p *program) workerName(i int) string {
	letter, side := "w", ""
	if p.s.AB != "" {
		side = [2]string{"a:", "b:"}[i/p.s.Workers]
	}
	i %= p.s.Workers
	pool := p.s.PoolOf(i)
	if p.s.Split() {
		letter = string(pool.Role[:1])
	}
	return fmt.Sprint(side, letter, i-pool.First)
}

// engineText returns what the screen calls the engines: their kind, and how many have which role if there are two.
func (p *program) engineText() string {
	text := string(p.s.Launch.Engine.Backend)
	if p.s.Split() {
		text += fmt.Sprintf(" %d prefill + %d decode", p.s.Pools[0].Workers, p.s.Pools[1].Workers)
	}
	return text
}

// noDelay reports whether workers do not sleep for modelled time: a speed-up of zero means that, except where the
// reference's own reading of it is asked for.
func noDelay(s *settings.Settings) bool {
	c := &s.Launch.Engine
	return !s.Quirks && (c.SpeedupRatio == 0 || c.DecodeSpeedupRatio == 0)
}

// startWorker starts one worker of the fleet with the readers it feeds. Different workers may be started at once.
func (p *program) startWorker(ctx context.Context, f *fleet, i int, startup time.Duration, readers ...engine.Reader) (*live.Worker, error) {
	launch, err := p.s.Worker(i % p.s.Workers)
	if err != nil {
		return nil, err
	}
	ranks := int(launch.DPSize)
	if p.screen {
		f.feeds[i] = ui.NewFeed(ranks)
		readers = append(readers, f.feeds[i])
	}
	if f.taps != nil {
		f.taps[i].feed = ui.NewFeed(ranks)
		readers = append(readers, f.taps[i].feed)
	}
	cfg := launch.Engine
	cfg.EmitKVEvents = cfg.EnablePrefixCaching && cfg.Role != engine.DecodeRole
	cfg.EmitKVTokenIDs = cfg.EmitKVEvents && launch.Dynamo.ZMQKVEventsPort != nil
	if trace := newKVTrace(p.log, os.LookupEnv, &cfg, ranks); trace != nil {
		readers = append(readers, trace)
	}
	log := p.logger("worker")
	w, err := live.Start(ctx, live.Options{
		Name: p.workerName(i), Index: i, Engine: cfg, Ranks: ranks, Seed: p.s.Seed, Clock: f.clock,
		NoDelay: noDelay(p.s), Startup: startup, Readers: readers,
		Stalled: func(s live.Stall) {
			f.stalled(i)
			log.Warn("rank is stalled", "worker", s.Worker, "rank", s.Rank, "request", label(s.Hint.Head), "needs", s.Hint.Need,
				"has", s.Hint.Have, "setting", s.Hint.Setting, "raise_to", s.Hint.Raise)
		},
		Changed: func(c engine.Config) {
			if f.changed != nil {
				f.changed(i, c)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	f.workers[i] = w
	f.taps.start(i, w)
	return w, nil
}

func label(r *engine.Request) string {
	if r == nil {
		return ""
	}
	return r.Label
}

// close ends all workers.
func (f *fleet) close() {
	for _, w := range f.workers {
		if w != nil {
			w.Close()
		}
	}
}

// sources returns what the screen shows.
func (f *fleet) sources() []ui.Source {
	out := make([]ui.Source, len(f.feeds))
	for i := range out {
		out[i] = ui.Source{Worker: f.workers[i], Feed: f.feeds[i]}
		if f.taps != nil {
			out[i].Worker = f.taps[i].screen
		}
	}
	return out
}
