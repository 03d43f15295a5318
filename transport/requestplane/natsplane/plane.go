// Package natsplane is the request plane over a NATS server: each endpoint has a subject to which frontends send
// requests, and the reply to a request is its acknowledgement. Answers travel as in [requestplane].
//
// Beside the endpoints, every worker shows itself as a service of the NATS micro protocol, for the tools that list
// services.
package natsplane

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"mockbench/transport/requestplane"
)

const (
	// queueGroup is the group that all instances of a subject would share.
	queueGroup = "q"

	// sentHeader carries the time at which the frontend sent a request, in nanoseconds since 1970.
	sentHeader = "x-frontend-send-ts-ns"

	// flushTimeout bounds the wait for the server to confirm a subscription.
	flushTimeout = 5 * time.Second
)

// Server takes requests for all endpoints of a process from one connection to a NATS server.
type Server struct {
	*requestplane.Dispatcher
	conn     *nats.Conn
	requests chan *nats.Msg // to the services
	end      chan struct{}

	mu       sync.Mutex
	services map[serviceKey]*service
	closing  sync.Once
}

// Open starts a server without endpoints. It owns the connection from now on. Of the options it uses what
// requestplane.NewDispatcher does.
func Open(conn *nats.Conn, o requestplane.Options) (*Server, error) {
	d, err := requestplane.NewDispatcher(o)
	if err != nil {
		return nil, err
	}
	s := &Server{Dispatcher: d, conn: conn, requests: make(chan *nats.Msg, 64), end: make(chan struct{}),
		services: map[serviceKey]*service{}}
	s.Go("nats services", s.describe)
	return s, nil
}

// Handle installs a handler. When it returns, the NATS server sends requests here.
func (s *Server) Handle(name requestplane.Name, h requestplane.Handler) (*requestplane.Endpoint, error) {
	subject := name.Subject()
	var subscription *nats.Subscription
	e, err := s.Add(subject, requestplane.Place{NATS: subject}, name, h, func() {
		s.leave(name)
		_ = subscription.Drain() // what has arrived is answered, with the news that the endpoint is gone
	})
	if err != nil {
		return nil, err
	}
	if subscription, err = s.conn.QueueSubscribeSync(subject, queueGroup); err == nil {
		s.Go("requests of "+subject, func() { s.receive(subject, subscription) })
		if err = s.join(name, e); err == nil {
			err = s.conn.FlushTimeout(flushTimeout)
		}
	} else {
		subscription = &nats.Subscription{}
	}
	if err != nil {
		e.Remove()
		return nil, fmt.Errorf("request plane: subscribing to %s: %w", subject, err)
	}
	return e, nil
}

// receive takes the requests of one endpoint until its subscription ends.
func (s *Server) receive(subject string, from *nats.Subscription) {
	for {
		m, err := from.NextMsg(time.Hour)
		if errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrSlowConsumer) {
			continue
		}
		if err != nil {
			return
		}
		ack, start := s.Take(subject, sentAt(m.Header), m.Data)
		if m.Reply != "" {
			_ = s.conn.Publish(m.Reply, []byte(ack)) // fails only on a closed connection
		}
		start()
	}
}

// sentAt returns when the frontend says it sent a request; zero if it does not say.
func sentAt(h nats.Header) time.Time {
	ns, err := strconv.ParseInt(h.Get(sentHeader), 10, 64)
	if err != nil || ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Addr returns the address of the server, without passwords.
func (s *Server) Addr() string { return s.conn.ConnectedUrlRedacted() }

// Connected reports whether the server is reachable at the moment.
func (s *Server) Connected() bool { return s.conn.IsConnected() }

// Close ends everything at once, the connection included. It returns when all is over.
func (s *Server) Close() error {
	s.closing.Do(func() {
		close(s.end)
		s.conn.Close() // ends the subscriptions
	})
	s.Dispatcher.Close()
	return nil
}
