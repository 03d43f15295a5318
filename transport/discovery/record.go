// Package discovery publishes the records by which a Dynamo frontend finds a worker, and takes them back.
//
// A record is a JSON value in a bucket. Its key always derives from its body: a frontend adds by the body and removes
// by the key, so a record whose two disagree could never be removed. A [Store] is one discovery backend.
package discovery

import (
	"encoding/json"
	"fmt"
)

// Buckets of records.
const (
	Instances     = "v1/instances"
	Models        = "v1/mdc"
	EventChannels = "v1/event_channels"
	EventSources  = "v1/event_sources"
)

// Buckets lists all buckets.
var Buckets = []string{Instances, Models, EventChannels, EventSources}

// Key is where a record lives.
type Key struct {
	Bucket string
	Path   string // segments joined by slashes
}

// Record is a value that knows its key.
type Record interface {
	Key() Key
}

// Endpoint is what frontends address: a named function of a component in a namespace.
type Endpoint struct {
	Namespace string `json:"namespace"`
	Component string `json:"component"`
	Name      string `json:"name"`
}

// String returns the endpoint with slashes.
func (e Endpoint) String() string { return e.Namespace + "/" + e.Component + "/" + e.Name }

func (e Endpoint) key(bucket string, id uint64) Key {
	return Key{Bucket: bucket, Path: fmt.Sprintf("%s/%x", e, id)}
}

// Transport says how an endpoint is reached: one of the two is set.
type Transport struct {
	TCP  string `json:"tcp,omitempty"`      // host:port/path
	NATS string `json:"nats_tcp,omitempty"` // subject
}

// Instance is one endpoint of one worker. Codec is the request-plane codec it takes, "msgpack" or "json".
type Instance struct {
	Endpoint  Endpoint
	ID        uint64
	Transport Transport
	Device    string // "cuda" or "cpu"
	Codec     string
}

// instanceBody is an Instance as it is written, alone or inside an event source.
type instanceBody struct {
	Type      string    `json:"type,omitempty"`
	Component string    `json:"component"`
	Endpoint  string    `json:"endpoint"`
	Namespace string    `json:"namespace"`
	ID        uint64    `json:"instance_id"`
	Transport Transport `json:"transport"`
	Device    string    `json:"device_type,omitempty"`
	Codec     string    `json:"request_plane_codec,omitempty"`
}

func (i Instance) body() instanceBody {
	return instanceBody{Component: i.Endpoint.Component, Endpoint: i.Endpoint.Name, Namespace: i.Endpoint.Namespace,
		ID: i.ID, Transport: i.Transport, Device: i.Device, Codec: i.Codec}
}

// Key implements Record.
func (i Instance) Key() Key { return i.Endpoint.key(Instances, i.ID) }

// MarshalJSON writes the record's body.
func (i Instance) MarshalJSON() ([]byte, error) {
	b := i.body()
	b.Type = "Endpoint"
	return json.Marshal(b)
}

// Model is the model card of one worker.
type Model struct {
	Endpoint Endpoint
	ID       uint64
	Card     json.RawMessage
}

// Key implements Record.
func (m Model) Key() Key { return m.Endpoint.key(Models, m.ID) }

// MarshalJSON writes the record's body.
func (m Model) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type      string          `json:"type"`
		Namespace string          `json:"namespace"`
		Component string          `json:"component"`
		Endpoint  string          `json:"endpoint"`
		ID        uint64          `json:"instance_id"`
		Card      json.RawMessage `json:"card_json"`
	}{"Model", m.Endpoint.Namespace, m.Endpoint.Component, m.Endpoint.Name, m.ID, m.Card})
}

// scope is the endpoint that an event topic belongs to.
type scope struct {
	Kind     string   `json:"kind"`
	Endpoint Endpoint `json:"endpoint"`
}

func scopeOf(e Endpoint) scope { return scope{Kind: "endpoint", Endpoint: e} }

// topicKey returns the key of a publisher of a topic.
func topicKey(bucket string, e Endpoint, topic string, publisher uint64) Key {
	return Key{Bucket: bucket, Path: fmt.Sprintf("namespace/%s/component/%s/endpoint/%s/topic/%s/%x", Segment(e.Namespace),
		Segment(e.Component), Segment(e.Name), Segment(topic), publisher)}
}

// EventTransport says where the events of a channel are read: one of the two is set.
type EventTransport struct {
	ZMQ  string // address to subscribe to, tcp://host:port
	NATS string // subject prefix
}

// MarshalJSON writes the transport as a kind with its configuration.
func (t EventTransport) MarshalJSON() ([]byte, error) {
	kind, config := "Zmq", map[string]string{"endpoint": t.ZMQ}
	if t.NATS != "" {
		kind, config = "Nats", map[string]string{"subject_prefix": t.NATS}
	}
	return json.Marshal(struct {
		Kind   string            `json:"kind"`
		Config map[string]string `json:"config"`
	}{kind, config})
}

// SubjectPrefix returns the NATS subject prefix of an endpoint's events.
func SubjectPrefix(e Endpoint) string {
	return fmt.Sprintf("namespace.%s.component.%s.endpoint.%s", Segment(e.Namespace), Segment(e.Component), Segment(e.Name))
}

// EventChannel is one publisher of one topic.
type EventChannel struct {
	Endpoint  Endpoint
	Topic     string
	Publisher uint64
	Transport EventTransport
}

// Key implements Record.
func (c EventChannel) Key() Key { return topicKey(EventChannels, c.Endpoint, c.Topic, c.Publisher) }

// MarshalJSON writes the record's body.
func (c EventChannel) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type      string         `json:"type"`
		Scope     scope          `json:"scope"`
		Topic     string         `json:"topic"`
		Publisher uint64         `json:"instance_id"`
		Transport EventTransport `json:"transport"`
	}{"EventChannel", scopeOf(c.Endpoint), c.Topic, c.Publisher, c.Transport})
}

// EventSource ties a publisher of KV events to the rank whose cache it describes, and to the endpoint that answers
// recovery queries.
type EventSource struct {
	Endpoint  Endpoint
	Topic     string
	Publisher uint64
	Worker    uint64
	Rank      int
	Recovery  *Instance // nil if lost events cannot be asked for
}

// Key implements Record.
func (s EventSource) Key() Key { return topicKey(EventSources, s.Endpoint, s.Topic, s.Publisher) }

// MarshalJSON writes the record's body.
func (s EventSource) MarshalJSON() ([]byte, error) {
	type worker struct {
		ID   uint64 `json:"worker_id"`
		Rank int    `json:"dp_rank"`
	}
	type metadata struct {
		Endpoint  Endpoint      `json:"kv_state_endpoint"`
		Worker    worker        `json:"worker"`
		Publisher uint64        `json:"publisher_id"`
		Recovery  *instanceBody `json:"recovery_target,omitempty"`
	}
	m := metadata{Endpoint: s.Endpoint, Worker: worker{s.Worker, s.Rank}, Publisher: s.Publisher}
	if s.Recovery != nil {
		b := s.Recovery.body()
		m.Recovery = &b
	}
	return json.Marshal(struct {
		Type      string   `json:"type"`
		Scope     scope    `json:"scope"`
		Topic     string   `json:"topic"`
		Publisher uint64   `json:"publisher_id"`
		Metadata  metadata `json:"metadata"`
	}{"EventSource", scopeOf(s.Endpoint), s.Topic, s.Publisher, m})
}
