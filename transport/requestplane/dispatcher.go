package requestplane

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"mockbench/engine/spawn"
	"mockbench/transport/requestplane/quicline"
)

// Plane takes requests for the endpoints of a process: a [Server], or a connection to a message broker.
type Plane interface {
	Handle(name Name, h Handler) (*Endpoint, error)
	Addr() string // for people
	Load() (running, waiting int)
	Close() error
}

// Dispatcher answers requests, however they reach the process: it finds the endpoint, keeps the limits, calls the
// frontend back and counts. Planes are built on it.
type Dispatcher struct {
	limiter  *limiter
	metrics  *metrics
	response ResponsePlane
	quic     quicline.Pool
	tls      TLS
	log      *slog.Logger
	ctx      context.Context // ends when the dispatcher is closed
	stop     context.CancelFunc
	work     sync.WaitGroup // every goroutine

	mu        sync.Mutex
	closed    bool
	endpoints map[string]*Endpoint
	conns     map[net.Conn]struct{} // to be closed with the dispatcher
}

// NewDispatcher returns a dispatcher without endpoints. Of the options it uses the limits, the response plane,
// TLS, the registerer and the log.
func NewDispatcher(o Options) (*Dispatcher, error) {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Response == "" {
		o.Response = TCP
	}
	limiter := &limiter{limits: o.Limits}
	metrics, err := newMetrics(o.Registerer, limiter)
	if err != nil {
		return nil, err
	}
	d := &Dispatcher{limiter: limiter, metrics: metrics, response: o.Response, tls: o.TLS, log: o.Log, endpoints: map[string]*Endpoint{},
		conns: map[net.Conn]struct{}{}}
	d.quic.Batch = o.QUICBatch
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d, nil
}

// Load returns the numbers of requests that are being answered and that wait.
func (d *Dispatcher) Load() (running, waiting int) { return d.limiter.load() }

// Add installs a handler under the path by which requests name it. removed, if not nil, is called once when the
// endpoint is taken out.
func (d *Dispatcher) Add(path string, place Place, name Name, h Handler, removed func()) (*Endpoint, error) {
	e := &Endpoint{dispatcher: d, path: path, place: place, removed: removed, handler: h, metrics: d.metrics.endpoint(name)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.endpoints[path] != nil {
		return nil, fmt.Errorf("request plane: endpoint %s exists already", path)
	}
	d.endpoints[path] = e
	return e, nil
}

// Take decides about a request and returns the acknowledgement, and what to do once that is written. It does not block.
// sent is when the frontend says it sent the request; zero if it does not say.
func (d *Dispatcher) Take(path string, sent time.Time, payload []byte) (Ack, func()) {
	nothing := func() {}
	received := time.Now()
	d.mu.Lock()
	e := d.endpoints[path]
	if e != nil {
		e.enter()
	}
	d.mu.Unlock()
	if e == nil {
		return ackUnknown(path), nothing
	}
	j := &job{dispatcher: d, endpoint: e}
	j.request.Received = received
	if err := j.decode(payload); j.home == nil {
		d.log.Warn("request refused", "endpoint", e.path, "error", err)
		e.metrics.requests.Inc()
		e.fail("invalid_message", err)
		e.leave()
		return ackNoReturn, nothing
	}
	acknowledged := make(chan struct{})
	later := func() {
		<-acknowledged
		d.metrics.permitWait.Observe(time.Since(received).Seconds())
		j.run()
	}
	switch d.limiter.enter(func() { d.Go("request", later) }) {
	case runNow:
		e.metrics.accept(payload, sent, received)
		return ackAccepted, func() { d.Go("request", j.run) }
	case runLater:
		e.metrics.accept(payload, sent, received)
		return ackAccepted, func() { close(acknowledged) }
	}
	d.metrics.rejected.Inc()
	e.leave()
	return ackOverloaded, nothing
}

// Close ends everything at once: requests that are being answered are broken off. It returns when all is over.
func (d *Dispatcher) Close() {
	d.halt()
	d.work.Wait()
}

func (d *Dispatcher) halt() {
	d.mu.Lock()
	d.closed = true
	for c := range d.conns {
		_ = c.Close()
	}
	d.mu.Unlock()
	d.stop()
	d.quic.Close()
}

// Go starts a goroutine that Close waits for. It must end when the dispatcher is closed.
func (d *Dispatcher) Go(name string, f func()) {
	d.work.Add(1)
	spawn.Go(name, func() {
		defer d.work.Done()
		f()
	})
}

// keep registers a connection to be closed with the dispatcher; it closes the connection if that has happened.
func (d *Dispatcher) keep(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = c.Close()
		return false
	}
	d.conns[c] = struct{}{}
	return true
}

func (d *Dispatcher) drop(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}
