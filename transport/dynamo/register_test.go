package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/transport/discovery"
	"mockbench/transport/eventplane"
	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
)

// notebook is a store in memory that notes what is put into it and can fail.
type notebook struct {
	*discovery.Memory
	mu   sync.Mutex
	puts []string
	fail int // number of the Put that fails, from 1
}

var errFull = errors.New("store is full")

func (n *notebook) Put(ctx context.Context, key discovery.Key, value []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	path := strings.Split(key.Path, "/")
	n.puts = append(n.puts, strings.TrimPrefix(key.Bucket, "v1/")+" "+path[len(path)-2])
	if len(n.puts) == n.fail {
		return errFull
	}
	return n.Memory.Put(ctx, key, value)
}

func (n *notebook) count(t *testing.T) (records int) {
	t.Helper()
	for _, b := range discovery.Buckets {
		list, err := n.List(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		records += len(list)
	}
	return records
}

// registrable is a worker with two ranks and all its events, ready to be registered.
func registrable(t *testing.T, s setup, readers ...engine.Reader) (Options, *notebook) {
	t.Helper()
	endpoint := discovery.Endpoint{Namespace: "ns", Component: "backend", Name: "generate"}
	events, err := eventplane.Open(eventplane.Options{Opener: eventplane.ZMQ{Host: "127.0.0.1"}, Worker: 77, Ranks: s.ranks,
		Endpoint: eventplane.Endpoint(endpoint), KVEvents: true, Sequences: s.config.Role != engine.PrefillRole})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { events.Close(0) })
	worker, err := live.Start(t.Context(), live.Options{Name: "w0", Engine: s.config, Ranks: s.ranks, Clock: live.NewClock(1),
		NoDelay: s.noDelay, Readers: append(readers, events.Readers()...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Close)
	server, err := requestplane.Listen(requestplane.Options{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	store := &notebook{Memory: discovery.OpenMemory()}
	return Options{Worker: worker, Server: server, Store: store, Events: events, Endpoint: endpoint, ID: 77,
		Card: json.RawMessage(`{"display_name":"mock"}`), Device: "cuda"}, store
}

func twoRanks(prefill, decode float64) setup {
	s := plain(prefill, decode)
	s.ranks = 2
	s.config.EmitKVEvents = true
	return s
}

func TestRegisterPublishesInOrder(t *testing.T) {
	o, store := registrable(t, twoRanks(1, 1))
	r, err := Register(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"event_channels active_sequences_events", "mdc generate", "instances generate", "event_channels forward-pass-metrics"}
	for _, s := range o.Events.Sources() {
		want = append(want, "event_channels kv-events", "instances "+eventplane.QueryEndpoint(s.Publisher), "event_sources kv-events")
	}
	want = append(want, "event_channels kv_metrics")
	if d := cmp.Diff(want, store.puts); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if names := r.Endpoints(); len(names) != 3 || names[0] != "generate" {
		t.Errorf("endpoints %q", names)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n := store.count(t); n != 0 {
		t.Errorf("%d records are left after closing", n)
	}
}

func TestFailedRegistrationLeavesNothing(t *testing.T) {
	o, store := registrable(t, twoRanks(1, 1))
	for fail := 1; ; fail++ {
		store.puts, store.fail = nil, fail
		r, err := Register(t.Context(), o)
		if err == nil {
			if fail < 5 {
				t.Errorf("registration needed %d records", fail-1)
			}
			_ = r.Close()
			return
		}
		if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "w0") {
			t.Fatalf("failure of record %d: %v", fail, err)
		}
		if n := store.count(t); n != 0 {
			t.Errorf("failure of record %d leaves %d records", fail, n)
		}
		c := planetest.Dial(t, o.Server.Addr())
		c.Send("4d/ns/backend/generate", nil, nil, nil)
		if ack := c.Ack(); !strings.HasPrefix(ack, "Server unavailable: unknown endpoint") {
			t.Errorf("failure of record %d leaves the endpoint: %q", fail, ack)
		}
	}
}

// ask sends a generate request to a registered worker.
func (o *Options) ask(t *testing.T, f *planetest.Frontend, id string, maxTokens int) {
	t.Helper()
	body := marshal(t, map[string]any{"token_ids": []int{1, 2, 3}, "stop_conditions": map[string]any{"max_tokens": maxTokens}})
	c := planetest.Dial(t, o.Server.Addr())
	c.Send("4d/ns/backend/generate", nil, f.Control(id, "msgpack"), body)
	if ack := c.Ack(); ack != "" {
		t.Fatalf("acknowledged %q", ack)
	}
}

// A rank whose recovery queries nobody can answer is announced without them; routers then take its events as they come.
func TestSourceWithoutRecovery(t *testing.T) {
	o, store := registrable(t, twoRanks(1, 1))
	sources := o.Events.Sources()
	taken := requestplane.Name{Namespace: "ns", Component: "backend", Endpoint: eventplane.QueryEndpoint(sources[0].Publisher), Instance: o.ID}
	if _, err := o.Server.Handle(taken, requestplane.HandlerFunc(func(context.Context, *requestplane.Request, *requestplane.Stream) {})); err != nil {
		t.Fatal(err)
	}
	r, err := Register(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	list, err := store.List(t.Context(), discovery.EventSources)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	promised := 0
	for _, body := range list {
		if strings.Contains(string(body), "recovery_target") {
			promised++
		}
	}
	if names := r.Endpoints(); promised != 1 || len(names) != 2 {
		t.Errorf("%d of 2 sources promise recovery, endpoints %q", promised, names)
	}
	if err := r.Close(); err != nil || store.count(t) != 0 {
		t.Errorf("%d records are left, %v", store.count(t), err)
	}
}

func TestDrainServesWhatWasAccepted(t *testing.T) {
	o, store := registrable(t, twoRanks(1, 5))
	r, err := Register(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	f := planetest.New(t)
	const n, tokens = 4, 30
	for i := range n {
		o.ask(t, f, fmt.Sprint("r", i), tokens)
	}
	if r.Active() != n {
		t.Errorf("%d requests are active, want %d", r.Active(), n)
	}
	drained := make(chan error, 1)
	go func() { drained <- r.Drain(context.Background()) }()
	for range n {
		list := f.Answer().Rest()
		if want := 1 + tokens + 3; len(list) != want { // prologue; final frame, end of the answer and sentinel
			t.Errorf("an answer has %d messages, want %d", len(list), want)
		}
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if n := store.count(t); n != 0 {
		t.Errorf("%d records are left", n)
	}
	if _, err := o.Worker.Submit(live.Request{Prompt: []uint32{1}, MaxOutput: 1}); !errors.Is(err, live.ErrClosed) {
		t.Errorf("a drained worker answers %v", err)
	}
}

func TestDrainThatIsCutShortTellsClients(t *testing.T) {
	o, store := registrable(t, twoRanks(1, 1000))
	r, err := Register(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	f := planetest.New(t)
	o.ask(t, f, "r", 1000)
	a := f.Answer()
	if m, _ := a.Next(); string(m.Header) != `{"error":null}` {
		t.Fatalf("prologue %s", m.Header)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := r.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the drain ended with %v", err)
	}
	var text strings.Builder
	for _, m := range a.Rest() {
		text.Write(m.Body)
		text.Write(m.Header)
	}
	if !strings.Contains(text.String(), "backend.engine_shutdown") || !strings.HasSuffix(text.String(), `"sentinel"`) {
		t.Errorf("the client was told %q", text.String())
	}
	if n := store.count(t); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// bomb is a reader that takes its worker down.
type bomb struct{}

func (bomb) Pass(*engine.Pass) { panic("bomb") }

func TestFailedEngineIsTakenOut(t *testing.T) {
	o, store := registrable(t, twoRanks(1, 1), bomb{})
	r, err := Register(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	f := planetest.New(t)
	o.ask(t, f, "r", 10)
	list := f.Answer().Rest()
	if len(list) != 4 || !strings.Contains(string(list[1].Body), "backend.engine_shutdown") {
		t.Errorf("the client was told %q", list)
	}
	for end := time.Now().Add(planetest.Patience); store.count(t) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d records of a failed worker are left", store.count(t))
		}
	}
	if err := r.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRecoveryQueryIsAnswered(t *testing.T) {
	s := twoRanks(0, 0)
	s.config.BlockSize = 2
	o, _ := registrable(t, s)
	r, err := Register(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := planetest.New(t)
	o.ask(t, f, "r", 3)
	f.Answer().Rest()
	c := planetest.Dial(t, o.Server.Addr())
	path := "4d/ns/backend/" + eventplane.QueryEndpoint(o.Events.Sources()[0].Publisher)
	for end := time.Now().Add(planetest.Patience); ; time.Sleep(time.Millisecond) {
		c.Send(path, nil, f.Control("q", "msgpack"), marshal(t, map[string]any{"worker_id": 77, "dp_rank": 0, "kind": "recovery"}))
		c.Ack()
		list := f.Answer().Rest()
		if len(list) != 4 {
			t.Fatalf("answered with %q", list)
		}
		var frame struct {
			Data map[string]struct {
				Events []any `msgpack:"events"`
			} `msgpack:"data"`
		}
		if err := requestplane.MsgPack.Unmarshal(list[1].Body, &frame); err != nil {
			t.Fatal(err)
		}
		if len(frame.Data["TreeDump"].Events) > 0 { // events reach the sink a moment after the answer
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no events: %+v", frame)
		}
	}
}

// Another card goes under the same key once the old one is gone; a worker that is taken out gets none.
func TestRepublish(t *testing.T) {
	o, store := registrable(t, setup{config: engine.DefaultConfig(engine.VLLM), ranks: 1, noDelay: true})
	r, err := Register(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	before := store.count(t)
	if err := r.Republish(t.Context(), json.RawMessage(`{"display_name":"mock","runtime_config":{"total_kv_blocks":7}}`)); err != nil {
		t.Fatal(err)
	}
	models, err := store.List(t.Context(), discovery.Models)
	if err != nil || len(models) != 1 || store.count(t) != before {
		t.Fatalf("%d models, %d records, before %d, %v", len(models), store.count(t), before, err)
	}
	for _, text := range models {
		if !strings.Contains(string(text), `"total_kv_blocks":7`) {
			t.Errorf("the record is %s", text)
		}
	}
	if err := r.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if err := r.Republish(t.Context(), json.RawMessage(`{}`)); err != nil || store.count(t) != 0 {
		t.Errorf("after the withdrawal: %v, %d records", err, store.count(t))
	}
}
