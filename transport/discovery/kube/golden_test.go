package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/transport/discovery"
	"mockbench/transport/discovery/kube/kubetest"
	"mockbench/transport/dynamo"
	"mockbench/transport/eventplane"
	"mockbench/transport/requestplane"
)

// golden reads one file of recorded cases; a file that is not there has none. Places for numbers that differ from run to
// run get numbers.
func golden[T any](t *testing.T, name string) (list []T) {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "testdata", "golden")
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
	publisher := func(format string) func([]byte) []byte {
		return func(place []byte) []byte {
			n, _ := strconv.Atoi(string(regexp.MustCompile(`\d+`).Find(place)))
			return fmt.Appendf(nil, format, 0x1208f7e0414a00+n)
		}
	}
	data = regexp.MustCompile(`"\$\{PUB\d+_ID\}"`).ReplaceAllFunc(data, publisher("%d"))
	data = regexp.MustCompile(`\$\{PUB\d+_HEX\}`).ReplaceAllFunc(data, publisher("%x"))
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return list
}

func TestGoldenDiscoveryKubeID(t *testing.T) {
	type c struct {
		Name  string
		Input struct {
			Resource string `json:"cr_name"`
		}
		Expect struct {
			ID  uint64 `json:"instance_id"`
			Hex string
		}
	}
	for _, c := range golden[c](t, "kube-instance-id.json") {
		t.Run(c.Name, func(t *testing.T) {
			id := InstanceID(c.Input.Resource)
			if id != c.Expect.ID || fmt.Sprintf("%x", id) != c.Expect.Hex {
				t.Errorf("got %d, %x, want %d, %s", id, id, c.Expect.ID, c.Expect.Hex)
			}
		})
	}
}

type kubeCase struct {
	Name  string
	Input struct {
		Name      string `json:"pod_name"`
		UID       string `json:"pod_uid"`
		Namespace string `json:"pod_namespace"`
	}
	Expect struct {
		Method, Path string
		Query        map[string]string
		ContentType  string          `json:"content_type"`
		Body         json.RawMessage `json:"final_body"`
		Steps        []step
		Requests     []string
	}
}

// step is the keys of a resource.
type step struct {
	Endpoints []string
	Channels  []string `json:"event_channels"`
	Sources   []string `json:"event_sources"`
	Models    []string `json:"model_cards"`
}

func TestGoldenDiscoveryKube(t *testing.T) {
	for _, c := range golden[kubeCase](t, "kube.json") {
		t.Run(c.Name, func(t *testing.T) {
			switch {
			case c.Expect.Body != nil:
				checkShape(t, c)
			case c.Expect.Steps != nil:
				checkOrder(t, c.Expect.Steps)
			case c.Expect.Requests != nil:
				checkReads(t, c)
			default:
				t.Fatal("a case of an unknown kind")
			}
		})
	}
}

// recordOf makes a record from its recorded body, from what says what it is: the rest follows.
func recordOf(t *testing.T, value []byte) discovery.Record {
	t.Helper()
	var b struct {
		Type, Namespace, Component, Endpoint, Topic string
		ID                                          uint64          `json:"instance_id"`
		Card                                        json.RawMessage `json:"card_json"`
		Device                                      string          `json:"device_type"`
		Codec                                       string          `json:"request_plane_codec"`
		Transport                                   json.RawMessage
		Scope                                       struct{ Endpoint discovery.Endpoint }
		Metadata                                    struct {
			Publisher uint64 `json:"publisher_id"`
			Worker    struct {
				ID   uint64 `json:"worker_id"`
				Rank int    `json:"dp_rank"`
			}
			Target json.RawMessage `json:"recovery_target"`
		}
	}
	if err := json.Unmarshal(value, &b); err != nil {
		t.Fatal(err)
	}
	e := discovery.Endpoint{Namespace: b.Namespace, Component: b.Component, Name: b.Endpoint}
	switch b.Type {
	case "EventChannel":
		var zmq struct{ Config struct{ Endpoint string } }
		if err := json.Unmarshal(b.Transport, &zmq); err != nil {
			t.Fatal(err)
		}
		return discovery.EventChannel{Endpoint: b.Scope.Endpoint, Topic: b.Topic, Publisher: b.ID,
			Transport: discovery.EventTransport{ZMQ: zmq.Config.Endpoint}}
	case "EventSource":
		target := recordOf(t, b.Metadata.Target).(discovery.Instance)
		return discovery.EventSource{Endpoint: b.Scope.Endpoint, Topic: b.Topic, Publisher: b.Metadata.Publisher,
			Worker: b.Metadata.Worker.ID, Rank: b.Metadata.Worker.Rank, Recovery: &target}
	case "Model":
		return discovery.Model{Endpoint: e, ID: b.ID, Card: b.Card}
	}
	var at discovery.Transport
	if err := json.Unmarshal(b.Transport, &at); err != nil {
		t.Fatal(err)
	}
	return discovery.Instance{Endpoint: e, ID: b.ID, Transport: at, Device: b.Device, Codec: b.Codec}
}

