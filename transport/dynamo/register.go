package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mockbench/engine/live"
	"mockbench/engine/outputs"
	"mockbench/engine/spawn"
	"mockbench/transport/discovery"
	"mockbench/transport/eventplane"
	"mockbench/transport/requestplane"
)

// Options describe a worker that is to become a Dynamo worker.
type Options struct {
	Worker   *live.Worker // ready to serve
	Server   requestplane.Plane
	Store    discovery.Store
	Events   *eventplane.Plane // its readers are the worker's; nil: no events
	Endpoint discovery.Endpoint
	ID       uint64          // instance id, of the event plane too
	Card     json.RawMessage // model card
	Device   string          // see discovery.Device
	Codec    requestplane.Codec

	Index     int    // number of the worker in the process
	Seed      uint64 // tokens that clients see derive from it and Index
	Quirks    bool   // answer client mistakes exactly as the reference does
	Reasoning *outputs.Reasoning
	Replay    *outputs.Table
	Handoffs  *Handoffs // see Generator
	Log       *slog.Logger
}

const (
	// withdrawTimeout bounds taking the records back, which happens even if the caller's context has ended.
	withdrawTimeout = 5 * time.Second

	// lastWords is how long requests that a drain cut off get to tell their clients.
	lastWords = time.Second

	// linger is how long a worker still takes requests after its records are gone. Frontends notice within 10 ms.
	linger = 50 * time.Millisecond
)

// Registration is a worker that frontends can find.
type Registration struct {
	o   Options
	log *slog.Logger

	withdrawing sync.Mutex
	mu          sync.Mutex // guards the lists
	keys        []discovery.Key
	endpoints   []*requestplane.Endpoint
	names       []string
	over        chan struct{} // closed when the records are gone for good
}

// Register installs the worker's endpoints and publishes its records: each address only when something answers there,
// the model card before the first of them. With an error nothing is left behind.
func Register(ctx context.Context, o Options) (*Registration, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Registration{o: o, log: o.Log, over: make(chan struct{})}
	if err := r.announce(ctx); err != nil {
		_ = r.Withdraw()
		return nil, fmt.Errorf("registering worker %s: %w", o.Worker.Name(), err)
	}
	spawn.Go("registration of "+o.Worker.Name(), r.watch)
	return r, nil
}

// watch takes the records back if the engine fails: a frontend must not send requests to it.
func (r *Registration) watch() {
	select {
	case <-r.o.Worker.Done():
		if err := r.o.Worker.Err(); err != nil {
			r.log.Error("worker failed and is taken out of discovery", "worker", r.o.Worker.Name(), "error", err)
		}
		if err := r.Withdraw(); err != nil {
			r.log.Error("records of a failed worker are left behind", "worker", r.o.Worker.Name(), "error", err)
		}
	case <-r.over:
	}
}

func (r *Registration) announce(ctx context.Context) error {
	if err := r.channels(ctx, eventplane.ActiveSequences); err != nil {
		return err
	}
	if err := r.publish(ctx, discovery.Model{Endpoint: r.o.Endpoint, ID: r.o.ID, Card: r.o.Card}); err != nil {
		return err
	}
	if err := r.serve(ctx, r.o.Endpoint.Name, r.generator()); err != nil {
		return err
	}
	if err := r.channels(ctx, eventplane.ForwardPassMetrics); err != nil {
		return err
	}
	if err := r.sources(ctx); err != nil {
		return err
	}
	return r.channels(ctx, eventplane.KVMetrics)
}

func (r *Registration) generator() *Generator {
	g := &Generator{Worker: r.o.Worker, Index: r.o.Index, Seed: r.o.Seed, Quirks: r.o.Quirks, Reasoning: r.o.Reasoning,
		Replay: r.o.Replay, Handoffs: r.o.Handoffs, Log: r.log}
	if r.o.Events != nil {
		if s := r.o.Events.Sequences(); s != nil {
			g.Prefilled = s.PrefillCompleted
		}
	}
	return g
}

// Republish gives the worker another model card, under the same instance id. Frontends refuse a card that changes under
// its key, so that the old one goes first, for as long as they need to notice; the worker's address stays. After Withdraw
// it does nothing.
func (r *Registration) Republish(ctx context.Context, card json.RawMessage) error {
	r.withdrawing.Lock()
	defer r.withdrawing.Unlock()
	select {
	case <-r.over:
		return nil
	default:
	}
	record := discovery.Model{Endpoint: r.o.Endpoint, ID: r.o.ID, Card: card}
	if err := r.o.Store.Delete(ctx, record.Key()); err != nil {
		return err
	}
	time.Sleep(linger)
	return discovery.Publish(ctx, r.o.Store, record)
}

// publish writes a record that is taken back with the others.
func (r *Registration) publish(ctx context.Context, record discovery.Record) error {
	r.mu.Lock()
	r.keys = append(r.keys, record.Key())
	r.mu.Unlock()
	return discovery.Publish(ctx, r.o.Store, record)
}

// serve installs a handler, then publishes where it is.
func (r *Registration) serve(ctx context.Context, name string, h requestplane.Handler) error {
	instance, err := r.install(name, h)
	if err != nil {
		return err
	}
	return r.publish(ctx, instance)
}

// install installs a handler and returns where it is.
func (r *Registration) install(name string, h requestplane.Handler) (discovery.Instance, error) {
	e := r.o.Endpoint
	installed, err := r.o.Server.Handle(requestplane.Name{Namespace: e.Namespace, Component: e.Component, Endpoint: name,
		Instance: r.o.ID}, h)
	if err != nil {
		return discovery.Instance{}, err
	}
	r.mu.Lock()
	r.endpoints, r.names = append(r.endpoints, installed), append(r.names, name)
	r.mu.Unlock()
	e.Name = name
	return discovery.Instance{Endpoint: e, ID: r.o.ID, Transport: discovery.Transport(installed.Place()), Device: r.o.Device,
		Codec: r.o.Codec.String()}, nil
}

