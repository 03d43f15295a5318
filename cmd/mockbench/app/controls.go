package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"mockbench/cmd/mockbench/settings"
	"mockbench/engine"
	"mockbench/engine/router"
	"mockbench/engine/spawn"
	"mockbench/profiles"
	"mockbench/transport/dynamo"
	"mockbench/transport/modelcard"
	"mockbench/ui"
	"mockbench/ui/knobs"
)

// withControls adds what the screen can change of a run.
func (p *program) withControls(j *job, o ui.Options) ui.Options {
	o.Limits, o.Save = j.figures, p.save
	if j.load != nil {
		o.Load, o.Router = j.load, j.place
	}
	if j.rival != nil {
		o.Sides, o.SecondPolicy = j.rival.sides(j.figures), j.rival.second
	}
	return o
}

// SLO returns the limits that latencies are compared with.
func (f *figures) SLO() knobs.SLO {
	return *f.slo.Load()
}

// SetSLO changes them for the screen. The report keeps those that the run began with.
func (f *figures) SetSLO(s knobs.SLO) error {
	if err := s.Validate(); err != nil {
		return err
	}
	f.slo.Store(&s)
	return nil
}

// Options returns the present options of the routers.
func (p *placement) Options() router.Options { return p.pools[0].Options() }

// SetPolicy changes how requests are placed, at prefill and decode workers alike.
func (p *placement) SetPolicy(policy router.Policy) error {
	for _, pool := range p.pools {
		if err := pool.Router.SetPolicy(policy); err != nil {
			return err
		}
	}
	return nil
}

// SetModel changes the cost weights. Decode workers keep theirs, which count load alone.
func (p *placement) SetModel(m router.Model) error { return p.pools[0].Router.SetModel(m) }

// changed follows a worker whose settings have changed.
func (p *placement) changed(worker int, c engine.Config) {
	for _, pool := range p.pools {
		if worker >= pool.first && worker < pool.first+pool.workers {
			pool.SetBlockSize(c.BlockSize)
		}
	}
}

// save writes settings to a profile of the user's and returns the command that starts it. File and flags are told
// at the end of the run, when there is room for them.
func (p *program) save(s knobs.Setup) (string, error) {
	out := p.asProfile(s)
	text, err := out.Encode()
	if err != nil {
		return "", err
	}
	name := "tuned-" + time.Now().Format("20060102-150405")
	path, err := profiles.UserStore().Write(name, text, false)
	if err != nil {
		return "", err
	}
	args, rest := settings.CommandLine(p.s.From, out)
	words := strings.TrimSpace("mockbench " + settings.Shell(args))
	if len(rest) > 0 {
		words += fmt.Sprintf("  (no flag gives %s)", strings.Join(rest, ", "))
	}
	p.saved.Store(&saved{name, path, words})
	return fmt.Sprintf("mockbench --profile %s (the end of the run tells file and flags)", name), nil
}

// saved is the last profile that was saved from the screen.
type saved struct{ name, path, flags string }

// print tells where the settings are and which flags give the same.
func (s *saved) print(out io.Writer) {
	fmt.Fprintf(out, "\nsaved %s\n  mockbench --profile %s\nthe same in flags\n  %s\n", s.path, s.name, s.flags)
}

// asProfile returns settings of the screen as a profile.
func (p *program) asProfile(s knobs.Setup) *profiles.Profile {
	launch := *p.s.Launch
	launch.BlocksExplicit = launch.BlocksExplicit || s.Engine.NumGPUBlocks != launch.Engine.NumGPUBlocks
	role, events, tokens := launch.Engine.Role, launch.Engine.EmitKVEvents, launch.Engine.EmitKVTokenIDs
	launch.Engine = s.Engine
	launch.Engine.Role, launch.Engine.EmitKVEvents, launch.Engine.EmitKVTokenIDs = role, events, tokens
	var load *profiles.Load
	if p.s.Load != nil {
		load = &profiles.Load{Options: s.Load, Routing: s.Policy, Router: s.Model}
		load.Options = p.s.Load.WithoutDefaults(load.Options)
		load.Seed, load.Requests = 0, 0
	}
	out := profiles.New(&launch, load)
	out.Description, out.SLO = "Saved by the screen.", s.SLO
	if p.s.Split() {
		for _, pool := range p.s.Pools {
			if pool.Role == engine.PrefillRole {
				out.PrefillWorkers = uint32(pool.Workers)
			} else {
				out.DecodeWorkers = uint32(pool.Workers)
			}
		}
	} else {
		out.Workers = uint32(p.s.Workers)
	}
	return out
}

const (
	// republishDelay gathers changes: for every new card a frontend forgets the worker for a moment.
	republishDelay = time.Second

	// republishPause is the time for frontends to take up a worker again before the card of the next one goes.
	republishPause = 250 * time.Millisecond

	// republishLimit bounds how long a changed model card waits for discovery.
	republishLimit = 5 * time.Second
)

// cards are the model cards of registered workers, as they were registered.
type cards struct {
	mu      sync.Mutex // one after the other, so that the latest settings are published last
	workers sync.Map   // by number: *published
}

type published struct {
	registration *dynamo.Registration
	card         json.RawMessage // as it was registered
	now          json.RawMessage // as it was published last, in the form that changes have
}

// add notes a worker that is registered.
func (c *cards) add(worker int, r *dynamo.Registration, card json.RawMessage, cfg engine.Config) {
	now, err := modelcard.WithEngine(card, cfg)
	if err == nil {
		c.workers.Store(worker, &published{r, card, now})
	}
}

// stopped waits for some time and reports whether the end of the run came first.
func (s *serving) stopped(d time.Duration) bool {
	select {
	case <-s.closed:
		return true
	case <-time.After(d):
		return false
	}
}

// changed makes the model card of a worker say what its settings are now, a moment later. It does not wait.
func (s *serving) changed(worker int, _ engine.Config) {
	v, ok := s.cards.workers.Load(worker)
	if !ok {
		return
	}
	name, p := s.p.workerName(worker), v.(*published)
	spawn.Go("model card of "+name, func() {
		if s.stopped(republishDelay) {
			return
		}
		s.cards.mu.Lock()
		defer s.cards.mu.Unlock()
		card, err := modelcard.WithEngine(p.card, s.fleet.workers[worker].Config())
		if err == nil && !bytes.Equal(card, p.now) {
			ctx, cancel := context.WithTimeout(context.Background(), republishLimit)
			err = p.registration.Republish(ctx, card)
			cancel()
			p.now = card
			s.stopped(republishPause)
		}
		if err != nil {
			s.p.logger("worker").Warn("the model card does not say the present settings", "worker", name, "error", err)
		}
	})
}
