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
			cfg.HostOffload = &engine.HostOffload{NumHostBlocks: integer(), D2HBandwidthGBps: 32, H2DBandwidthGBps: 32, Scope: engine.ScopeRank}
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

// lateness, in milliseconds, is how late a driver on the wall clock comes to a pass; what became due until then goes
// before it.
const lateness = 0.02

// drain runs passes until nothing is left, internal events that are due before them.
func (r *rig) drain() {
	for range 100_000 {
		at, timed := r.group.Deadline()
		switch {
		case timed && (at <= r.now+lateness || !r.group.Ready()):
			r.now = max(r.now, at)
			r.take(r.group.Advance(r.now))
		case r.group.Ready():
			_, end := r.group.Begin(r.now)
			r.now = end
			r.take(r.group.Complete())
		default:
			return
		}
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
	if errors.As(err, &setting) && setting.Kind == engine.KindUnsupported {
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
	resident := [2]map[uint64]bool{{}, {}}
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
	if n := len(resident[kv.Device]); n > cfg.NumGPUBlocks {
		t.Errorf("%d blocks resident in a pool of %d", n, cfg.NumGPUBlocks)
	}
	if !cfg.EmitKVEvents && r.kv.pipeline.history.last != 0 {
		t.Error("events although prefix caching is off")
	}
}

// apply follows the content of the tiers: no block may be stored or removed twice, and in the device tier parents must
// be known.
func apply(t *testing.T, tiers [2]map[uint64]bool, events []RouterEvent) {
	t.Helper()
	for _, e := range events {
		resident, stored := tiers[e.Event.Tier], e.Event.Kind == kv.Stored
		if stored && e.Event.Tier == kv.Device && e.Event.HasParent && !resident[e.Event.Parent] {
			t.Errorf("event %d: parent is not resident", e.Event.ID)
		}
		for _, hash := range e.Sequence {
			if resident[hash] == stored {
				t.Errorf("event %d: block %x stored twice or removed twice", e.Event.ID, hash)
			}
			if stored {
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