// channels announces the publishers of a topic.
func (r *Registration) channels(ctx context.Context, topic eventplane.Topic) error {
	if r.o.Events == nil {
		return nil
	}
	for _, c := range r.o.Events.Channels() {
		if c.Topic != topic {
			continue
		}
		if err := r.publish(ctx, r.channel(c)); err != nil {
			return err
		}
	}
	return nil
}

func (r *Registration) channel(c eventplane.Channel) discovery.EventChannel {
	return discovery.EventChannel{Endpoint: r.o.Endpoint, Topic: string(c.Topic), Publisher: c.Publisher,
		Transport: discovery.EventTransport{ZMQ: c.Transport.Endpoint, NATS: c.Transport.SubjectPrefix}}
}

// sources announces the KV events of each rank: their channel, the endpoint that answers recovery queries, and the
// source that ties them together. Without the endpoint a source is announced that promises no recovery.
func (r *Registration) sources(ctx context.Context) error {
	if r.o.Events == nil {
		return nil
	}
	channels := map[uint64]eventplane.Channel{}
	for _, c := range r.o.Events.Channels() {
		channels[c.Publisher] = c
	}
	for _, s := range r.o.Events.Sources() {
		if err := r.publish(ctx, r.channel(channels[s.Publisher])); err != nil {
			return err
		}
		target, err := r.recovery(ctx, s)
		if err != nil {
			return err
		}
		source := discovery.EventSource{Endpoint: r.o.Endpoint, Topic: string(eventplane.KVEvents), Publisher: s.Publisher,
			Worker: r.o.ID, Rank: s.Rank, Recovery: target}
		if err := r.publish(ctx, source); err != nil {
			return err
		}
	}
	return nil
}

// recovery serves the recovery queries for a source and returns where, nil if they would not be answered: a router shows
// no events of a rank as long as a query about it is open.
func (r *Registration) recovery(ctx context.Context, s eventplane.Source) (*discovery.Instance, error) {
	err := s.Recovery.Check(ctx)
	var target discovery.Instance
	if err == nil {
		target, err = r.install(eventplane.QueryEndpoint(s.Publisher), recovery{s.Recovery})
	}
	if err != nil {
		r.log.Warn("routers cannot ask for KV events they missed", "worker", r.o.Worker.Name(), "rank", s.Rank, "error", err)
		return nil, ctx.Err()
	}
	return &target, r.publish(ctx, target)
}

// Endpoints returns the names of the endpoints that are served.
func (r *Registration) Endpoints() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.names...)
}

// Active returns the number of accepted requests that are not answered yet.
func (r *Registration) Active() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.endpoints {
		n += e.Active()
	}
	return n
}

// Withdraw takes the records back, the addresses first, and then the endpoints; requests that were accepted go on. Drain
// does it too: a process with several workers withdraws all of them before it waits for one. It may be called more than
// once.
func (r *Registration) Withdraw() error {
	r.withdrawing.Lock()
	defer r.withdrawing.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), withdrawTimeout)
	defer stop()
	r.mu.Lock()
	keys := r.keys
	r.mu.Unlock()
	var failed []discovery.Key
	var errs []error
	for _, first := range []bool{true, false} {
		for _, k := range keys {
			if (k.Bucket == discovery.Instances) != first {
				continue
			}
			if err := r.o.Store.Delete(ctx, k); err != nil {
				failed, errs = append(failed, k), append(errs, err)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys, r.names = failed, nil
	for _, e := range r.endpoints {
		e.Remove()
	}
	select {
	case <-r.over:
	default:
		close(r.over)
	}
	return errors.Join(errs...)
}

// Drain takes the worker out of discovery and waits until every accepted request is answered, waiting ones included.
// When ctx ends, the rest is cut off: their clients get an error. The worker takes nothing afterwards, but is not closed.
func (r *Registration) Drain(ctx context.Context) error {
	err := r.Withdraw()
	select { // requests that frontends sent before they saw the records go
	case <-time.After(linger):
	case <-ctx.Done():
	}
	waited := r.wait(ctx)
	_ = r.o.Worker.Drain(ctx) // nothing is left in it, or ctx has ended
	if waited != nil {
		ctx, stop := context.WithTimeout(context.Background(), lastWords)
		defer stop()
		_ = r.wait(ctx)
	}
	return errors.Join(err, waited)
}

func (r *Registration) wait(ctx context.Context) error {
	r.mu.Lock()
	endpoints := r.endpoints
	r.mu.Unlock()
	for _, e := range endpoints {
		if err := e.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close takes the worker out at once: requests that are being answered are cut off.
func (r *Registration) Close() error {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	err := r.Drain(ctx)
	if errors.Is(err, context.Canceled) && len(r.left()) == 0 {
		return nil
	}
	return err
}

// left returns the records that could not be taken back.
func (r *Registration) left() []discovery.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys
}

// recovery answers the queries of routers that missed KV events of a rank.
type recovery struct{ from *eventplane.Recovery }

// Serve answers one query.
func (q recovery) Serve(ctx context.Context, r *requestplane.Request, s *requestplane.Stream) {
	frame, err := q.from.Handle(ctx, r.Body, r.Codec == requestplane.JSON)
	if err != nil || s.Accept() != nil {
		return
	}
	s.Data(frame)
	_ = s.Finish()
}
