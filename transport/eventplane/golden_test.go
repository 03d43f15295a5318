package eventplane

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
	"mockbench/engine/goldentest"
	"mockbench/kv"
	"mockbench/transport/wire"
)

const area = "event-plane"

// goldenFile reads one file of the area, compressed or not, into v. A missing file holds no cases.
func goldenFile(t *testing.T, name string, v any) bool {
	t.Helper()
	path := filepath.Join(goldentest.Dir(t, area), name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = os.ReadFile(path + ".gz"); err == nil {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
				data, err = io.ReadAll(z)
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return true
}

// streamFiles returns the names of the recorded runs.
func streamFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(goldentest.Dir(t, area))
	if err != nil || len(entries) == 0 {
		t.Fatalf("no recorded cases: %v", err)
	}
	var names []string
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".gz"); strings.HasPrefix(name, "stream-") && strings.HasSuffix(name, ".json") {
			names = append(names, name)
		}
	}
	return names
}

func fromHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func framesFromHex(t *testing.T, list []string) [][]byte {
	frames := make([][]byte, len(list))
	for i, s := range list {
		frames[i] = fromHex(t, s)
	}
	return frames
}

func sameBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got %x\nwant %x", what, got, want)
	}
}

func TestGoldenEventPlane(t *testing.T) {
	t.Run("hashing", goldenHashing)
	t.Run("router-event-encoding", goldenEncoding)
	for _, name := range streamFiles(t) {
		t.Run(strings.TrimSuffix(name, ".json"), func(t *testing.T) { goldenStream(t, name) })
	}
	t.Run("recovery", goldenRecovery)
	t.Run("recovery-frontend-requests", goldenQueries)
	t.Run("bad-events", goldenBadEvents)
	t.Run("nats", goldenNATS)
	t.Run("discovery", goldenDiscovery)
}

// eventsFromJSON reads router events as the recordings write them.
func eventsFromJSON(t *testing.T, list []json.RawMessage) []RouterEvent {
	t.Helper()
	events := make([]RouterEvent, len(list))
	for i, text := range list {
		var w wireEvent
		err := json.Unmarshal(text, &w)
		if err == nil {
			events[i], err = w.event()
		}
		if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	return events
}

func encodeEvents(events []RouterEvent) []byte {
	b := wire.AppendArray(nil, len(events))
	for _, e := range events {
		b = source{e.Worker, e.Rank}.appendEvent(b, e.Event, e.Sequence, e.Local, e.Media)
	}
	return b
}

func goldenEncoding(t *testing.T) {
	var cases []struct {
		Name  string
		Input struct {
			Event  json.RawMessage
			Events []json.RawMessage
		}
		Expect struct {
			Payload string `json:"payload_hex"`
		}
	}
	if !goldenFile(t, "router-event-encoding.json", &cases) {
		return
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			list := c.Input.Events
			if c.Input.Event != nil {
				list = append(list, c.Input.Event)
			}
			events := eventsFromJSON(t, list)
			want := fromHex(t, c.Expect.Payload)
			sameBytes(t, "payload", encodeEvents(events), want)
			back, err := ReadKVEvents(want, events[0].Worker, events[0].Rank)
			if d := cmp.Diff(events, back); err != nil || d != "" {
				t.Errorf("read back: %v\n%s", err, d)
			}
		})
	}
}

// encodePayload encodes the payload of a recorded message with the encoder of its topic.
func encodePayload(t *testing.T, topic Topic, payload json.RawMessage) []byte {
	t.Helper()
	read := func(v any) {
		if err := json.Unmarshal(payload, v); err != nil {
			t.Fatalf("%s: %v", topic, err)
		}
	}
	switch topic {
	case KVEvents:
		var list []json.RawMessage
		read(&list)
		return encodeEvents(eventsFromJSON(t, list))
	case KVMetrics:
		var p struct {
			Worker uint64 `json:"worker_id"`
			Rank   int    `json:"dp_rank"`
			Blocks int    `json:"kv_used_blocks"`
		}
		read(&p)
		return appendLoad(nil, p.Worker, p.Rank, p.Blocks)
	case ForwardPassMetrics:
		var p goldenForward
		read(&p)
		m := p.metrics()
		return appendForward(nil, p.Worker, p.Rank, p.Counter, &m)
	case ActiveSequences:
		type event struct {
			Request string `json:"request_id"`
			Worker  struct {
				Worker uint64 `json:"worker_id"`
				Rank   int    `json:"dp_rank"`
			}
		}
		var p struct {
			Events []event
			event
		}
		read(&p)
		if p.Events == nil {
			return (&Sequences{worker: p.Worker.Worker}).append(nil, sequenceEvent{p.Request, p.Worker.Rank})
		}
		b := wire.AppendArray([]byte("\x81\xa6events"), len(p.Events))
		for _, e := range p.Events {
			b = (&Sequences{worker: e.Worker.Worker}).append(b, sequenceEvent{e.Request, e.Worker.Rank})
		}
		return b
	}
	t.Fatalf("unknown topic %q", topic)
	return nil
}

