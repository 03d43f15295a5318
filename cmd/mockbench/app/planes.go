package app

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"mockbench/transport/embeddednats"
	"mockbench/transport/eventplane"
	"mockbench/transport/natsconn"
	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/natsplane"
)

// viaNATS is the name of NATS among the planes.
const viaNATS = "nats"

// openPlanes opens what requests come in by and what events go out by, as flags and environment say.
func (s *serving) openPlanes(ctx context.Context, registry prometheus.Registerer) error {
	encryption, warnings, err := requestplane.TLSFromEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	s.warn(append(s.env.Warnings, warnings...))
	planes := &s.p.s.Planes
	settings, err := natsconn.FromEnvironment(os.Getenv)
	if err != nil && (planes.Request == viaNATS || planes.Event == viaNATS || planes.EmbeddedNATS) {
		return err
	}
	if planes.EmbeddedNATS {
		if s.broker, err = startBroker(settings); err != nil {
			return err
		}
		s.p.logger("nats").Info("NATS server in this process", "url", s.broker.URL())
	}
	dial := func(what string) (*nats.Conn, error) {
		return natsconn.Connect(ctx, settings, "mockbench "+what, s.p.logger("nats"))
	}
	o := s.env.Options
	o.TLS = encryption
	o.Registerer, o.Log, o.Response = registry, s.p.logger("requestplane"), requestplane.ResponsePlane(planes.Response)
	if planes.Request == viaNATS {
		err = s.requestsViaNATS(dial, o)
	} else if s.server, err = requestplane.Listen(o); err != nil {
		s.server = nil // not a nil *Server in the interface
		err = fmt.Errorf("request plane: DYN_TCP_RPC_HOST, DYN_TCP_RPC_PORT: %w", err)
	}
	if err != nil {
		return err
	}
	if planes.Event != viaNATS {
		s.opener = eventplane.ZMQ{Host: os.Getenv(eventplane.HostVariable), Log: s.p.logger("eventplane")}
		return nil
	}
	if s.events, err = dial("events"); err != nil {
		return err
	}
	s.opener = eventplane.NATS{Conn: s.events}
	return nil
}

func (s *serving) requestsViaNATS(dial func(string) (*nats.Conn, error), o requestplane.Options) error {
	conn, err := dial("requests")
	if err != nil {
		return err
	}
	server, err := natsplane.Open(conn, o)
	if err != nil {
		conn.Close()
		return err
	}
	s.server = server
	return nil
}

// startBroker starts a NATS server where clients of this environment look for one.
func startBroker(s natsconn.Settings) (*embeddednats.Server, error) {
	u, err := url.Parse(s.Servers)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("--embedded-nats: NATS_SERVER: got %s, must be a single address nats://host:port", s.Redacted())
	}
	o := embeddednats.Options{Host: u.Hostname(), Port: embeddednats.DefaultPort}
	if addresses, err := net.LookupHost(o.Host); err == nil && o.Host == "localhost" {
		o.Host = addresses[0]
	}
	if text := u.Port(); text != "" {
		if o.Port, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("--embedded-nats: NATS_SERVER: got %s, must name a port", s.Redacted())
		}
	}
	broker, err := embeddednats.Start(o)
	if err != nil {
		return nil, fmt.Errorf("--embedded-nats: %w", err)
	}
	return broker, nil
}

// closeNATS closes the connection of the event plane and the server in the process, the latter last of all.
func (s *serving) closeNATS() {
	if s.events != nil {
		s.events.Close()
	}
	if s.broker != nil {
		s.broker.Close()
	}
}

// natsState is a word for the screen if the NATS server is away.
func (s *serving) natsState() string {
	server, ok := s.server.(*natsplane.Server)
	if ok && !server.Connected() || s.events != nil && !s.events.IsConnected() {
		return " (no connection to NATS)"
	}
	return ""
}
