package eventplane

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"go.uber.org/goleak"

	"mockbench/engine"
	"mockbench/kv"
	"mockbench/transport/zmtp"
)

const generous = 30 * time.Second

const testWorker = 77

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(generous); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not reached: %s", what)
		}
	}
}

func openPlane(t testing.TB, o Options) *Plane {
	t.Helper()
	if o.Opener == nil {
		o.Opener = ZMQ{Host: "127.0.0.1"}
	}
	o.Worker, o.Endpoint = testWorker, Endpoint{"dynamo", "backend", "generate"}
	o.Ranks = max(o.Ranks, 1)
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(0) })
	return p
}

func (p *Plane) channel(t testing.TB, topic Topic) Channel {
	t.Helper()
	for _, c := range p.Channels() {
		if c.Topic == topic {
			return c
		}
	}
	t.Fatalf("no channel for %s", topic)
	return Channel{}
}

func (p *Plane) stats(topic Topic) (s TopicStats) {
	all, _ := p.Stats()
	for _, s := range all {
		if s.Topic == topic {
			return s
		}
	}
	return s
}

func (p *Plane) feed(pass *engine.Pass) {
	for _, r := range p.Readers() {
		r.Pass(pass)
	}
}

// stored is a pass that stored one block of its own number.
func stored(n uint64) *engine.Pass {
	return &engine.Pass{End: 1, Effect: true, Events: kv.Events{
		List:     []kv.Event{{Kind: kv.Stored, Count: 1, Position: -1}},
		Sequence: []uint64{n}, Local: []uint64{n}}}
}

// dial connects a raw subscriber of everything.
func dial(t testing.TB, c Channel) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.Transport.Endpoint, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	greeting := [64]byte{0: 0xff, 9: 0x7f, 10: 3, 12: 'N', 13: 'U', 14: 'L', 15: 'L'}
	conn.Write(greeting[:])
	conn.Write([]byte("\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"))
	conn.Write(zmtp.Message([]byte("\x01")))
	if _, err := io.CopyN(io.Discard, conn, 64+27); err != nil { // greeting and READY of the publisher
		t.Fatal(err)
	}
	return conn
}

// receive reads one message of a raw subscriber.
func receive(r *bufio.Reader) (frames [][]byte, err error) {
	for {
		flags, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		var size uint64
		if flags&2 != 0 {
			var b [8]byte
			_, err = io.ReadFull(r, b[:])
			size = binary.BigEndian.Uint64(b[:])
		} else {
			var n byte
			n, err = r.ReadByte()
			size = uint64(n)
		}
		if err != nil {
			return nil, err
		}
		frame := make([]byte, size)
		if _, err := io.ReadFull(r, frame); err != nil {
			return nil, err
		}
		if frames = append(frames, frame); flags&1 == 0 {
			return frames, nil
		}
	}
}

func (p *Plane) awaitSubscribers(t testing.TB, topic Topic, n int) {
	t.Helper()
	eventually(t, "subscriptions", func() bool {
		have := 0
		for _, s := range p.stats(topic).Subscribers {
			have += len(s.Prefixes)
		}
		return have == n
	})
}

