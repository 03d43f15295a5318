// Package embeddednats runs a NATS server in the process, for demonstrations and tests that need one without anything
// to install.
package embeddednats

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// DefaultPort is the port on which NATS servers are expected.
const DefaultPort = 4222

// startTimeout bounds the wait for the server to take connections.
const startTimeout = 10 * time.Second

// Options say where a server listens. The zero value is a free port of the loopback interface.
type Options struct {
	Host       string // empty: 127.0.0.1
	Port       int    // 0: chosen by the system
	MaxPayload int    // bytes of a message; 0: the default of NATS, 1 MiB
}

// Server is a running server without accounts: it takes every client, whatever name and password that sends.
type Server struct{ inner *server.Server }

// Start returns a server that takes connections.
func Start(o Options) (*Server, error) {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if err := probe(o); err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	inner := server.Options{Host: o.Host, Port: o.Port, MaxPayload: int32(o.MaxPayload), NoLog: true, NoSigs: true}
	if o.Port == 0 {
		inner.Port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&inner)
	if err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		s.Shutdown()
		return nil, fmt.Errorf("nats server: cannot listen on %s:%d", o.Host, o.Port)
	}
	return &Server{s}, nil
}

// probe finds out whether the server can listen: the server itself only logs why it cannot.
func probe(o Options) error {
	l, err := net.Listen("tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// URL returns where clients find the server.
func (s *Server) URL() string { return s.inner.ClientURL() }

// Clients returns the number of connections.
func (s *Server) Clients() int { return s.inner.NumClients() }

// Close ends the server and every connection to it. It may be called more than once.
func (s *Server) Close() {
	s.inner.Shutdown()
	s.inner.WaitForShutdown()
}
