package vllmwire

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"go.uber.org/goleak"

	"mockbench/engine/goldentest"
	"mockbench/kv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o Options) *Wire {
	t.Helper()
	o.Host = "127.0.0.1"
	w, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// group is one stored block with its tokens and one removed block.
func group(n uint64) *kv.Events {
	return &kv.Events{
		List:     []kv.Event{{Kind: kv.Stored, Count: 1, Position: -1}, {Kind: kv.Removed, Offset: 1, Count: 1}},
		Sequence: []uint64{n, n + 1}, Local: []uint64{n, 0}, Tokens: []uint32{1, 2},
	}
}

func dealer(t *testing.T, w *Wire, request ...[]byte) zmq4.Socket {
	t.Helper()
	d := zmq4.NewDealer(context.Background())
	t.Cleanup(func() { d.Close() })
	if err := d.Dial("tcp://" + w.ReplayAddr()); err != nil {
		t.Fatal(err)
	}
	if err := d.Send(zmq4.NewMsgFrom(request...)); err != nil {
		t.Fatal(err)
	}
	return d
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// replies reads until the end mark.
func replies(t *testing.T, s zmq4.Socket) (list [][][]byte) {
	t.Helper()
	for {
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m.Frames)
		if f := m.Frames; len(f) == 4 && bytes.Equal(f[2], number(math.MaxUint64)) {
			return list
		}
	}
}

func TestGroupsWithoutDeviceEventsTakeNoNumber(t *testing.T) {
	w := open(t, Options{BlockSize: 2})
	w.Group(&kv.Events{})
	w.Group(&kv.Events{List: []kv.Event{{Kind: kv.Stored, Tier: kv.HostPinned, Count: 1}}, Sequence: []uint64{1}, Local: []uint64{1}})
	if s := w.Stats(); s.Batches != 0 {
		t.Errorf("%d batches", s.Batches)
	}
	w.Group(group(1))
	w.Group(group(3))
	if s := w.Stats(); s.Batches != 2 || s.LastSequence != 1 || s.Bytes == 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestReplayRing(t *testing.T) {
	w := open(t, Options{BlockSize: 2, Replay: true})
	const published = ringBatches + 500
	for i := range uint64(published) {
		w.Group(group(i))
	}
	for _, c := range []struct{ start, first uint64 }{
		{0, 500}, {499, 500}, {500, 500}, {501, 501}, {published - 1, published - 1}, {published, math.MaxUint64},
	} {
		got := replies(t, dealer(t, w, nil, number(c.start)))
		if first := got[0][2]; !bytes.Equal(first, number(c.first)) {
			t.Errorf("replay from %d begins with %x, want %d", c.start, first, c.first)
		}
		want := 1
		if c.first < published {
			want += int(published - c.first)
		}
		if len(got) != want {
			t.Errorf("replay from %d: %d replies, want %d", c.start, len(got), want)
		}
	}
}

func TestReplayOfNothing(t *testing.T) {
	w := open(t, Options{BlockSize: 2, Replay: true})
	if got := replies(t, dealer(t, w, nil, number(0), []byte("ignored"))); len(got) != 1 {
		t.Errorf("%d replies of an empty buffer", len(got))
	}
}

func TestSubscriber(t *testing.T) {
	w := open(t, Options{BlockSize: 2, Rank: 3})
	s := zmq4.NewSub(context.Background())
	defer s.Close()
	if err := s.Dial("tcp://" + w.Addr()); err != nil {
		t.Fatal(err)
	}
	if err := s.SetOption(zmq4.OptionSubscribe, ""); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if p := w.Stats().Subscribers; len(p) == 1 && len(p[0].Prefixes) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the subscription does not arrive")
		}
	}
	w.Group(group(1))
	m, err := s.Recv()
	if err != nil || len(m.Frames) != 3 || len(m.Frames[0]) != 0 || !bytes.Equal(m.Frames[1], number(0)) {
		t.Fatalf("got %q, %v", m.Frames, err)
	}
	if payload := m.Frames[2]; payload[0] != 0x93 || payload[len(payload)-1] != 3 {
		t.Errorf("payload %x", payload)
	}
}

