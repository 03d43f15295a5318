package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/transport/discovery"
	"mockbench/transport/modelcard"
	"mockbench/transport/requestplane"
)

// recordings is the folder of the recorded discovery cases.
func recordings() string {
	root := filepath.Join("..", "testdata", "golden")
	if set := os.Getenv("MOCKBENCH_GOLDEN"); set != "" {
		root = set
	}
	return filepath.Join(root, "discovery")
}

// recordedModel is a copy of the model of the recordings, which a frontend loads faster than the built-in one.
func recordedModel(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(recordings(), "model"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// recorded reads one file of recorded discovery cases; a file that is not there has none.
func recorded[T any](t *testing.T, name string) (list []T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(recordings(), name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return list
}

// registration is a worker that only exists in discovery: a card and an instance with nothing behind its address.
type registration struct {
	name     string
	store    *discovery.File
	model    discovery.Model
	instance discovery.Instance
	card     map[string]any
}

// registration makes a good one, with a model directory and an endpoint of its own.
func (c *cluster) registration(store *discovery.File, name string) *registration {
	c.t.Helper()
	m := modelcard.Model{Dir: recordedModel(c.t), Source: "/models/" + name}
	unique := fmt.Sprintf(`{"eos_token_id": 1, "bos_token_id": 0, "name": %q}`, name) // so that no cached copy is taken
	generation := filepath.Join(m.Dir, "generation_config.json")
	if err := errors.Join(os.Remove(generation), os.WriteFile(generation, []byte(unique), 0o600)); err != nil {
		c.t.Fatal(err)
	}
	made, err := modelcard.New(modelcard.Options{Model: m, Name: name, Engine: engine.DefaultConfig(engine.VLLM), Ranks: 1, LocalIndexer: true})
	if err != nil {
		c.t.Fatal(err)
	}
	r := &registration{name: name, store: store}
	endpoint, id := discovery.Endpoint{Namespace: "dynamo", Component: name, Name: "generate"}, store.NewID()
	r.model = discovery.Model{Endpoint: endpoint, ID: id}
	path := requestplane.Name{Namespace: endpoint.Namespace, Component: endpoint.Component, Endpoint: endpoint.Name, Instance: id}.Path()
	r.instance = discovery.Instance{Endpoint: endpoint, ID: id, Device: "cuda", Codec: "msgpack",
		Transport: discovery.Transport{TCP: "127.0.0.1:1/" + path}}
	text, err := json.Marshal(made)
	if err == nil {
		err = json.Unmarshal(text, &r.card)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// publish writes the card and the instance.
func (r *registration) publish(t *testing.T, records ...string) {
	t.Helper()
	var err error
	if r.model.Card, err = json.Marshal(r.card); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(records, "mdc") {
		err = discovery.Publish(t.Context(), r.store, r.model)
	}
	if err == nil && slices.Contains(records, "instances") {
		err = discovery.Publish(t.Context(), r.store, r.instance)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) shows(name string) bool {
	names, err := c.models()
	return err == nil && slices.Contains(names, name)
}

// set changes one field of a card; a path with a dot goes through the format of a file.
func (r *registration) set(path string, value any) {
	object, name := r.card, path
	if first, rest, ok := strings.Cut(path, "."); ok {
		for _, file := range r.card[first].(map[string]any) {
			object, name = file.(map[string]any), rest
		}
	}
	object[name] = value
}

func openStore(t *testing.T, root string) *discovery.File {
	t.Helper()
	store, err := discovery.OpenFile(discovery.FileOptions{Root: root, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close(context.Background()) })
	return store
}

// TestGoldenDiscoveryLifecycle measures how soon the frontend lists what we publish and drops what we take back. Each
// figure is the best of three, so that a busy machine does not decide.
func TestGoldenDiscoveryLifecycle(t *testing.T) {
	type c struct {
		Name   string
		Input  struct{ Backend, End string }
		Expect struct {
			Listed []float64 `json:"listed_after_s"`
			Gone   []float64 `json:"gone_after_s"`
		}
	}
	cl := newCluster(t)
	cl.frontend()
	store := openStore(t, cl.root)
	for _, c := range recorded[c](t, "lifecycle.json") {
		if c.Input.Backend != "file" || !strings.HasPrefix(c.Input.End, "delete") {
			continue // TestKilledWorkerDisappears is about SIGKILL
		}
		t.Run(c.Name, func(t *testing.T) {
			listed, gone := time.Hour, time.Hour
			for round := range 3 {
				r := cl.registration(store, fmt.Sprintf("%s-%d", c.Name, round))
				r.publish(t, "mdc", "instances")
				listed = min(listed, cl.eventually(30*time.Second, "the model is listed", func() bool { return cl.shows(r.name) }))
				for _, record := range []discovery.Record{r.model, r.instance} {
					if c.Input.End == "delete both" || c.Input.End == "delete "+strings.TrimPrefix(record.Key().Bucket, "v1/") {
						if err := store.Delete(t.Context(), record.Key()); err != nil {
							t.Fatal(err)
						}
					}
				}
				gone = min(gone, cl.eventually(30*time.Second, "the model is gone", func() bool { return !cl.shows(r.name) }))
			}
			t.Logf("listed after %.3f s, gone after %.3f s", listed.Seconds(), gone.Seconds())
			for what, f := range map[string]struct {
				got    time.Duration
				bounds []float64
			}{"listed": {listed, c.Expect.Listed}, "gone": {gone, c.Expect.Gone}} {
				if len(f.bounds) == 2 && (f.got.Seconds() < f.bounds[0] || f.got.Seconds() > f.bounds[1]) {
					t.Errorf("%s after %.3f s, want %v", what, f.got.Seconds(), f.bounds)
				}
			}
		})
	}
}

// TestGoldenDiscoveryReactions publishes good registrations with one change each. A control that is published later and
// listed shows when the frontend has made up its mind.
func TestGoldenDiscoveryReactions(t *testing.T) {
	type c struct {
		Name  string
		Input struct {
			Change map[string]any `json:"change_to_a_good_registration"`
		}
		Expect struct{ Outcome string }
	}
	cl := newCluster(t)
	cl.frontend()
	store := openStore(t, cl.root)
	for _, c := range recorded[c](t, "frontend-reactions.json") {
		t.Run(c.Name, func(t *testing.T) {
			r := cl.registration(store, c.Name)
			remove := r.publishChanged(t, cl.root, c.Input.Change)
			control := cl.registration(store, c.Name+"-control")
			control.publish(t, "mdc", "instances")
			cl.eventually(30*time.Second, "the control is listed", func() bool { return cl.shows(control.name) })
			listed := strings.HasPrefix(c.Expect.Outcome, "listed") || strings.Contains(c.Expect.Outcome, "old card stays")
			if listed {
				cl.eventually(10*time.Second, "the model is listed", func() bool { return cl.shows(r.name) })
			} else if time.Sleep(300 * time.Millisecond); cl.shows(r.name) {
				t.Errorf("the model is listed, want: %s", c.Expect.Outcome)
			}
			remove()
			cl.eventually(10*time.Second, "the model is gone", func() bool { return !cl.shows(r.name) })
		})
	}
}

// publishChanged publishes with a recorded change and returns what takes the records back.
func (r *registration) publishChanged(t *testing.T, root string, change map[string]any) (remove func()) {
	t.Helper()
	records, write, later := []string{"mdc", "instances"}, r.publish, func() {}
	remove = func() {
		for _, record := range []discovery.Record{r.instance, r.model} {
			if err := r.store.Delete(t.Context(), record.Key()); err != nil {
				t.Error(err)
			}
		}
	}
	for name, value := range change {
		text, _ := value.(string)
		switch {
		case name == "delete":
			for _, field := range value.([]any) {
				delete(r.card, field.(string))
			}
		case name == "records":
			records = nil
			for _, bucket := range value.([]any) {
				records = append(records, bucket.(string))
			}
		case name == "write", name == "instances file name":
			write = func(t *testing.T, records ...string) {
				t.Helper()
				r.publish(t, "mdc")
				remove = r.publishOddly(t, root, text)
			}
		case strings.HasSuffix(text, "on the same key"):
			_, rest, _ := strings.Cut(text, "-> ")
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			later = func() {
				time.Sleep(300 * time.Millisecond)
				r.set(name, n)
				r.publish(t, "mdc")
			}
		default:
			r.set(name, value)
		}
	}
	write(t, records...)
	later()
	return remove
}

// publishOddly writes the instance by hand: under an unusual file name, or in place.
func (r *registration) publishOddly(t *testing.T, root, how string) (remove func()) {
	t.Helper()
	dir, key := filepath.Join(root, filepath.FromSlash(discovery.Instances)), r.instance.Key().Path
	name := discovery.FileName(key)
	switch {
	case strings.Contains(how, "%2f"):
		name = strings.ReplaceAll(name, "%2F", "%2f")
	case strings.Contains(how, "%2F"):
		id := fmt.Sprintf("%x", r.instance.ID)
		name = discovery.FileName(strings.TrimSuffix(key, id) + "000" + strings.ToUpper(id))
	}
	path := filepath.Join(dir, name)
	text, err := json.Marshal(r.instance)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(how, "in place") {
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		time.Sleep(200 * time.Millisecond)
		_, err = file.Write(text)
		if err != nil {
			t.Fatal(err)
		}
	} else {
		scrap := filepath.Join(dir, ".tmp_0123456789abcdef")
		if err := os.WriteFile(scrap, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(scrap, path); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
