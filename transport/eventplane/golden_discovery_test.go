package eventplane

import (
	"encoding/json"
	"strings"
	"testing"
)

// record is one discovery record of the recordings.
type record struct {
	Bucket string
	Value  struct {
		Type       string
		Topic      Topic
		InstanceID uint64 `json:"instance_id"`
		Publisher  uint64 `json:"publisher_id"`
		Transport  json.RawMessage
		Metadata   struct {
			Worker struct {
				Rank int `json:"dp_rank"`
			}
			Recovery struct {
				Endpoint string
			} `json:"recovery_target"`
		}
	}
}

// goldenDiscovery compares what a plane wants announced with the records of the reference's workers: which topics, one
// publisher a rank for KV events, and the names of query endpoints.
func goldenDiscovery(t *testing.T) {
	var cases []struct {
		Name   string
		Expect struct{ Records []record }
	}
	if !goldenFile(t, "discovery.json", &cases) {
		return
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			o := Options{Opener: ZMQ{Host: "127.0.0.1"}, Endpoint: Endpoint{"dynamo", "backend", "generate"}, Worker: 7}
			topics := map[Topic]int{}
			var endpoints []string
			ranks := map[int]bool{}
			for _, r := range c.Expect.Records {
				switch r.Value.Type {
				case "EventChannel":
					topics[r.Value.Topic]++
					var transport struct{ Kind string }
					if err := json.Unmarshal(r.Value.Transport, &transport); err != nil || transport.Kind != "Zmq" {
						t.Errorf("transport %s: %v", r.Value.Transport, err)
					}
				case "EventSource":
					endpoints = append(endpoints, r.Value.Metadata.Recovery.Endpoint)
					ranks[r.Value.Metadata.Worker.Rank] = true
					if want := QueryEndpoint(r.Value.Publisher); r.Value.Metadata.Recovery.Endpoint != want {
						t.Errorf("query endpoint %s, want %s", want, r.Value.Metadata.Recovery.Endpoint)
					}
				}
			}
			o.Ranks = max(1, topics[KVEvents])
			o.KVEvents, o.Sequences = topics[KVEvents] > 0, topics[ActiveSequences] > 0
			p, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close(0)
			for _, channel := range p.Channels() {
				topics[channel.Topic]--
				if !strings.HasPrefix(channel.Transport.Endpoint, "tcp://127.0.0.1:") {
					t.Errorf("channel %+v", channel)
				}
			}
			for topic, n := range topics {
				if n != 0 {
					t.Errorf("%s: the reference announces %d channels more", topic, n)
				}
			}
			if len(p.Sources()) != len(endpoints) {
				t.Errorf("%d sources, want %d", len(p.Sources()), len(endpoints))
			}
			for _, source := range p.Sources() {
				if !ranks[source.Rank] || source.Recovery == nil {
					t.Errorf("source %+v", source)
				}
			}
		})
	}
}
