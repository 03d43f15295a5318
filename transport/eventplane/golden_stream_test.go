package eventplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/kv"
)

func nextAfter(x float64, direction float64) float64 { return math.Nextafter(x, x+direction) }

// stream is a recorded run.
type stream struct {
	Input struct {
		Engine    string
		Args      string
		BlockSize int `json:"block_size"`
		Requests  []struct {
			Prompt     json.RawMessage `json:"prompt_tokens"`
			MaxTokens  int             `json:"max_tokens"`
			Sequential bool
		}
	}
	Expect struct {
		Symbolic []struct{ Events []any } `json:"symbolic_kv_events"`
		Messages []struct {
			Topic     Topic
			Publisher uint64 `json:"publisher_id"`
			Sequence  uint64
			Payload   json.RawMessage
			Frames    []string `json:"frames_hex"`
		}
	}
}

func goldenStream(t *testing.T, name string) {
	var s stream
	goldenFile(t, name, &s)
	t.Run("messages", func(t *testing.T) { goldenMessages(t, &s) })
	t.Run("run", func(t *testing.T) { goldenRun(t, &s) })
}

// goldenMessages reads and re-encodes every recorded message.
func goldenMessages(t *testing.T, s *stream) {
	for i, m := range s.Expect.Messages {
		payload := encodePayload(t, m.Topic, m.Payload)
		if m.Frames == nil {
			continue
		}
		recorded := framesFromHex(t, m.Frames)
		e, err := ReadFrames(recorded, m.Topic, m.Publisher)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		sameBytes(t, fmt.Sprintf("payload of message %d", i), payload, e.Payload)
		sent := publishAt(t, m.Topic, m.Publisher, m.Sequence, e.PublishedAt, payload)
		if d := cmp.Diff(recorded, splitMessage(t, sent.frames)); d != "" {
			t.Errorf("frames of message %d: %s", i, d)
		}
	}
}

