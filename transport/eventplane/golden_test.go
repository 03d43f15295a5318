package eventplane

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zeebo/xxh3"

	"mockbench/engine"
	"mockbench/engine/goldentest"
	"mockbench/kv"
	"mockbench/transport/wire"
	"mockbench/transport/zmtp"
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

func goldenHashing(t *testing.T) {
	var file struct {
		Hash []struct {
			Name  string
			Input struct {
				BlockSize int `json:"block_size"`
				Tokens    []uint32
				Eagle     bool       `json:"is_eagle"`
				LoRA      string     `json:"lora_name"`
				Namespace string     `json:"cache_namespace"`
				Media     [][]uint64 `json:"mm_hashes_per_block"`
			}
			Expect struct {
				Seed     uint64
				Sequence []uint64 `json:"sequence_hash"`
				Local    []uint64 `json:"tokens_hash"`
			}
		}
		Steps []struct {
			Name  string
			Input struct {
				Parent uint64
				Child  uint64 `json:"child_tokens_hash"`
			}
			Expect struct {
				Sequence uint64 `json:"sequence_hash"`
			}
		} `json:"chain_steps"`
		Raw []struct {
			Name  string
			Input struct {
				ASCII string
				Seed  uint64
			}
			Expect struct{ Hash uint64 }
		} `json:"xxh3"`
		Synthetic []struct {
			Name  string
			Input struct {
				ID    string `json:"request_id"`
				Count int
			}
			Expect struct {
				Tokens []uint32 `json:"token_ids"`
			}
		} `json:"synthetic_output"`
	}
	if !goldenFile(t, "hashing.json", &file) {
		return
	}
	for _, c := range file.Hash {
		t.Run(c.Name, func(t *testing.T) {
			in := c.Input
			seed := kv.Seed(in.LoRA, in.Namespace)
			if c.Expect.Seed != 0 && seed != c.Expect.Seed {
				t.Errorf("seed %d, want %d", seed, c.Expect.Seed)
			}
			window := in.BlockSize
			if in.Eagle {
				window++
			}
			local, sequence := []uint64{}, []uint64{}
			for at, b := 0, 0; in.BlockSize > 0 && at+window <= len(in.Tokens); at, b = at+in.BlockSize, b+1 {
				var media []uint64
				if b < len(in.Media) {
					media = in.Media[b]
				}
				hash := kv.SeededHash(seed, in.Tokens[at:at+window], media)
				local = append(local, hash)
				if b > 0 {
					hash = kv.SequenceHash(sequence[b-1], hash)
				}
				sequence = append(sequence, hash)
			}
			if !slices.Equal(local, c.Expect.Local) || !slices.Equal(sequence, c.Expect.Sequence) {
				t.Errorf("got %d %d, want %d %d", local, sequence, c.Expect.Local, c.Expect.Sequence)
			}
			if in.Eagle || in.Media != nil || in.BlockSize == 0 || seed != kv.Seed("", "") {
				return
			}
			plainLocal, plainSequence := kv.AppendHashes(nil, nil, in.Tokens, in.BlockSize)
			if !slices.Equal(plainLocal, c.Expect.Local) || !slices.Equal(plainSequence, c.Expect.Sequence) {
				t.Errorf("AppendHashes gives %d %d", plainLocal, plainSequence)
			}
		})
	}
	for _, c := range file.Steps {
		if got := kv.SequenceHash(c.Input.Parent, c.Input.Child); got != c.Expect.Sequence {
			t.Errorf("%s: %d, want %d", c.Name, got, c.Expect.Sequence)
		}
	}
	for _, c := range file.Raw {
		if got := xxh3.HashStringSeed(c.Input.ASCII, c.Input.Seed); got != c.Expect.Hash {
			t.Errorf("%s: %d, want %d", c.Name, got, c.Expect.Hash)
		}
	}
	for _, c := range file.Synthetic {
		var id [16]byte
		copy(id[:], fromHex(t, strings.ReplaceAll(c.Input.ID, "-", "")))
		for i, want := range c.Expect.Tokens {
			if got := kv.SyntheticToken(id, i); got != want {
				t.Errorf("%s: token %d is %d, want %d", c.Name, i, got, want)
			}
		}
	}
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

// capture is an outlet that keeps the messages it is given.
type capture struct {
	max  int // limit
	sent chan captured
}

type captured struct {
	sequence uint64
	envelope []byte
	frames   []byte
}

func (c *capture) send(p *Publisher, sequence uint64, size int, fill func([]byte) []byte) (int, error) {
	m := captured{sequence, fill(nil), frames(p, sequence, size, fill)}
	if len(m.envelope) != size {
		return 0, fmt.Errorf("envelope of %d bytes, announced as %d", len(m.envelope), size)
	}
	c.sent <- m
	return size, nil
}
func (c *capture) limit() int                         { return c.max }
func (c *capture) channel() Transport                 { return Transport{Endpoint: "tcp://captured"} }
func (c *capture) subscribers() ([]zmtp.Peer, uint64) { return nil, 0 }
func (c *capture) close(time.Duration)                {}

func capturing(topic Topic, id uint64) (*Publisher, *capture) {
	c := &capture{sent: make(chan captured, 1<<16)}
	return newPublisher(topic, id, c), c
}

// publishAt publishes one payload under a given number and time and returns what left.
func publishAt(t *testing.T, topic Topic, id, sequence, unixMilli uint64, payload []byte) captured {
	t.Helper()
	p, c := capturing(topic, id)
	p.next, p.now = sequence, func() time.Time { return time.UnixMilli(int64(unixMilli)) }
	if err := p.Publish(payload); err != nil {
		t.Fatal(err)
	}
	return <-c.sent
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

// splitMessage returns the frames of one message as it stands on the wire.
func splitMessage(t testing.TB, b []byte) (frames [][]byte) {
	t.Helper()
	for more := true; more; {
		more = b[0]&1 != 0
		size, head := uint64(b[1]), 2
		if b[0]&2 != 0 {
			size, head = binary.BigEndian.Uint64(b[1:]), 9
		}
		frames = append(frames, b[head:head+int(size)])
		b = b[head+int(size):]
	}
	if len(b) != 0 {
		t.Fatalf("%d bytes behind the message", len(b))
	}
	return frames
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

func goldenQueries(t *testing.T) {
	var cases []struct {
		Name   string
		Expect struct {
			Body struct {
				Worker uint64  `json:"worker_id"`
				Rank   uint64  `json:"dp_rank"`
				Start  *uint64 `json:"start_event_id"`
				End    *uint64 `json:"end_event_id"`
			}
			BodyHex string `json:"body_hex"`
		}
	}
	if !goldenFile(t, "recovery-frontend-requests.json", &cases) {
		return
	}
	for _, c := range cases {
		q, err := decodeQuery(fromHex(t, c.Expect.BodyHex), false)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		got := []*uint64{q.Worker, q.Rank, q.Start, q.End}
		want := []*uint64{&c.Expect.Body.Worker, &c.Expect.Body.Rank, c.Expect.Body.Start, c.Expect.Body.End}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", c.Name, d)
		}
	}
}

type goldenRecoveryCase struct {
	Name  string
	Input struct {
		Request string `json:"request_msgpack_hex"`
	}
	Expect struct {
		Kind     string
		Response struct {
			Data map[string]json.RawMessage
		}
		ResponseHex string `json:"response_msgpack_hex"`
	}
}

type goldenAnswer struct {
	Events []json.RawMessage
	Last   uint64 `json:"last_event_id"`
}

// goldenRecovery builds, for each run, a rank with the history that the recorded answers tell, and asks it what the
// reference was asked.
func goldenRecovery(t *testing.T) {
	var raw []json.RawMessage
	if !goldenFile(t, "recovery.json", &raw) {
		return
	}
	runs := map[string]*kvSink{}
	for _, text := range raw {
		var c goldenRecoveryCase
		if err := json.Unmarshal(text, &c); err != nil {
			c.Expect.Kind = "" // the reference opens no response stream: the answer is a text
			var named struct {
				Name  string
				Input struct {
					Request string `json:"request_msgpack_hex"`
				}
			}
			if err := json.Unmarshal(text, &named); err != nil {
				t.Fatal(err)
			}
			c.Name, c.Input.Request = named.Name, named.Input.Request
		}
		t.Run(c.Name, func(t *testing.T) {
			run, _, _ := strings.Cut(c.Name, ":")
			if runs[run] == nil {
				p, _ := capturing(KVEvents, 1)
				runs[run] = newKVSink(0, source{worker: 0x1111222233334444}, p, nil, false, func(err error) { t.Error(err) })
				t.Cleanup(runs[run].close)
			}
			compareRecovery(t, runs[run], &c)
		})
	}
}

func compareRecovery(t *testing.T, k *kvSink, c *goldenRecoveryCase) {
	// The recorded answer tells what had been published before: enter what is missing.
	for _, variant := range []string{"Events", "TreeDump"} {
		var a goldenAnswer
		if text := c.Expect.Response.Data[variant]; text != nil {
			if err := json.Unmarshal(text, &a); err != nil {
				t.Fatal(err)
			}
			if want := c.Expect.ResponseHex; want != "" {
				sameBytes(t, "re-encoding", encodeAnswer(t, variant, a), fromHex(t, want))
			}
			teach(k, eventsFromJSON(t, a.Events), a.Last)
		}
	}
	frame, err := newRecovery(k).Handle(context.Background(), fromHex(t, c.Input.Request), false)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Data     map[string]json.RawMessage
		Complete *bool `json:"complete_final"`
	}
	if err := decode(frame, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 1 || got.Complete == nil || *got.Complete {
		t.Fatalf("frame %v", got)
	}
	if want := c.Expect.ResponseHex; want != "" && c.Expect.Kind != "TreeDump" {
		sameBytes(t, "answer", frame, fromHex(t, want))
	}
	switch c.Expect.Kind {
	case "":
		if got.Data["Error"] == nil {
			t.Errorf("answer %v to a query that cannot be understood, want an error", got.Data)
		}
	case "TreeDump":
		compareDump(t, got.Data["TreeDump"], c.Expect.Response.Data["TreeDump"])
	default:
		if d := cmp.Diff(exact(t, c.Expect.Response.Data[c.Expect.Kind]), exact(t, got.Data[c.Expect.Kind])); d != "" {
			t.Errorf("answer (want -, got +):\n%s", d)
		}
	}
}

// exact decodes JSON without rounding numbers.
func exact(t *testing.T, text json.RawMessage) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func encodeAnswer(t *testing.T, variant string, a goldenAnswer) []byte {
	b := append([]byte("\x82\xa4data\x81"), wire.AppendString(nil, variant)...)
	n := 2
	if variant == "TreeDump" {
		n = 3
	}
	b = append(wire.AppendMap(b, n), "\xa6events"...)
	b = append(b, encodeEvents(eventsFromJSON(t, a.Events))...)
	b = wire.AppendUint(append(b, "\xadlast_event_id"...), a.Last)
	if n == 3 {
		b = append(b, "\xabreset_scope\xa3all"...)
	}
	return append(b, "\xaecomplete_final\xc2"...)
}

// teach brings a rank's history to where a recorded answer says it was. Real ids that follow the latest one are
// entered as events; a fresh dump replaces the content.
func teach(k *kvSink, events []RouterEvent, last uint64) {
	k.work.Lock()
	defer k.work.Unlock()
	h := &k.pipeline.history
	if h.last >= last {
		return
	}
	known := h.last > 0 // the dump in the answer is older than what was taught before
	fresh := len(events) > 0 && events[0].Event.ID == 0
	for _, e := range events {
		real := !fresh || e.Event.ID > uint64(len(events))
		if real && e.Event.ID != h.last+1 || !real && known {
			continue
		}
		tier := &h.tiers[e.Event.Tier]
		if e.Event.Kind == kv.Stored {
			tier.store(e.Event, e.Sequence, e.Local)
		} else {
			for _, hash := range e.Sequence {
				tier.remove(hash)
			}
		}
		if real {
			h.last = e.Event.ID
			h.ring.add(e.Event, e.Sequence, e.Local)
		}
	}
	h.last = last
}

// compareDump compares what is resident after applying two dumps to an empty rank.
func compareDump(t *testing.T, got, want json.RawMessage) {
	t.Helper()
	resident := func(text json.RawMessage) (content map[string]string, last uint64) {
		var a goldenAnswer
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		content = map[string]string{}
		for _, e := range eventsFromJSON(t, a.Events) {
			parent := fmt.Sprint(e.Event.HasParent, e.Event.Parent)
			for i, hash := range e.Sequence {
				key := fmt.Sprint(e.Event.Tier, " ", hash)
				if e.Event.Kind == kv.Removed {
					delete(content, key)
					continue
				}
				content[key] = fmt.Sprint(parent, " ", e.Local[i])
				parent = fmt.Sprint(true, hash)
			}
		}
		return content, a.Last
	}
	gotContent, gotLast := resident(got)
	wantContent, wantLast := resident(want)
	if d := cmp.Diff(wantContent, gotContent); d != "" || gotLast != wantLast {
		t.Errorf("last event %d, want %d; content differs:\n%s", gotLast, wantLast, d)
	}
}