func TestPortOf(t *testing.T) {
	if p, err := PortOf(0, 3); err != nil || p != 0 {
		t.Errorf("a free port: got %d, %v", p, err)
	}
	if p, err := PortOf(65000, 535); err != nil || p != 65535 {
		t.Errorf("got %d, %v", p, err)
	}
	for _, c := range [][2]int{{65000, 536}, {-1, 2}} {
		if _, err := PortOf(c[0], c[1]); err == nil {
			t.Errorf("port %d of rank %d was accepted", c[0], c[1])
		}
	}
}

func TestOpenErrors(t *testing.T) {
	w := open(t, Options{Replay: true})
	port := func(addr string) int {
		n, _ := strconv.Atoi(addr[len("127.0.0.1:"):])
		return n
	}
	if _, err := Open(Options{Host: "127.0.0.1", EventsPort: port(w.Addr())}); err == nil {
		t.Error("an events port in use was taken")
	}
	if _, err := Open(Options{Host: "127.0.0.1", Replay: true, ReplayPort: port(w.ReplayAddr())}); err == nil {
		t.Error("a replay port in use was taken")
	}
}

// goldenFile reads one file of the area into v. A missing file holds no cases.
func goldenFile(t *testing.T, name string, v any) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldentest.Dir(t, "event-plane"), name))
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

// batch is a recorded message.
type batch struct {
	Frames  []string `json:"frames_hex"`
	Payload []json.RawMessage
}

// events rebuilds the group that a batch was made of.
func (b *batch) events(t *testing.T) (events *kv.Events, blockSize int) {
	t.Helper()
	var list []struct {
		Type      string
		Hashes    []uint64 `json:"block_hashes"`
		Parent    *uint64  `json:"parent_block_hash"`
		Tokens    []uint32 `json:"token_ids"`
		BlockSize int      `json:"block_size"`
	}
	if err := json.Unmarshal(b.Payload[1], &list); err != nil {
		t.Fatal(err)
	}
	events = &kv.Events{}
	for _, e := range list {
		event := kv.Event{Kind: kv.Removed, Offset: int32(len(events.Sequence)), Count: int32(len(e.Hashes)), Position: -1}
		if e.Type == "BlockStored" {
			event.Kind, blockSize = kv.Stored, e.BlockSize
			if e.Parent != nil {
				event.HasParent, event.Parent = true, *e.Parent
			}
			events.Tokens = append(events.Tokens, e.Tokens...)
			checkHashes(t, event, e.Hashes, e.Tokens, e.BlockSize)
		}
		events.List = append(events.List, event)
		events.Sequence = append(events.Sequence, e.Hashes...)
		events.Local = append(events.Local, make([]uint64, len(e.Hashes))...)
	}
	return events, blockSize
}

// checkHashes computes the hashes of stored blocks from their tokens.
func checkHashes(t *testing.T, e kv.Event, hashes []uint64, tokens []uint32, blockSize int) {
	t.Helper()
	parent, has := e.Parent, e.HasParent
	for _, want := range hashes {
		hash := kv.BlockHash(tokens[:blockSize])
		if has {
			hash = kv.SequenceHash(parent, hash)
		}
		if hash != want {
			t.Errorf("block hash %d, want %d", hash, want)
		}
		parent, has, tokens = hash, true, tokens[blockSize:]
	}
}

// recorded publishes the batches of the recorded run again, at their times.
func recorded(t *testing.T) (w *Wire, batches []batch) {
	var file struct {
		Expect struct {
			Wire []batch `json:"vllm_wire"`
		}
	}
	if !goldenFile(t, "stream-wire.json", &file) {
		return nil, nil
	}
	w = open(t, Options{Replay: true})
	for i := range file.Expect.Wire {
		b := &file.Expect.Wire[i]
		events, blockSize := b.events(t)
		var seconds float64
		if err := errors.Join(json.Unmarshal(b.Payload[0], &seconds), json.Unmarshal(b.Payload[2], &w.rank)); err != nil {
			t.Fatal(err)
		}
		w.blockSize = blockSize
		whole, part := math.Modf(seconds)
		w.now = func() time.Time { return time.Unix(int64(whole), int64(math.Round(part*1e9))) }
		w.Group(events)
	}
	return w, file.Expect.Wire
}

