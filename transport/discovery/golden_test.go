package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/transport/requestplane"
)

// cases reads one file of recorded cases; a file that is not there has none.
func cases[T any](t *testing.T, name string) []T {
	t.Helper()
	dir := filepath.Join("..", "..", "testdata", "golden")
	if root := os.Getenv("MOCKBENCH_GOLDEN"); root != "" {
		dir = root
	}
	data, err := os.ReadFile(filepath.Join(dir, "discovery", name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []T
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&list); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return list
}

func TestGoldenDiscoveryEndpoints(t *testing.T) {
	type c struct {
		Name   string
		Input  struct{ Endpoint string }
		Expect struct {
			Namespace, Component, Endpoint string
			Error                          string `json:"error_contains"`
		}
	}
	for _, c := range cases[c](t, "endpoint-parse.json") {
		t.Run(c.Name, func(t *testing.T) {
			got, err := ParseEndpoint(c.Input.Endpoint, Endpoint{"NS", "C", "E"})
			if c.Expect.Error != "" {
				var wrong *engine.SettingError
				if !errors.As(err, &wrong) || wrong.Setting != "endpoint" {
					t.Fatalf("got %v, %v, want a refusal", got, err)
				}
				return
			}
			if want := (Endpoint{c.Expect.Namespace, c.Expect.Component, c.Expect.Endpoint}); err != nil || got != want {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		})
	}
}

func TestGoldenDiscoveryNames(t *testing.T) {
	type segment struct {
		Name   string
		Input  struct{ Segment string }
		Expect struct{ Encoded string }
	}
	for _, c := range cases[segment](t, "event-segment.json") {
		t.Run(c.Name, func(t *testing.T) {
			if got := Segment(c.Input.Segment); got != c.Expect.Encoded {
				t.Errorf("segment %q: got %q, want %q", c.Input.Segment, got, c.Expect.Encoded)
			}
		})
	}
	type key struct {
		Name  string
		Input struct {
			Key  *string
			File *string `json:"file_name"`
		}
		Expect struct {
			Key  string
			File string `json:"file_name"`
			Back string `json:"decoded_back"`
		}
	}
	for _, c := range cases[key](t, "key-encoding.json") {
		t.Run(c.Name, func(t *testing.T) {
			switch in := c.Input; {
			case in.Key != nil:
				if got := FileName(*in.Key); got != c.Expect.File {
					t.Errorf("key %q: got %q, want %q", *in.Key, got, c.Expect.File)
				}
				if got := keyPath(c.Expect.File); got != c.Expect.Back {
					t.Errorf("file %q: got %q, want %q", c.Expect.File, got, c.Expect.Back)
				}
			case in.File != nil:
				if got := keyPath(*in.File); got != c.Expect.Key {
					t.Errorf("file %q: got %q, want %q", *in.File, got, c.Expect.Key)
				}
			default:
				t.Error("neither a key nor a file name is given")
			}
		})
	}
}

func TestGoldenDiscoveryPodID(t *testing.T) {
	for _, c := range cases[struct {
		Name  string
		Input struct {
			Object string `json:"cr_name"`
		}
		Expect struct {
			ID uint64 `json:"instance_id"`
		}
	}](t, "kube-instance-id.json") {
		t.Run(c.Name, func(t *testing.T) {
			if got := PodID(c.Input.Object); got != c.Expect.ID {
				t.Errorf("%q: got %d, want %d", c.Input.Object, got, c.Expect.ID)
			}
		})
	}
}

// TestGoldenDiscoveryRecords builds every recorded record anew from what it says and compares body and key.
func TestGoldenDiscoveryRecords(t *testing.T) {
	type registration struct {
		Name   string
		Expect struct {
			Records []struct {
				Bucket, Key string
				Value       json.RawMessage
			}
		}
	}
	fill := strings.NewReplacer(`"${INSTANCE_ID}"`, "14071597931022255242", `"${PUBLISHER_ID}"`, "5076410293111538",
		"${INSTANCE_HEX}", "c3485bc384b4048a", "${PUBLISHER_HEX}", "1208f7e0414af2", "${TCP_HOSTPORT}", "192.0.2.2:37313")
	for _, c := range cases[registration](t, "registration.json") {
		t.Run(c.Name, func(t *testing.T) {
			for _, r := range c.Expect.Records {
				body := fill.Replace(string(r.Value))
				got, err := rebuild(r.Bucket, body)
				if err != nil {
					t.Fatal(err)
				}
				if want := fill.Replace(r.Key); got.Key() != (Key{r.Bucket, want}) {
					t.Errorf("key %v, want %s", got.Key(), want)
				}
				value, err := json.Marshal(got)
				if err != nil {
					t.Fatal(err)
				}
				if canonical(t, value) != canonical(t, []byte(body)) {
					t.Errorf("got %s\nwant %s", value, body)
				}
			}
		})
	}
}

func canonical(t *testing.T, data []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// rebuild makes a Record of the fields that a recorded body has.
func rebuild(bucket, body string) (Record, error) {
	var f struct {
		Namespace, Component, Endpoint string
		ID                             uint64          `json:"instance_id"`
		Device                         string          `json:"device_type"`
		Codec                          string          `json:"request_plane_codec"`
		Card                           json.RawMessage `json:"card_json"`
		Topic                          string
		Publisher                      uint64 `json:"publisher_id"`
		Scope                          struct{ Endpoint Endpoint }
		Transport                      struct {
			TCP, Kind string
			NATS      string `json:"nats_tcp"`
			Config    struct {
				Endpoint string
				Prefix   string `json:"subject_prefix"`
			}
		}
		Metadata struct {
			Worker struct {
				ID   uint64 `json:"worker_id"`
				Rank int    `json:"dp_rank"`
			}
			Recovery json.RawMessage `json:"recovery_target"`
		}
	}
	if err := json.Unmarshal([]byte(body), &f); err != nil {
		return nil, err
	}
	e := Endpoint{f.Namespace, f.Component, f.Endpoint}
	switch bucket {
	case Instances:
		transport := Transport{TCP: f.Transport.TCP, NATS: f.Transport.NATS}
		name := requestplane.Name{Namespace: e.Namespace, Component: e.Component, Endpoint: e.Name, Instance: f.ID}
		if address, _, ok := strings.Cut(transport.TCP, "/"); ok {
			transport.TCP = address + "/" + name.Path()
		} else {
			transport.NATS = name.Subject()
		}
		return Instance{Endpoint: e, ID: f.ID, Transport: transport, Device: f.Device, Codec: f.Codec}, nil
	case Models:
		return Model{Endpoint: e, ID: f.ID, Card: f.Card}, nil
	case EventChannels:
		transport := EventTransport{ZMQ: f.Transport.Config.Endpoint}
		if f.Transport.Kind == "Nats" {
			transport = EventTransport{NATS: SubjectPrefix(f.Scope.Endpoint)}
		}
		return EventChannel{f.Scope.Endpoint, f.Topic, f.ID, transport}, nil
	case EventSources:
		s := EventSource{Endpoint: f.Scope.Endpoint, Topic: f.Topic, Publisher: f.Publisher, Worker: f.Metadata.Worker.ID,
			Rank: f.Metadata.Worker.Rank}
		if f.Metadata.Recovery != nil {
			r, err := rebuild(Instances, string(f.Metadata.Recovery))
			if err != nil {
				return nil, err
			}
			i := r.(Instance)
			s.Recovery = &i
		}
		return s, nil
	}
	return nil, fmt.Errorf("unknown bucket %s", bucket)
}
