package app

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/profiles"
	"mockbench/transport/bootstrap"
	"mockbench/transport/dynamo"
	"mockbench/transport/modelcard"
	"mockbench/transport/requestplane"
)

// openHandoffs opens what a prefill or decode worker hands requests over with, nil for an aggregated one. It also returns
// the worker's model card, in which decode workers find the bootstrap port, so that the port is open before.
func (s *serving) openHandoffs(l *profiles.Launch, w *live.Worker, card modelcard.Card) (*dynamo.Handoffs, json.RawMessage, error) {
	if l.Engine.Role == engine.Aggregated {
		text, err := json.Marshal(card)
		return nil, text, err
	}
	const longest = 365 * 24 * time.Hour
	timeout := time.Duration(min(l.Dynamo.HandoffSessionTimeoutMS, uint64(longest/time.Millisecond))) * time.Millisecond
	log := s.p.logger("handoff")
	server, err := s.listenForDecode(l, timeout)
	if err != nil {
		return nil, nil, err
	}
	h := dynamo.NewHandoffs(w, server, timeout, log)
	s.mu.Lock()
	s.handoffs = append(s.handoffs, h)
	s.mu.Unlock()
	if server != nil {
		host, err := bootstrapHost()
		if err != nil {
			return nil, nil, err
		}
		card.Runtime.Bootstrap = &modelcard.Bootstrap{Host: host, Port: server.Addr().(*net.TCPAddr).Port}
		log.Info("decode workers are expected", "worker", w.Name(), "host", host, "port", card.Runtime.Bootstrap.Port)
	}
	text, err := json.Marshal(card)
	return h, text, err
}

// listenForDecode opens the bootstrap port of a prefill worker, if it has one.
func (s *serving) listenForDecode(l *profiles.Launch, timeout time.Duration) (*bootstrap.Server, error) {
	port := l.Dynamo.BootstrapPort
	if l.Engine.Role != engine.PrefillRole || port == nil || l.Engine.Backend == engine.TRTLLM {
		return nil, nil
	}
	server, err := bootstrap.Listen(bootstrap.Options{Address: net.JoinHostPort("0.0.0.0", strconv.Itoa(int(*port))), Engine: l.Engine,
		Limit: dynamo.SessionLimit(&l.Engine) * int(l.DPSize), Timeout: timeout, Log: s.p.logger("handoff")})
	if err != nil {
		return nil, fmt.Errorf("--bootstrap-ports: %w", err)
	}
	return server, nil
}

// bootstrapHost returns the host under which decode workers reach this machine: the one they are told to use, else the
// address of its name, else the address it uses itself.
func bootstrapHost() (string, error) {
	if host := os.Getenv("DYN_HTTP_RPC_HOST"); host != "" {
		return host, nil
	}
	if name, err := os.Hostname(); err == nil {
		addresses, _ := net.LookupIP(name)
		for _, a := range addresses {
			if v4 := a.To4(); v4 != nil {
				return v4.String(), nil
			}
		}
	}
	_, advertise, err := requestplane.ResolveHost("")
	return advertise.String(), err
}

// closeHandoffs ends the sessions that are left. The workers are closed by now.
func (s *serving) closeHandoffs() {
	for _, h := range s.handoffs {
		if h.Server != nil {
			_ = h.Server.Close()
		}
		h.Close()
	}
}