// checkShape publishes the recorded records and compares the last request.
func checkShape(t *testing.T, c kubeCase) {
	s := serve(t)
	b := open(t, Options{Pod: Pod{Name: c.Input.Name, UID: c.Input.UID, Namespace: c.Input.Namespace}})
	var want resource
	if err := json.Unmarshal(c.Expect.Body, &want); err != nil {
		t.Fatal(err)
	}
	for _, bucket := range discovery.Buckets {
		for _, value := range want.Spec.Data.bucket(bucket) {
			if err := discovery.Publish(t.Context(), b, recordOf(t, value)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := s.Requests()
	last := all[len(all)-1]
	query, _ := url.ParseQuery(last.Query)
	if last.Method != c.Expect.Method || last.Path != c.Expect.Path || last.ContentType != c.Expect.ContentType || len(query) != len(c.Expect.Query) {
		t.Errorf("requested %s %s?%s, %s", last.Method, last.Path, last.Query, last.ContentType)
	}
	for k, v := range c.Expect.Query {
		if query.Get(k) != v {
			t.Errorf("query %s is %q, want %q", k, query.Get(k), v)
		}
	}
	if d := cmp.Diff(exact(t, c.Expect.Body), exact(t, last.Body)); d != "" {
		t.Errorf("body: -want +got\n%s", d)
	}
}

// exact decodes JSON without rounding numbers.
func exact(t *testing.T, data []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// checkOrder registers a worker and compares what each request adds. Three channels may come anywhere after the
// endpoint, but that of the KV events must precede the endpoint of its queries.
func checkOrder(t *testing.T, want []step) {
	s := serve(t)
	register(t)
	var got []step
	for _, r := range s.Requests() {
		if r.Method != http.MethodPatch {
			continue
		}
		var body resource
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		keys := func(bucket string) []string { return slices.Collect(maps.Keys(body.Spec.Data.bucket(bucket))) }
		got = append(got, step{keys(discovery.Instances), keys(discovery.EventChannels), keys(discovery.EventSources), keys(discovery.Models)})
	}
	gotAdded, wantAdded := added(t, got), added(t, want)
	free := func(key string) bool {
		return strings.HasSuffix(key, "/forward-pass-metrics/*") || strings.HasSuffix(key, "/kv_metrics/*") ||
			strings.HasPrefix(key, "channel") && strings.HasSuffix(key, "/kv-events/*")
	}
	fixed := func(list []string) []string { return slices.DeleteFunc(slices.Clone(list), free) }
	if d := cmp.Diff(fixed(wantAdded), fixed(gotAdded)); d != "" {
		t.Errorf("order: -want +got\n%s", d)
	}
	if d := cmp.Diff(slices.Sorted(slices.Values(wantAdded)), slices.Sorted(slices.Values(gotAdded))); d != "" {
		t.Errorf("all records: -want +got\n%s", d)
	}
	find := func(part string) int {
		return slices.IndexFunc(gotAdded, func(key string) bool { return strings.Contains(key, part) })
	}
	if find("kv-events") > find("worker_kv_query_source_") {
		t.Errorf("the channel of KV events comes after the endpoint of its queries: %q", gotAdded)
	}
}

// added returns the key that each step has more than the one before, without publishers.
func added(t *testing.T, steps []step) (list []string) {
	t.Helper()
	publisher := regexp.MustCompile(`(topic/[^/]+/|worker_kv_query_source_)[0-9a-f]+`)
	seen := map[string]bool{}
	for i, s := range steps {
		var fresh []string
		for kind, keys := range map[string][]string{"instance ": s.Endpoints, "channel ": s.Channels, "source ": s.Sources, "model ": s.Models} {
			for _, key := range keys {
				key = kind + publisher.ReplaceAllString(key, "$1*")
				if !seen[key] {
					fresh, seen[key] = append(fresh, key), true
				}
			}
		}
		if len(fresh) != 1 {
			t.Errorf("step %d adds %q, want one record", i, fresh)
		}
		list = append(list, fresh...)
	}
	return list
}

// register makes an idle worker of one rank visible.
func register(t *testing.T) {
	t.Helper()
	b := open(t, Options{Pod: pod})
	m, err := b.Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	events, err := eventplane.Open(eventplane.Options{Opener: eventplane.ZMQ{Host: "127.0.0.1"}, Worker: m.ID, Ranks: 1,
		Endpoint: eventplane.Endpoint(place), KVEvents: true, Sequences: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { events.Close(0) })
	config := engine.DefaultConfig(engine.VLLM)
	config.EmitKVEvents = true
	worker, err := live.Start(t.Context(), live.Options{Name: "w0", Engine: config, Ranks: 1, Clock: live.NewClock(1), Readers: events.Readers()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Close)
	server, err := requestplane.Listen(requestplane.Options{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	r, err := dynamo.Register(t.Context(), dynamo.Options{Worker: worker, Server: server, Store: m, Events: events, Endpoint: place,
		ID: m.ID, Card: json.RawMessage(`{"display_name":"mock"}`), Device: "cuda"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
}

// checkReads makes the recorded reads of frontends at the server for tests, and expects ours to list as they do.
func checkReads(t *testing.T, c kubeCase) {
	s := serve(t)
	b := open(t, Options{Pod: Pod{Name: "worker-0", UID: "uid-w0", Namespace: c.Input.Namespace}})
	if err := discovery.Publish(t.Context(), b, instance(b.NewID(), "generate")); err != nil {
		t.Fatal(err)
	}
	s.Ready(c.Input.Namespace, "worker-0", "uid-w0", true)
	if _, err := b.List(t.Context(), discovery.Instances); err != nil {
		t.Fatal(err)
	}
	all := s.Requests()
	last := all[len(all)-1]
	if text := fmt.Sprintf("%s %s?%s", last.Method, last.Path, last.Query); !slices.Contains(c.Expect.Requests, text) {
		t.Errorf("listing asks %s, frontends ask one of %q", text, c.Expect.Requests)
	}
	for _, text := range c.Expect.Requests {
		path := strings.ReplaceAll(strings.TrimPrefix(text, "GET "), "<list rv>", "0")
		checkRead(t, s, path)
	}
}

// checkRead expects the one object of a collection from a list or a watch.
func checkRead(t *testing.T, s *kubetest.Server, path string) {
	t.Helper()
	client := http.Client{Timeout: 20 * time.Second}
	r, err := client.Get(s.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct {
		Type   string
		Object json.RawMessage
		Items  []json.RawMessage
	}
	err = json.NewDecoder(r.Body).Decode(&answer)
	watching := strings.Contains(path, "watch=true")
	if err != nil || r.StatusCode != http.StatusOK || watching && answer.Type != "ADDED" || !watching && len(answer.Items) != 1 {
		t.Errorf("%s: %d, %+v, %v", path, r.StatusCode, answer, err)
	}
}
