package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mockbench/engine"
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
		Input  struct{ Segment string }
		Expect struct{ Encoded string }
	}
	for _, c := range cases[segment](t, "event-segment.json") {
		if got := Segment(c.Input.Segment); got != c.Expect.Encoded {
			t.Errorf("segment %q: got %q, want %q", c.Input.Segment, got, c.Expect.Encoded)
		}
	}
	type key struct {
		Input  struct{ Key string }
		Expect struct {
			File string `json:"file_name"`
			Back string `json:"decoded_back"`
		}
	}
	for _, c := range cases[key](t, "key-encoding.json") {
		if got := FileName(c.Input.Key); got != c.Expect.File {
			t.Errorf("key %q: got %q, want %q", c.Input.Key, got, c.Expect.File)
		}
		if got, err := keyPath(c.Expect.File); err != nil || got != c.Expect.Back {
			t.Errorf("file %q: got %q, %v, want %q", c.Expect.File, got, err, c.Expect.Back)
		}
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
		if address, _, ok := strings.Cut(transport.TCP, "/"); ok {
			transport.TCP = address + "/" + TCPPath(e, f.ID)
		} else {
			transport.NATS = NATSSubject(e, f.ID)
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

func open(t *testing.T, root string) *File {
	t.Helper()
	f, err := OpenFile(FileOptions{Root: root, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(context.Background()) })
	return f
}

func count(t *testing.T, root string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "v1", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestManyAtOnce registers many workers through two stores at the same moment; every record is there, every record is
// kept alive, and none is left behind.
func TestManyAtOnce(t *testing.T) {
	root := t.TempDir()
	stores := []*File{open(t, root), open(t, root)}
	var group sync.WaitGroup
	const workers = 64
	for w := range workers {
		group.Go(func() {
			s := stores[w%2]
			id := s.NewID()
			e := Endpoint{"dynamo", "backend", "generate"}
			for _, r := range []Record{Model{Endpoint: e, ID: id, Card: json.RawMessage("{}")},
				Instance{Endpoint: e, ID: id, Codec: "msgpack"}} {
				if err := Publish(t.Context(), s, r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if n := count(t, root); n != 2*workers {
		t.Fatalf("%d files, want %d", n, 2*workers)
	}
	old := time.Now().Add(-fileTTL / 2)
	files, _ := filepath.Glob(filepath.Join(root, "v1", "*", "*"))
	for _, f := range files {
		if err := os.Chtimes(f, old, old); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range stores {
		s.touchAll()
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || time.Since(info.ModTime()) > fileTTL/4 {
			t.Errorf("%s was not touched: %v", f, err)
		}
	}
	for _, s := range stores {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := count(t, root); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

func TestLostRecordsComeBack(t *testing.T) {
	root := t.TempDir()
	f := open(t, root)
	e := Endpoint{"dynamo", "backend", "generate"}
	kept, dropped := Instance{Endpoint: e, ID: 1}, Instance{Endpoint: e, ID: 2}
	for _, r := range []Record{kept, dropped} {
		if err := Publish(t.Context(), f, r); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(f.path(kept.Key()))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), dropped.Key()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "v1")); err != nil {
		t.Fatal(err)
	}
	f.touchAll()
	after, err := os.ReadFile(f.path(kept.Key()))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("got %q, %v, want %q", after, err, before)
	}
	if n := count(t, root); n != 1 || f.Recreated() != 1 {
		t.Errorf("%d files, %d recreated, want one of each", n, f.Recreated())
	}
}

func TestSweepDeletesTheDead(t *testing.T) {
	root := t.TempDir()
	f := open(t, root)
	e := Endpoint{"dynamo", "backend", "generate"}
	if err := Publish(t.Context(), f, Instance{Endpoint: e, ID: 1}); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * fileTTL)
	for _, name := range []string{"dead", scrapPrefix + "0123456789abcdef"} {
		path := filepath.Join(f.dir(Instances), name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	f.sweep()
	if n := count(t, root); n != 1 {
		t.Errorf("%d files, want the living one", n)
	}
	list, err := f.List(t.Context(), Instances)
	if err != nil || len(list) != 1 || list["dynamo/backend/generate/1"] == nil {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestFolderNotWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenFile(FileOptions{Root: filepath.Join(file, "below")})
	var wrong *engine.SettingError
	if !errors.As(err, &wrong) || wrong.Setting != "DYN_FILE_KV" || !strings.Contains(wrong.Given, file) {
		t.Fatalf("got %v", err)
	}
}

func TestMemory(t *testing.T) {
	m := OpenMemory()
	i := Instance{Endpoint: Endpoint{"a", "b", "c"}, ID: 7}
	if err := Publish(t.Context(), m, i); err != nil {
		t.Fatal(err)
	}
	if list, _ := m.List(t.Context(), Instances); len(list) != 1 {
		t.Errorf("got %v", list)
	}
	if err := m.Delete(t.Context(), i.Key()); err != nil {
		t.Fatal(err)
	}
	if list, _ := m.List(t.Context(), Instances); len(list) != 0 {
		t.Errorf("got %v", list)
	}
	m.Close(t.Context())
	if err := Publish(t.Context(), m, i); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestDefaults(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	if e := DefaultEndpoint(engine.PrefillRole, env(nil)); e != (Endpoint{"dynamo", "prefill", "generate"}) {
		t.Errorf("got %v", e)
	}
	e := DefaultEndpoint(engine.Aggregated, env(map[string]string{"DYN_NAMESPACE": "team-a", "DYN_NAMESPACE_WORKER_SUFFIX": "x"}))
	if e != (Endpoint{"team-a-x", "backend", "generate"}) {
		t.Errorf("got %v", e)
	}
	lookup := func(m map[string]string) func(string) (string, bool) {
		return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
	}
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "cuda"}, {map[string]string{"CUDA_VISIBLE_DEVICES": ""}, "cpu"}, {map[string]string{"CUDA_VISIBLE_DEVICES": "0"}, "cuda"},
		{map[string]string{"CUDA_VISIBLE_DEVICES": " None"}, "cpu"}, {map[string]string{"NVIDIA_VISIBLE_DEVICES": ""}, "cuda"},
		{map[string]string{"NVIDIA_VISIBLE_DEVICES": "void"}, "cpu"},
	} {
		if got := Device(lookup(c.env)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.env, got, c.want)
		}
	}
}
