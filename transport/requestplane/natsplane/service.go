package natsplane

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"mockbench/transport/requestplane"
)

// version is what services call themselves: the release whose place they take.
const version = "1.6.1"

// serviceKey tells the services of a process apart: one for each worker.
type serviceKey struct {
	namespace, component string
	instance             uint64
}

func keyOf(n requestplane.Name) serviceKey { return serviceKey{n.Namespace, n.Component, n.Instance} }

// service is a worker in the words of the NATS micro protocol.
type service struct {
	name, id, description string
	started               time.Time
	endpoints             []member
	subscriptions         []*nats.Subscription
}

// member is one endpoint of a service.
type member struct {
	name     requestplane.Name
	endpoint *requestplane.Endpoint
}

func (m member) subject() string { return m.endpoint.Place().NATS }

// join adds an endpoint to its worker's service, which appears with the first.
func (s *Server) join(name requestplane.Name, e *requestplane.Endpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(name)
	v := s.services[key]
	if v == nil {
		v = &service{name: name.Service(), id: nuid.Next(), started: time.Now(),
			description: fmt.Sprintf("Dynamo component %s in namespace %s", name.Component, name.Namespace)}
		s.services[key] = v
		if err := v.subscribe(s.conn, s.requests); err != nil {
			return err
		}
	}
	v.endpoints = append(v.endpoints, member{name, e})
	return nil
}

// leave removes an endpoint; the service goes with the last.
func (s *Server) leave(name requestplane.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.services[keyOf(name)]
	if v == nil {
		return
	}
	for i, m := range v.endpoints {
		if m.name == name {
			v.endpoints = append(v.endpoints[:i:i], v.endpoints[i+1:]...)
			break
		}
	}
	if len(v.endpoints) > 0 {
		return
	}
	delete(s.services, keyOf(name))
	for _, subscription := range v.subscriptions {
		_ = subscription.Unsubscribe() // fails only on a closed connection
	}
}

// subscribe asks for the questions to all services, to those of the name, and to this one.
func (v *service) subscribe(conn *nats.Conn, to chan *nats.Msg) error {
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		for _, scope := range []string{"", "." + v.name, "." + v.name + "." + v.id} {
			subscription, err := conn.ChanSubscribe("$SRV."+verb+scope, to)
			if err != nil {
				return err
			}
			v.subscriptions = append(v.subscriptions, subscription)
		}
	}
	return nil
}

// describe answers the questions to the services.
func (s *Server) describe() {
	for {
		select {
		case m := <-s.requests:
			s.reply(m)
		case <-s.end:
			return
		}
	}
}

// reply answers one question for the service whose subscription delivered it.
func (s *Server) reply(m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.services {
		for _, subscription := range v.subscriptions {
			if subscription != m.Sub {
				continue
			}
			if text, err := json.Marshal(v.answer(m.Subject)); err == nil && m.Reply != "" {
				_ = s.conn.Publish(m.Reply, text) // fails only on a closed connection
			}
			return
		}
	}
}

// identity is the start of every answer.
type identity struct {
	Type string `json:"type"`
	Name string `json:"name"`
	ID   string `json:"id"`
}

type info struct {
	identity
	Description string            `json:"description"`
	Version     string            `json:"version"`
	Metadata    map[string]string `json:"metadata"`
	Endpoints   []endpointInfo    `json:"endpoints"`
}

type endpointInfo struct {
	Name     string            `json:"name"`
	Subject  string            `json:"subject"`
	Queue    string            `json:"queue_group"`
	Metadata map[string]string `json:"metadata"`
}

type ping struct {
	identity
	Version  string            `json:"version"`
	Metadata map[string]string `json:"metadata"`
}

type stats struct {
	ping
	Started   time.Time       `json:"started"`
	Endpoints []endpointStats `json:"endpoints"`
}

type endpointStats struct {
	Name       string `json:"name"`
	Subject    string `json:"subject"`
	Queue      string `json:"queue_group"`
	Requests   uint64 `json:"num_requests"`
	Errors     uint64 `json:"num_errors"`
	Busy       int64  `json:"processing_time"`         // nanoseconds
	AverageFor int64  `json:"average_processing_time"` // nanoseconds
	LastError  string `json:"last_error"`
}

// answer returns what the service says to a question.
func (v *service) answer(subject string) any {
	none := map[string]string{}
	is := func(kind string) identity {
		return identity{Type: "io.nats.micro.v1." + kind + "_response", Name: v.name, ID: v.id}
	}
	verb, _, _ := strings.Cut(strings.TrimPrefix(subject, "$SRV."), ".")
	switch verb {
	case "INFO":
		out := info{identity: is("info"), Description: v.description, Version: version, Metadata: none, Endpoints: []endpointInfo{}}
		for _, m := range v.endpoints {
			out.Endpoints = append(out.Endpoints, endpointInfo{m.label(), m.subject(), queueGroup, none})
		}
		return out
	case "STATS":
		out := stats{ping: ping{is("stats"), version, none}, Started: v.started.UTC(), Endpoints: []endpointStats{}}
		for _, m := range v.endpoints {
			out.Endpoints = append(out.Endpoints, m.stats())
		}
		return out
	}
	return ping{is("ping"), version, none}
}

// label returns the name of an endpoint within its service.
func (m member) label() string {
	return m.name.Service() + "-" + m.name.Endpoint + "-" + m.name.InstanceHex()
}

func (m member) stats() endpointStats {
	s := m.endpoint.Stats()
	out := endpointStats{Name: m.label(), Subject: m.subject(), Queue: queueGroup, Requests: s.Requests, Errors: s.Errors,
		Busy: s.Busy.Nanoseconds(), LastError: s.LastError}
	if s.Requests > 0 {
		out.AverageFor = out.Busy / int64(s.Requests)
	}
	return out
}
