package requestplane

import (
	"context"
	"sync"
	"time"
)

// Request is one request as a handler sees it.
type Request struct {
	ID       string // chosen by the client or frontend; need not be unique
	Codec    Codec
	Body     []byte
	Received time.Time
}

// Handler answers requests. Serve is called in a goroutine of its own for each request; ctx ends when the frontend gives
// the request up.
type Handler interface {
	Serve(ctx context.Context, r *Request, s *Stream)
}

// HandlerFunc is a function that answers requests.
type HandlerFunc func(ctx context.Context, r *Request, s *Stream)

// Serve calls f.
func (f HandlerFunc) Serve(ctx context.Context, r *Request, s *Stream) { f(ctx, r, s) }

// Place says where frontends find an endpoint: one of the two is set.
type Place struct {
	TCP  string // host:port/path
	NATS string // subject
}

// Endpoint is a handler in its place.
type Endpoint struct {
	dispatcher *Dispatcher
	path       string
	place      Place
	handler    Handler
	metrics    endpointMetrics
	removed    func() // may be nil

	mu     sync.Mutex
	active int           // accepted requests that are not answered yet, waiting ones included
	idle   chan struct{} // closed when active reaches 0; nil if nobody waits
	stats  Stats
}

// Stats are what happened at an endpoint so far.
type Stats struct {
	Requests, Errors uint64
	Busy             time.Duration // sum over the requests that have ended
	LastError        string
}

// Place returns what discovery records say about where the endpoint is.
func (e *Endpoint) Place() Place { return e.place }

// Remove takes the endpoint out: frontends are told that it does not exist. Accepted requests go on.
func (e *Endpoint) Remove() {
	e.dispatcher.mu.Lock()
	there := e.dispatcher.endpoints[e.path] == e
	if there {
		delete(e.dispatcher.endpoints, e.path)
	}
	e.dispatcher.mu.Unlock()
	if there && e.removed != nil {
		e.removed()
	}
}

// Stats returns what happened so far.
func (e *Endpoint) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}

// fail counts an error.
func (e *Endpoint) fail(kind string, err error) {
	e.metrics.errors.WithLabelValues(kind).Inc()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Errors++
	e.stats.LastError = err.Error()
}

// busy counts the time of a request that has ended.
func (e *Endpoint) busy(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Busy += d
}

// Active returns the number of accepted requests that are not answered yet.
func (e *Endpoint) Active() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active
}

// Wait returns when every accepted request has been answered, or with ctx's error.
func (e *Endpoint) Wait(ctx context.Context) error {
	e.mu.Lock()
	if e.active == 0 {
		e.mu.Unlock()
		return nil
	}
	if e.idle == nil {
		e.idle = make(chan struct{})
	}
	idle := e.idle
	e.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Endpoint) enter() {
	e.mu.Lock()
	e.active++
	e.stats.Requests++
	e.mu.Unlock()
}

func (e *Endpoint) leave() {
	e.mu.Lock()
	e.active--
	if e.active == 0 && e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
	e.mu.Unlock()
}