// goldenForward is a recorded forward-pass-metrics payload.
type goldenForward struct {
	Worker    string  `json:"worker_id"`
	Rank      int     `json:"dp_rank"`
	Counter   uint64  `json:"counter_id"`
	WallTime  float64 `json:"wall_time"`
	Scheduled struct {
		Prefills        int     `json:"num_prefill_requests"`
		PrefillTokens   int     `json:"sum_prefill_tokens"`
		PrefillVar      float64 `json:"var_prefill_length"`
		PrefillKVTokens int     `json:"sum_prefill_kv_tokens"`
		Decodes         int     `json:"num_decode_requests"`
		DecodeKVTokens  int     `json:"sum_decode_kv_tokens"`
		DecodeVar       float64 `json:"var_decode_kv_tokens"`
	} `json:"scheduled_requests"`
	Queued struct {
		Prefills       int     `json:"num_prefill_requests"`
		PrefillTokens  int     `json:"sum_prefill_tokens"`
		PrefillVar     float64 `json:"var_prefill_length"`
		Decodes        int     `json:"num_decode_requests"`
		DecodeKVTokens int     `json:"sum_decode_kv_tokens"`
		DecodeVar      float64 `json:"var_decode_kv_tokens"`
	} `json:"queued_requests"`
}

func (g *goldenForward) metrics() engine.ForwardPassMetrics {
	s, q := &g.Scheduled, &g.Queued
	// The recording holds seconds. Of the milliseconds that may stand behind them, take one that gives them exactly.
	ms := g.WallTime * 1000
	for _, candidate := range []float64{ms, nextAfter(ms, 1), nextAfter(ms, -1)} {
		if candidate/1000 == g.WallTime {
			ms = candidate
			break
		}
	}
	return engine.ForwardPassMetrics{PrefillRequests: s.Prefills, PrefillTokens: s.PrefillTokens, PrefillLengthVar: s.PrefillVar,
		PrefillKVTokens: s.PrefillKVTokens, DecodeRequests: s.Decodes, DecodeKVTokens: s.DecodeKVTokens, DecodeKVVar: s.DecodeVar,
		QueuedPrefills: q.Prefills, QueuedPrefillTokens: q.PrefillTokens, QueuedPrefillVar: q.PrefillVar,
		QueuedDecodes: q.Decodes, QueuedDecodeKVTokens: q.DecodeKVTokens, QueuedDecodeKVVar: q.DecodeVar, Milliseconds: ms}
}

func goldenBadEvents(t *testing.T) {
	var cases []struct {
		Name  string
		Input struct {
			Frames []string `json:"frames_hex"`
		}
		Expect struct{ Frontend string }
	}
	if !goldenFile(t, "bad-events.json", &cases) {
		return
	}
	const worker = 0x1111222233334444
	good := encodeEvents([]RouterEvent{{Worker: worker, Event: kv.Event{ID: 1, Kind: kv.Removed}, Sequence: []uint64{1}}})
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			frames := framesFromHex(t, c.Input.Frames)
			publisher := binary.BigEndian.Uint64(frames[1])
			receive := func(frames [][]byte) error {
				e, err := ReadFrames(frames, KVEvents, publisher)
				if err == nil {
					_, err = ReadKVEvents(e.Payload, worker, 0)
				}
				return err
			}
			consumed := strings.Contains(c.Expect.Frontend, "event consumed")
			if err := receive(frames); (err == nil) != consumed {
				t.Errorf("received with error %v, the frontend: %s", err, c.Expect.Frontend)
			}
			if err := receive(splitMessage(t, publishAt(t, KVEvents, publisher, 99, 0, good).frames)); err != nil {
				t.Errorf("the next good message: %v", err)
			}
		})
	}
}

func goldenNATS(t *testing.T) {
	var cases []struct {
		Name  string
		Input struct {
			Payload     json.RawMessage
			Sequence    uint64
			Publisher   uint64 `json:"publisher_id"`
			PublishedAt uint64 `json:"published_at"`
		}
		Expect struct {
			Subject string
			Data    string `json:"data_hex"`
		}
	}
	if !goldenFile(t, "nats.json", &cases) {
		return
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			topic := Topic(c.Expect.Subject[strings.LastIndexByte(c.Expect.Subject, '.')+1:])
			payload := encodePayload(t, topic, c.Input.Payload)
			m := publishAt(t, topic, c.Input.Publisher, c.Input.Sequence, c.Input.PublishedAt, payload)
			sameBytes(t, "body", m.envelope, fromHex(t, c.Expect.Data))
			subject := Endpoint{"dynamo", "backend", "generate"}.SubjectPrefix() + "." + string(topic)
			if subject != c.Expect.Subject {
				t.Errorf("subject %s, want %s", subject, c.Expect.Subject)
			}
		})
	}
}
