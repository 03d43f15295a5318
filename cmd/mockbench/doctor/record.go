package doctor

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mockbench/transport/discovery"
)

// Record is one record of discovery as it was found.
type Record struct {
	Bucket, Path string
	Text         []byte
	Age          time.Duration // since its owner gave a sign of life; 0 if the backend keeps leases itself
}

// name is how findings call the record.
func (r *Record) name() string { return strings.TrimPrefix(r.Bucket, "v1/") + "/" + r.Path }

// body is what the four kinds of records hold, as far as it matters here.
type body struct {
	Type      string
	Namespace string
	Component string
	Endpoint  string
	ID        uint64          `json:"instance_id"`
	Transport json.RawMessage // of an instance or a channel
	Card      json.RawMessage `json:"card_json"`
	Scope     struct{ Endpoint discovery.Endpoint }
	Topic     string
	Publisher uint64 `json:"publisher_id"`
	Metadata  struct {
		Worker struct {
			ID   uint64 `json:"worker_id"`
			Rank int    `json:"dp_rank"`
		}
		Recovery *struct {
			Endpoint string
			ID       uint64 `json:"instance_id"`
		} `json:"recovery_target"`
	}
}

// card is what frontends look at in a model card beside its sum.
type card struct {
	DisplayName string          `json:"display_name"`
	ModelType   string          `json:"model_type"`
	WorkerType  string          `json:"worker_type"`
	Needs       [][]string      `json:"needs"`
	ModelInfo   json.RawMessage `json:"model_info"`
	Tokenizer   json.RawMessage `json:"tokenizer"`
	Runtime     struct {
		Ranks        int  `json:"data_parallel_size"`
		StartRank    int  `json:"data_parallel_start_rank"`
		LocalIndexer bool `json:"enable_local_indexer"`
		Events       bool `json:"kv_event_publishing_enabled"`
	} `json:"runtime_config"`
}

// worker is what belongs to one instance of an endpoint.
type worker struct {
	endpoint discovery.Endpoint
	id       uint64
	instance *body
	cardText []byte
	card     *card
}

func (w *worker) String() string { return fmt.Sprintf("worker %s/%x", w.endpoint, w.id) }

// queryPrefix starts the names of endpoints that answer routers, not clients.
const queryPrefix = "worker_kv_query_"

// place is where a record says it lies; empty if it is of no kind that is known.
func (b *body) place() discovery.Key {
	e := discovery.Endpoint{Namespace: b.Namespace, Component: b.Component, Name: b.Endpoint}
	switch b.Type {
	case "Endpoint":
		return discovery.Instance{Endpoint: e, ID: b.ID}.Key()
	case "Model":
		return discovery.Model{Endpoint: e, ID: b.ID}.Key()
	case "EventChannel":
		return discovery.EventChannel{Endpoint: b.Scope.Endpoint, Topic: b.Topic, Publisher: b.ID}.Key()
	case "EventSource":
		return discovery.EventSource{Endpoint: b.Scope.Endpoint, Topic: b.Topic, Publisher: b.Publisher}.Key()
	}
	return discovery.Key{}
}

// addresses returns the host:port that a record points at, none for NATS subjects.
func (b *body) addresses() (list []string) {
	var t struct {
		TCP    string
		Kind   string
		Config struct{ Endpoint string }
	}
	if json.Unmarshal(b.Transport, &t) != nil {
		return nil
	}
	for _, text := range []string{t.TCP, strings.TrimPrefix(t.Config.Endpoint, "tcp://")} {
		host, _, _ := strings.Cut(text, "/")
		if i := strings.LastIndexByte(host, ':'); i > 0 {
			if _, err := strconv.ParseUint(host[i+1:], 10, 16); err == nil {
				list = append(list, host)
			}
		}
	}
	return list
}
