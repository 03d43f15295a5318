package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"mockbench/cmd/mockbench/settings"
	"mockbench/engine"
	"mockbench/engine/outputs"
	"mockbench/engine/spawn"
	"mockbench/transport/discovery"
	"mockbench/transport/dynamo"
	"mockbench/transport/embeddednats"
	"mockbench/transport/eventplane"
	"mockbench/transport/metrics"
	"mockbench/transport/modelcard"
	"mockbench/transport/requestplane"
	"mockbench/transport/status"
	"mockbench/transport/vllmwire"
	"mockbench/ui"
)

// eventLinger is how long subscribers may take to read what is queued for them at the end.
const eventLinger = 100 * time.Millisecond

// serving is the workers of the process as frontends see them.
type serving struct {
	p        *program
	pools    []*pool
	model    modelcard.Model
	store    discovery.Backend
	lost     chan error    // a worker that discovery has lost for good
	closed   chan struct{} // closed at the end
	server   requestplane.Plane
	opener   eventplane.Opener    // of each worker's event plane
	events   *nats.Conn           // of the event plane; nil without
	broker   *embeddednats.Server // nil unless wanted
	status   *status.Server       // nil if not wanted
	families *metrics.Families
	shown    []*metrics.Worker // by number
	env      requestplane.Environment
	fleet    *fleet
	cards    cards
	figures  *figures

	replay *outputs.Table // recorded answers, nil if there are none

	mu            sync.Mutex // guards what follows
	registrations []*dynamo.Registration
	planes        []*eventplane.Plane
	wires         []*vllmwire.Wire
	handoffs      []*dynamo.Handoffs
	closing       sync.Once
}

// newServing makes room for the workers of a run; nothing is open yet.
func (p *program) newServing() *serving {
	s := &serving{p: p, fleet: p.newFleet(), env: requestplane.FromEnvironment(os.Getenv), lost: make(chan error, p.s.Workers), closed: make(chan struct{})}
	s.figures = newFigures(p, s.fleet)
	s.fleet.changed = s.changed
	return s
}

// startServing brings up workers that a frontend finds. With an error nothing is left behind.
func (p *program) startServing(ctx context.Context) (*job, error) {
	s := p.newServing()
	s.watchQuit()
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return &job{fleet: s.fleet, figures: s.figures, model: s.name(), planes: s.state, lost: s.lost, drain: s.drain, close: s.close, abandon: s.abandon,
		grace: s.env.DrainLimit}, nil
}

// start opens everything and starts the workers. With an error nothing is left behind.
func (s *serving) start(ctx context.Context) error {
	log := s.p.logger("app")
	if s.p.s.File != "" {
		log.Info("Loaded canonical engine config from JSON file", "file", s.p.s.File)
	} else {
		log.Info("Created canonical engine config from CLI arguments")
	}
	err := s.open(ctx)
	if err == nil {
		log.Info(fmt.Sprintf("Launching %d mocker worker(s) ...", s.p.s.Workers))
		err = s.startWorkers(ctx)
	}
	if err == nil { // again: another process may have registered meanwhile
		err = s.checkModel(ctx)
	}
	if err != nil {
		_ = s.takeBack()
		return err
	}
	log.Info(fmt.Sprintf("All %d mocker worker(s) created and running", s.p.s.Workers))
	s.announce()
	return nil
}

// open opens everything the workers share, what can fail for a wrong setting first.
func (s *serving) open(ctx context.Context) (err error) {
	p := s.p
	if err := s.parsePools(); err != nil {
		return err
	}
	if s.model, err = findModel(p.s.Model); err != nil {
		return modelError(err)
	}
	registry := prometheus.NewRegistry()
	statusOptions, wanted, err := status.FromEnv(os.Getenv, p.s.Quirks)
	if err != nil {
		return err
	}
	if wanted {
		statusOptions.Metrics = registry
		if s.status, err = status.Listen(statusOptions); err != nil {
			return err
		}
		p.logger("status").Info("health and metrics", "port", s.status.Port())
	}
	if err := s.openPlanes(ctx, registry); err != nil {
		return err
	}
	if err := s.openMetrics(registry); err != nil {
		return err
	}
	if s.replay, err = loadReplay(p); err != nil {
		return err
	}
	if err := s.makeCards(); err != nil {
		return err
	}
	if err := s.openBackend(ctx); err != nil {
		return err
	}
	return s.checkModel(ctx)
}

// name is the name of the model in answers.
func (s *serving) name() string {
	if s.p.s.Model.Path == "" {
		return cmp.Or(s.p.s.Model.Name, modelcard.BuiltinName)
	}
	return cmp.Or(s.p.s.Model.Name, s.model.Source)
}

