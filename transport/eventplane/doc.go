// Package eventplane publishes what a worker's ranks do: KV events for routers, load and forward-pass metrics for
// planners, and answers the recovery queries of routers that missed events.
//
// A [Plane] has one [Publisher] a topic, one a rank for KV events. Its readers are handed to the driver of the worker;
// they copy what they need from a pass record and return, everything else happens in goroutines of their own. A
// publisher puts payloads into envelopes and gives them to ZeroMQ subscribers or to a NATS server; neither can make it
// wait. Everything on these wires is MessagePack.
package eventplane

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Topic names what a publisher carries.
type Topic string

// The topics of a worker.
const (
	KVEvents           Topic = "kv-events"
	KVMetrics          Topic = "kv_metrics"
	ForwardPassMetrics Topic = "forward-pass-metrics"
	ActiveSequences    Topic = "active_sequences_events"
)

// Endpoint is the serving endpoint that events belong to.
type Endpoint struct{ Namespace, Component, Name string }

// SubjectPrefix returns what the subjects of the endpoint's topics start with, without the last dot.
func (e Endpoint) SubjectPrefix() string {
	return "namespace." + escape(e.Namespace) + ".component." + escape(e.Component) + ".endpoint." + escape(e.Name)
}

// escape keeps ASCII letters, digits, '-' and '_' and writes every other byte as %XX.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// NewPublisherID returns a random identity of 53 bits, so that JSON readers keep it exact.
func NewPublisherID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:]) >> 11
}

// QueryEndpoint returns the name of the endpoint that answers recovery queries about a publisher's events.
func QueryEndpoint(publisher uint64) string {
	return "worker_kv_query_source_" + strconv.FormatUint(publisher, 16)
}