func TestGoldenEventPlane(t *testing.T) {
	w, batches := recorded(t)
	if w == nil {
		return
	}
	t.Run("stream-wire", func(t *testing.T) {
		got := replies(t, dealer(t, w, nil, number(0)))
		if len(got) != len(batches)+1 {
			t.Fatalf("%d batches, want %d", len(got)-1, len(batches))
		}
		for i, b := range batches {
			for f, want := range b.Frames {
				if have := hex.EncodeToString(got[i][1+f]); have != want {
					t.Errorf("batch %d frame %d:\n got %s\nwant %s", i, f, have, want)
				}
			}
		}
	})
	var cases []struct {
		Name  string
		Input struct {
			Frames []string `json:"dealer_frames_hex"`
		}
		Expect struct {
			Count   int             `json:"reply_count"`
			Replies json.RawMessage `json:"replies_hex"`
		}
	}
	if !goldenFile(t, "vllm-wire-replay.json", &cases) {
		return
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			var list []json.RawMessage
			if err := json.Unmarshal(c.Expect.Replies, &list); err != nil {
				t.Fatal(err)
			}
			got := answer(t, w, c.Input.Frames)
			if slices.Equal(c.Input.Frames, []string{requestOfREQ}) {
				got = got[:min(1, len(got))] // all that such a socket reads
			}
			if len(got) != c.Expect.Count {
				t.Fatalf("%d replies, want %d", len(got), c.Expect.Count)
			}
			compareReplies(t, got, list)
		})
	}
}

// requestOfREQ is how the recordings write a request from a REQ socket.
const requestOfREQ = "<REQ socket sends one frame 0000000000000000>"

// answer sends a recorded request and returns the replies, the end mark included. A request that deserves no answer is
// followed by one that gets only the end mark, which tells that nothing came before.
func answer(t *testing.T, w *Wire, request []string) (got [][][]byte) {
	t.Helper()
	if slices.Equal(request, []string{requestOfREQ}) {
		s := zmq4.NewReq(context.Background())
		defer s.Close()
		if err := s.Dial("tcp://" + w.ReplayAddr()); err != nil {
			t.Fatal(err)
		}
		if err := s.Send(zmq4.NewMsg(number(0))); err != nil {
			t.Fatal(err)
		}
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return [][][]byte{m.Frames}
	}
	frames := make([][]byte, len(request))
	for i, text := range request {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		frames[i] = b
	}
	d := dealer(t, w, frames...)
	if len(frames) >= 2 && len(frames[1]) == 8 {
		return replies(t, d)
	}
	if err := d.Send(zmq4.NewMsgFrom(nil, number(math.MaxUint64))); err != nil {
		t.Fatal(err)
	}
	got = replies(t, d)
	return got[:len(got)-1]
}

// compareReplies compares from both ends: a text in the middle of the recorded list stands for replies left out.
func compareReplies(t *testing.T, got [][][]byte, want []json.RawMessage) {
	t.Helper()
	for i, text := range want {
		var frames []string
		if json.Unmarshal(text, &frames) != nil {
			for j := 1; j < len(want)-i; j++ {
				compareReply(t, got[len(got)-j], want[len(want)-j])
			}
			return
		}
		compareReply(t, got[i], text)
	}
}

func compareReply(t *testing.T, got [][]byte, want json.RawMessage) {
	t.Helper()
	var frames []string
	if err := json.Unmarshal(want, &frames); err != nil {
		t.Fatal(err)
	}
	have := make([]string, len(got))
	for i, f := range got {
		have[i] = hex.EncodeToString(f)
	}
	if !slices.Equal(have, frames) {
		t.Errorf("reply %v, want %v", have, frames)
	}
}