// startWorkers starts all workers, each after its pause, and registers each as soon as it can serve.
func (s *serving) startWorkers(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := s.p.s.Workers
	failures := make(chan error, n)
	started := 0
	for i := range n {
		s.p.logger("app").Info(fmt.Sprintf("Creating mocker worker %d/%d", i+1, n))
		started++
		spawn.Go("start of "+s.p.workerName(i), func() { failures <- s.startOne(ctx, i) })
		if pause(ctx, settings.Pause(i, n, s.p.s.Stagger)) != nil {
			break
		}
	}
	err := ctx.Err()
	for range started {
		if failure := <-failures; failure != nil && (err == nil || errors.Is(err, context.Canceled)) {
			err = failure
			cancel()
		}
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startOne starts one worker: publishers, engine, records.
func (s *serving) startOne(ctx context.Context, i int) error {
	l, err := s.p.s.Worker(i)
	if err != nil {
		return err
	}
	wires, err := s.openWires(l)
	if err != nil {
		return fmt.Errorf("worker %d: %w", i, err)
	}
	member, err := s.join(ctx, i)
	if err != nil {
		return err
	}
	id, log, pool := member.ID, s.p.logger("worker"), s.pool(i)
	plane, err := eventplane.Open(eventplane.Options{
		Opener:   s.opener,
		Endpoint: eventplane.Endpoint(pool.endpoint), Worker: id, Ranks: int(l.DPSize),
		KVEvents:  publishesKVEvents(&l.Engine),
		Sequences: l.Engine.Role != engine.PrefillRole, Wires: wires, Log: s.p.logger("eventplane"),
	})
	if err != nil {
		return fmt.Errorf("event plane of worker %d: %w", i, err)
	}
	s.mu.Lock()
	s.planes = append(s.planes, plane)
	s.mu.Unlock()
	s.shown[i] = s.families.Worker(metrics.WorkerOptions{ID: requestplane.Name{Instance: id}.InstanceHex(), Ranks: int(l.DPSize),
		Role: l.Engine.Role, Component: pool.endpoint.Component})
	readers := append([]engine.Reader{s.figures.reader(i), s.shown[i]}, plane.Readers()...)
	w, err := s.p.startWorker(ctx, s.fleet, i, l.Startup(), readers...)
	if err != nil {
		return err
	}
	s.shown[i].Slip(w.Slip)
	handoffs, card, err := s.openHandoffs(l, w, *pool.card)
	if err != nil {
		return fmt.Errorf("worker %d: %w", i, err)
	}
	r, err := dynamo.Register(ctx, dynamo.Options{Worker: w, Server: s.server, Store: member, Events: plane, Endpoint: pool.endpoint,
		ID: id, Card: card, Handoffs: handoffs, Device: discovery.Device(os.LookupEnv), Codec: s.env.Codec, Index: i, Seed: s.p.s.Seed,
		Quirks: s.p.s.Quirks, Reasoning: reasoning(l), Replay: s.replay, Log: log})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.cards.add(i, r, card, w.Config())
	s.registrations = append(s.registrations, r)
	s.mu.Unlock()
	if s.status != nil {
		for _, name := range r.Endpoints() {
			s.status.SetEndpoint(name, true)
		}
	}
	return nil
}

// announce logs where the workers can be found.
func (s *serving) announce() {
	for _, pool := range s.pools {
		s.p.logger("app").Info("ready", "model", s.name(), "workers", pool.Workers, "endpoint", pool.Endpoint,
			"discovery", s.store, "address", s.server.Addr(), "seed", s.p.s.Seed)
	}
}

// drain takes the workers out of discovery, all at once, and waits for the requests in flight.
func (s *serving) drain(ctx context.Context, progress func(ui.Draining)) {
	done := make(chan struct{})
	spawn.Go("drain workers", func() {
		defer close(done)
		if err := s.drainAll(ctx); err != nil && !errors.Is(err, context.Canceled) {
			s.p.logger("app").Warn("drain", "error", err)
		}
	})
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var left ui.Draining
		for _, w := range s.fleet.workers {
			left.Streams += w.InFlight()
		}
		progress(left)
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

// drainAll drains all workers at the same time. One that fails does not keep the others; all errors are returned.
func (s *serving) drainAll(ctx context.Context) error {
	log := s.p.logger("app")
	log.Info("Received shutdown signal, shutting down DistributedRuntime instances")
	if s.status != nil {
		s.status.Stopping()
	}
	err := all(s.registrations, func(r *dynamo.Registration) error { return r.Drain(ctx) })
	log.Info("DistributedRuntime shutdown complete")
	return err
}

// all calls f with every element at the same time and returns all errors.
func all[E any](list []E, f func(E) error) error {
	errs := make([]error, len(list))
	var running sync.WaitGroup
	for i, e := range list {
		running.Add(1)
		spawn.Go("one of all", func() {
			defer running.Done()
			errs[i] = f(e)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// close closes publishers, sockets and the store, the status server last.
func (s *serving) close() { s.closing.Do(func() { _ = s.takeBack() }) }

// takeBack undoes whatever has been opened, in the order that hurts clients least. All of it is, whatever fails.
func (s *serving) takeBack() error {
	close(s.closed)
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{all(s.registrations, (*dynamo.Registration).Close)}
	s.fleet.close()
	s.closeHandoffs()
	if s.store != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := s.store.Close(ctx)
		cancel()
		if err != nil {
			s.p.logger("discovery").Warn("close", "error", err)
		}
		errs = append(errs, err)
	}
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	_ = all(s.planes, func(e *eventplane.Plane) error { e.Close(eventLinger); return nil })
	for _, w := range s.wires {
		w.Close()
	}
	s.closeNATS()
	if s.status != nil {
		errs = append(errs, s.status.Close())
	}
	return errors.Join(errs...)
}

// state is the line about connections on the screen.
func (s *serving) state() ui.Status {
	planes := &s.p.s.Planes
	found := planes.Discovery
	if found == discovery.MemoryBackend {
		found = "mem (no frontend finds it)"
	}
	out := ui.Status{Planes: fmt.Sprintf("%s > %s > %s", found, planes.Request, planes.Event) + s.natsState() + s.discoveryState()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.planes {
		topics, lost := e.Stats()
		out.Dropped += lost
		for _, t := range topics {
			out.Dropped += t.Dropped
			if t.Topic == eventplane.KVEvents {
				out.Subscribers = max(out.Subscribers, len(t.Subscribers))
				out.Published += t.Messages
			}
		}
	}
	return out
}