// With one subscriber that reads and one that does not, the reader gets every event in order and the driver is not
// held up.
func TestStalledSubscriber(t *testing.T) {
	const events = 100_000
	p := openPlane(t, Options{KVEvents: true})
	channel := p.channel(t, KVEvents)
	dial(t, channel) // never reads
	conn := dial(t, channel)
	p.awaitSubscribers(t, KVEvents, 2)

	done := make(chan error, 1)
	go func() {
		r := bufio.NewReaderSize(conn, 1<<16)
		for id := uint64(1); id <= events; {
			frames, err := receive(r)
			if err != nil {
				done <- err
				return
			}
			e, err := ReadFrames(frames, KVEvents, channel.Publisher)
			var list []RouterEvent
			if err == nil {
				list, err = ReadKVEvents(e.Payload, testWorker, 0)
			}
			for _, event := range list {
				if err == nil && event.Event.ID != id {
					err = fmt.Errorf("event %d instead of %d", event.Event.ID, id)
				}
				id++
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	pass := &engine.Pass{End: 1, Effect: true}
	for n := uint64(0); n < events; n += 100 {
		pass.Events.Reset()
		for i := n; i < n+100; i++ {
			pass.Events.List = append(pass.Events.List, kv.Event{Kind: kv.Stored, Offset: int32(i - n), Count: 1, Position: -1})
			pass.Events.Sequence = append(pass.Events.Sequence, i)
			pass.Events.Local = append(pass.Events.Local, i)
		}
		p.feed(pass)
		if n%10_000 == 0 { // a load the reader can follow on a busy machine
			eventually(t, "reader follows", func() bool { return p.stats(KVEvents).Subscribers[1].QueuedBytes < 16<<20 })
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s := p.stats(KVEvents)
	if reader := s.Subscribers[1]; reader.Dropped != 0 || s.Messages != events/100 || s.LastSequence != events/100-1 {
		t.Errorf("stats %+v", s)
	}
}

// A router that comes late sees a first event after the beginning, asks once, and knows everything.
func TestLateReaderRecovers(t *testing.T) {
	p := openPlane(t, Options{KVEvents: true, FirstRank: 4})
	channel := p.channel(t, KVEvents)
	for n := range uint64(100) {
		p.feed(stored(n))
	}
	eventually(t, "100 messages", func() bool { return p.stats(KVEvents).Messages == 100 })
	s := zmq4.NewSub(context.Background())
	defer s.Close()
	if err := s.Dial(channel.Transport.Endpoint); err != nil {
		t.Fatal(err)
	}
	if err := s.SetOption(zmq4.OptionSubscribe, string(KVEvents)); err != nil {
		t.Fatal(err)
	}
	p.awaitSubscribers(t, KVEvents, 1)
	p.feed(stored(100))
	m, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	e, err := ReadFrames(m.Frames, KVEvents, channel.Publisher)
	if err != nil {
		t.Fatal(err)
	}
	events, err := ReadKVEvents(e.Payload, testWorker, 4)
	if err != nil || events[0].Event.ID != 101 {
		t.Fatalf("first event %+v, %v", events, err)
	}
	source := p.Sources()[0]
	if source.Rank != 4 || source.Publisher != channel.Publisher {
		t.Errorf("source %+v", source)
	}
	var answer struct {
		Data struct {
			TreeDump goldenAnswer
			Events   goldenAnswer
		}
	}
	for _, start := range []string{"null", "1"} {
		body := fmt.Sprintf(`{"worker_id":%d,"dp_rank":4,"start_event_id":%s,"end_event_id":null}`, testWorker, start)
		frame, err := source.Recovery.Handle(context.Background(), []byte(body), true)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(frame, &answer); err != nil {
			t.Fatalf("%s: %v", frame, err)
		}
	}
	if a := answer.Data.Events; len(a.Events) != 101 || a.Last != 101 {
		t.Errorf("%d recent events, last %d", len(a.Events), a.Last)
	}
	if a := answer.Data.TreeDump; len(a.Events) != 101 || a.Last != 101 {
		t.Errorf("%d dumped events, last %d", len(a.Events), a.Last)
	}
}

func TestUndecodableQueriesAreAnswered(t *testing.T) {
	p := openPlane(t, Options{KVEvents: true})
	for _, body := range []string{"", "\xc1", "\xdd\xff\xff\xff\xff", "\x80", "\x82\xa9worker_id\xff\xa7dp_rank\x00",
		strings.Repeat("\x91", 1000), "\x81\xa9worker_id\xa1x"} {
		frame, err := p.Sources()[0].Recovery.Handle(context.Background(), []byte(body), false)
		if err != nil || !strings.HasPrefix(string(frame), "\x82\xa4data\x81\xa5Error") {
			t.Errorf("%q: %q, %v", body, frame, err)
		}
	}
}

func TestDumpsWaitTheirTurn(t *testing.T) {
	p := openPlane(t, Options{KVEvents: true})
	r := p.Sources()[0].Recovery
	for range dumpsInFlight {
		r.dumps <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	body := fmt.Appendf(nil, `{"worker_id":%d,"dp_rank":0,"start_event_id":null}`, testWorker)
	if frame, err := r.Handle(ctx, body, true); err == nil {
		t.Errorf("answered with %s while all turns were taken", frame)
	}
	<-r.dumps
	if _, err := r.Handle(context.Background(), body, true); err != nil {
		t.Error(err)
	}
}

func TestPlaneWithoutPublishers(t *testing.T) {
	o := Options{Opener: ZMQ{Host: "0.0.0.0"}, Ranks: 2, KVEvents: true, Sequences: true}
	p, err := Open(o)
	if err == nil || strings.Count(err.Error(), "DYN_EVENT_PLANE_HOST") != 5 {
		t.Errorf("error %v", err)
	}
	if len(p.Channels()) != 0 || len(p.Readers()) != 0 || len(p.Sources()) != 0 || p.Sequences() != nil {
		t.Errorf("channels %v", p.Channels())
	}
	p.Close(0)
}

type countingWire struct{ groups, events int }

func (w *countingWire) Group(e *kv.Events) { w.groups++; w.events += len(e.List) }

// With another wire, host events stay off the event plane; the wire gets whole groups.
func TestWiresKeepHostEventsOff(t *testing.T) {
	w := &countingWire{}
	p := openPlane(t, Options{KVEvents: true, Wires: [][]GroupSink{{w}}})
	pass := stored(1)
	pass.Events.List = append(pass.Events.List, kv.Event{Tier: kv.HostPinned, Offset: 1, Count: 1})
	pass.Events.Sequence = append(pass.Events.Sequence, 2)
	pass.Events.Local = append(pass.Events.Local, 2)
	p.feed(pass)
	p.feed(stored(3))
	p.kv[0].flush()
	h := &p.kv[0].pipeline.history
	if w.groups != 2 || w.events != 3 || h.last != 2 || len(h.tiers[kv.HostPinned].blocks) != 0 {
		t.Errorf("wire %+v, last %d, host blocks %d", w, h.last, len(h.tiers[kv.HostPinned].blocks))
	}
}

func TestStatsOfATopic(t *testing.T) {
	p := openPlane(t, Options{KVEvents: true})
	p.feed(stored(1))
	eventually(t, "a message", func() bool { return p.stats(KVEvents).Messages == 1 })
	s := p.stats(KVEvents)
	if s.Bytes == 0 || s.Last.IsZero() || s.Publisher != p.Sources()[0].Publisher || len(s.Subscribers) != 0 {
		t.Errorf("stats %+v", s)
	}
	p.Close(0)
	if err := p.publishers[0].Publish(nil); err != ErrClosed {
		t.Errorf("publishing after the end: %v", err)
	}
}