// config reads the reference's flags as far as the recordings use them.
func (s *stream) config(t *testing.T) (cfg engine.Config, ranks int) {
	t.Helper()
	cfg = engine.DefaultConfig(engine.Backend(s.Input.Engine))
	cfg.EmitKVEvents = true
	ranks = 1
	args := strings.Fields(s.Input.Args)
	for i := 0; i < len(args); i++ {
		integer := func() int {
			i++
			n, err := strconv.Atoi(args[i])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		switch args[i] {
		case "--engine-type", "--zmq-kv-events-ports", "--zmq-replay-ports":
			i++
		case "--num-gpu-blocks-override":
			cfg.NumGPUBlocks = integer()
		case "--block-size":
			cfg.BlockSize = integer()
		case "--max-num-seqs":
			cfg.MaxNumSeqs = uint64(integer())
		case "--max-num-batched-tokens":
			cfg.MaxNumBatchedTokens = uint64(integer())
		case "--data-parallel-size":
			ranks = integer()
		case "--no-enable-prefix-caching":
			cfg.EnablePrefixCaching, cfg.EmitKVEvents = false, false
		case "--no-enable-chunked-prefill":
			cfg.EnableChunkedPrefill = false
		case "--speedup-ratio":
			cfg.SpeedupRatio = float64(integer())
		case "--num-host-blocks":
			cfg.HostOffload = &engine.HostOffload{NumHostBlocks: integer(), Scope: "dp_rank_local"}
		case "--kv-bytes-per-token":
			cfg.KVCacheBytesPerToken = integer()
		default:
			t.Fatalf("flag %s is not known to this test", args[i])
		}
	}
	return cfg, ranks
}

func (s *stream) prompt(t *testing.T, i int) (tokens []uint32) {
	t.Helper()
	text := s.Input.Requests[i].Prompt
	if json.Unmarshal(text, &tokens) == nil {
		return tokens
	}
	var span struct{ Range [2]uint32 }
	if err := json.Unmarshal(text, &span); err != nil {
		t.Fatal(err)
	}
	for n := span.Range[0]; n < span.Range[1]; n++ {
		tokens = append(tokens, n)
	}
	return tokens
}

// rig is an engine with the sinks of a one-rank worker.
type rig struct {
	t     *testing.T
	group *engine.Group
	now   engine.Time
	kv    *kvSink
	out   *capture
	loads []int // blocks held by requests, when they changed
	fpm   []engine.ForwardPassMetrics
	next  uint64
}

func (r *rig) submit(prompt []uint32, output int) {
	r.next++
	request := &engine.Request{ID: engine.ID{15: byte(r.next)}, Prompt: prompt, MaxOutput: output, Arrival: r.now}
	if err := r.group.Submit(0, request, r.now); err != nil {
		r.t.Fatal(err)
	}
	r.load(r.group.Rank(0).Load())
}

func (r *rig) load(l engine.Load) {
	if n := len(r.loads); n == 0 || r.loads[n-1] != l.ActiveBlocks {
		r.loads = append(r.loads, l.ActiveBlocks)
	}
}

// drain runs passes until nothing is left.
func (r *rig) drain() {
	for range 100_000 {
		if !r.group.Ready() {
			at, ok := r.group.Deadline()
			if !ok {
				return
			}
			r.now = max(r.now, at)
			r.take(r.group.Advance(r.now))
			continue
		}
		_, end := r.group.Begin(r.now)
		r.now = end
		r.take(r.group.Complete())
	}
	r.t.Fatal("the engine does not come to rest")
}

func (r *rig) take(records []*engine.Pass) {
	for _, p := range records {
		if p == nil {
			continue
		}
		r.kv.Pass(p)
		if !p.Idle {
			r.fpm = append(r.fpm, p.FPM)
		}
		r.load(p.Load)
	}
}

// messages returns what the sink has published since the last call.
func (r *rig) messages() (list [][]RouterEvent) {
	r.kv.flush()
	for {
		select {
		case m := <-r.out.sent:
			e, err := ReadEnvelope(m.envelope)
			if err != nil {
				r.t.Fatal(err)
			}
			events, err := ReadKVEvents(e.Payload, 7, 0)
			if err != nil {
				r.t.Fatal(err)
			}
			list = append(list, events)
		default:
			return list
		}
	}
}

// goldenRun gives our engine the requests of the recording that were sent one after the other: messages, loads and
// forward passes must be the recorded ones. The requests that were sent together meet in another order every time;
// what they publish must only be sound.
func goldenRun(t *testing.T, s *stream) {
	cfg, ranks := s.config(t)
	if ranks != 1 {
		return // the recordings hold the streams of several ranks apart; one rank shows all there is to see
	}
	group, err := backend.NewGroup(cfg, 0, 1)
	var setting *engine.SettingError
	if errors.As(err, &setting) && setting.Kind == engine.KindUnsupported || err == nil && cfg.HostOffload != nil {
		return // an engine that is not there: its recorded messages are checked all the same
	}
	if err != nil {
		t.Fatal(err)
	}
	p, c := capturing(KVEvents, 1)
	r := &rig{t: t, group: group, out: c}
	r.kv = newKVSink(0, source{worker: 7}, p, nil, false, func(err error) { t.Error(err) })
	defer r.kv.close()

	labels := newLabels()
	for i := range s.Input.Requests {
		labels.prompt(i, s.prompt(t, i), s.Input.BlockSize)
	}
	resident := map[uint64]bool{}
	batches, sequential := []any{}, 0
	for i, q := range s.Input.Requests {
		if !q.Sequential {
			continue
		}
		sequential++
		r.submit(s.prompt(t, i), q.MaxTokens)
		r.drain()
		for _, events := range r.messages() {
			batches = append(batches, labels.batch(events))
			apply(t, resident, events)
		}
	}
	want := make([]any, 0, len(batches))
	for i := 0; i < min(len(batches), len(s.Expect.Symbolic)); i++ {
		want = append(want, any(s.Expect.Symbolic[i].Events))
	}
	if d := cmp.Diff(want, roundTrip(t, batches)); d != "" {
		t.Errorf("kv events (want -, got +):\n%s", d)
	}
	if sequential > 0 {
		compareForward(t, s, r.fpm)
		compareLoads(t, s, r.loads, sequential)
	}
	for i, q := range s.Input.Requests {
		if !q.Sequential {
			r.submit(s.prompt(t, i), q.MaxTokens)
		}
	}
	r.drain()
	for _, events := range r.messages() {
		apply(t, resident, events)
	}
	if len(resident) > cfg.NumGPUBlocks {
		t.Errorf("%d blocks resident in a pool of %d", len(resident), cfg.NumGPUBlocks)
	}
	if !cfg.EmitKVEvents && r.kv.pipeline.history.last != 0 {
		t.Error("events although prefix caching is off")
	}
}

// apply follows the content of the device tier: parents must be known, and no block may be stored twice.
func apply(t *testing.T, resident map[uint64]bool, events []RouterEvent) {
	t.Helper()
	for _, e := range events {
		if e.Event.Kind == kv.Stored && e.Event.HasParent && !resident[e.Event.Parent] {
			t.Errorf("event %d: parent is not resident", e.Event.ID)
		}
		for _, hash := range e.Sequence {
			if resident[hash] == (e.Event.Kind == kv.Stored) {
				t.Errorf("event %d: block %x stored twice or removed twice", e.Event.ID, hash)
			}
			if e.Event.Kind == kv.Stored {
				resident[hash] = true
			} else {
				delete(resident, hash)
			}
		}
	}
}

// compareForward compares the passes of the sequential requests with the recorded messages, heartbeats left out.
func compareForward(t *testing.T, s *stream, got []engine.ForwardPassMetrics) {
	t.Helper()
	var want []engine.ForwardPassMetrics
	for _, m := range s.Expect.Messages {
		if m.Topic != ForwardPassMetrics {
			continue
		}
		var p goldenForward
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			t.Fatal(err)
		}
		if p.WallTime > 0 {
			want = append(want, p.metrics())
		}
	}
	n := min(len(want), len(got))
	if d := cmp.Diff(want[:n], got[:n], cmpopts.EquateApprox(1e-9, 0)); d != "" {
		t.Errorf("forward passes (want -, got +):\n%s", d)
	}
}

