package requestplane

import (
	"context"
	"fmt"
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

// Endpoint is a handler in its place in a server.
type Endpoint struct {
	server  *Server
	path    string
	handler Handler
	metrics endpointMetrics

	mu     sync.Mutex
	active int           // accepted requests that are not answered yet, waiting ones included
	idle   chan struct{} // closed when active reaches 0; nil if nobody waits
}

// Handle installs a handler. Requests for it may arrive from now on.
func (s *Server) Handle(name Name, h Handler) (*Endpoint, error) {
	e := &Endpoint{server: s, path: name.Path(), handler: h, metrics: s.metrics.endpoint(name)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endpoints[e.path] != nil {
		return nil, fmt.Errorf("request plane: endpoint %s exists already", e.path)
	}
	s.endpoints[e.path] = e
	return e, nil
}

// Address returns what discovery records say about where the endpoint is: address and path.
func (e *Endpoint) Address() string { return e.server.Addr() + "/" + e.path }

// Remove takes the endpoint out: frontends are told that it does not exist. Accepted requests go on.
func (e *Endpoint) Remove() {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	if e.server.endpoints[e.path] == e {
		delete(e.server.endpoints, e.path)
	}
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