// compareLoads checks that the recorded loads are ours, some of ours left out because they followed one another within
// a millisecond. A value may be recorded twice for that reason.
func compareLoads(t *testing.T, s *stream, got []int, requests int) {
	t.Helper()
	at := 0
	for _, m := range s.Expect.Messages {
		if m.Topic == ActiveSequences && m.Sequence == uint64(requests-1) {
			return // the first tokens of the last request; the requests that were sent together follow
		}
		if m.Topic != KVMetrics {
			continue
		}
		var p struct {
			Blocks int `json:"kv_used_blocks"`
		}
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			t.Fatal(err)
		}
		n := slices.Index(got[at:], p.Blocks)
		if n < 0 {
			t.Errorf("recorded load %d (message %d) does not follow in %v from %d on", p.Blocks, m.Sequence, got, at)
			return
		}
		at += n
	}
}

// labels gives blocks the names of the recordings.
type labels struct {
	names map[uint64]string
	next  int
}

func newLabels() *labels { return &labels{names: map[uint64]string{}} }

func (l *labels) prompt(i int, tokens []uint32, blockSize int) {
	_, sequence := kv.AppendHashes(nil, nil, tokens, blockSize)
	for b, hash := range sequence {
		if l.names[hash] == "" {
			l.names[hash] = fmt.Sprintf("p%d.%d", i, b)
		}
	}
}

func (l *labels) of(hash uint64) string {
	if l.names[hash] == "" {
		l.names[hash] = fmt.Sprintf("d%d", l.next)
		l.next++
	}
	return l.names[hash]
}

func (l *labels) batch(events []RouterEvent) any {
	list := []any{}
	for _, e := range events {
		var parent, position any
		if e.Event.HasParent {
			parent = l.of(e.Event.Parent)
		}
		if e.Event.Position >= 0 {
			position = e.Event.Position
		}
		blocks := make([]string, len(e.Sequence))
		for i, hash := range e.Sequence {
			blocks[i] = l.of(hash)
		}
		if e.Event.Kind == kv.Stored {
			list = append(list, []any{"stored", tierNames[e.Event.Tier], e.Rank, parent, position, blocks})
		} else {
			list = append(list, []any{"removed", tierNames[e.Event.Tier], e.Rank, blocks})
		}
	}
	return list
}

// roundTrip gives values the types that a JSON decoder gives them.
func roundTrip(t *testing.T, v []any) []any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	list := []any{}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

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
