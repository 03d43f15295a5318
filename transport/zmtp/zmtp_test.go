package zmtp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"go.uber.org/goleak"
)

const generous = 30 * time.Second

// client is a raw peer: it opens the protocol as a socket of the given type.
func client(t testing.TB, addr, kind string) (net.Conn, *frameReader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r := newFrameReader(conn)
	if err := handshake(conn, r, kind, []string{"PUB", "ROUTER"}); err != nil {
		t.Fatal(err)
	}
	return conn, r
}

func subscribe(t testing.TB, addr, prefix string) (net.Conn, *frameReader) {
	t.Helper()
	conn, r := client(t, addr, "SUB")
	if _, err := conn.Write(Message([]byte("\x01" + prefix))); err != nil {
		t.Fatal(err)
	}
	return conn, r
}

func listenPub(t testing.TB, o Options) *Pub {
	t.Helper()
	o.Address = "127.0.0.1:0"
	p, err := ListenPub(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(0) })
	return p
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(generous); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not reached: %s", what)
		}
	}
}

// awaitSubscriptions waits until n subscriptions have arrived.
func awaitSubscriptions(t testing.TB, p *Pub, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d subscriptions", n), func() bool {
		peers, _ := p.Peers()
		have := 0
		for _, peer := range peers {
			have += len(peer.Prefixes)
		}
		return have == n
	})
}

func numbered(topic string, n int, size int) []byte {
	body := make([]byte, size)
	binary.BigEndian.PutUint64(body, uint64(n))
	return Message([]byte(topic), body)
}

func TestMessageFraming(t *testing.T) {
	long := bytes.Repeat([]byte{7}, 300)
	m := Message([]byte("t"), nil, long)
	want := append([]byte{1, 1, 't', 1, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0x2c}, long...)
	if !bytes.Equal(m, want) {
		t.Fatalf("got % x", m[:20])
	}
	r := newFrameReader(bytes.NewReader(m))
	for i, want := range [][]byte{[]byte("t"), {}, long} {
		_, body, err := r.next()
		if err != nil || !bytes.Equal(body, want) {
			t.Errorf("frame %d: %d bytes, %v", i, len(body), err)
		}
	}
}

func TestSubscribersOfOtherMakes(t *testing.T) {
	p := listenPub(t, Options{})
	s := zmq4.NewSub(context.Background())
	defer s.Close()
	if err := s.Dial("tcp://" + p.Addr()); err != nil {
		t.Fatal(err)
	}
	if err := s.SetOption(zmq4.OptionSubscribe, "a"); err != nil {
		t.Fatal(err)
	}
	awaitSubscriptions(t, p, 1)
	const n = 1000
	for i := range n {
		p.Publish("b", numbered("b", i, 8))
		p.Publish("ab", numbered("ab", i, 400))
	}
	for i := range n {
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Frames[0]) != "ab" || binary.BigEndian.Uint64(m.Frames[1]) != uint64(i) {
			t.Fatalf("message %d: topic %q number %x", i, m.Frames[0], m.Frames[1][:8])
		}
	}
}

func TestUnsubscribeAndCommands(t *testing.T) {
	p := listenPub(t, Options{})
	conn, r := subscribe(t, p.Addr(), "a")
	awaitSubscriptions(t, p, 1)
	conn.Write(appendCommand(nil, "SUBSCRIBE", []byte("b")))
	awaitSubscriptions(t, p, 2)
	conn.Write(Message([]byte("\x00a")))
	conn.Write(appendCommand(nil, "UNHEARD-OF", nil))
	awaitSubscriptions(t, p, 1)
	conn.Write(appendCommand(nil, "PING", []byte{0, 10, 'c', 't', 'x'}))
	flags, body, err := r.next()
	if err != nil || flags != flagCommand || string(body) != "\x04PONGctx" {
		t.Fatalf("answer to PING: %x %q %v", flags, body, err)
	}
	p.Publish("a", Message([]byte("a")))
	p.Publish("b", Message([]byte("b")))
	if _, body, err := r.next(); err != nil || string(body) != "b" {
		t.Fatalf("got %q, %v", body, err)
	}
	conn.Write(appendCommand(nil, "CANCEL", []byte("b")))
	awaitSubscriptions(t, p, 0)
}

// A stalled subscriber keeps a bounded amount of memory busy; the healthy one gets everything in order.
func TestStalledSubscriber(t *testing.T) {
	const n, size, limit = 100_000, 300, 4 << 20
	p := listenPub(t, Options{QueueBytes: limit})
	subscribe(t, p.Addr(), "kv") // never reads
	awaitSubscriptions(t, p, 1)  // so that it is the first of the peers
	conn, _ := subscribe(t, p.Addr(), "kv")
	awaitSubscriptions(t, p, 2)

	received := make(chan error, 1)
	go func() {
		r := newFrameReader(bufio.NewReaderSize(conn, 1<<16))
		for i := range n {
			r.next()
			_, body, err := r.next()
			if err == nil && binary.BigEndian.Uint64(body) != uint64(i) {
				err = fmt.Errorf("message %d has number %x", i, body[:8])
			}
			if err != nil {
				received <- err
				return
			}
		}
		received <- nil
	}()
	var slowest time.Duration
	healthyQueue := func() int { peers, _ := p.Peers(); return peers[1].QueuedBytes }
	for i := range n {
		before := time.Now()
		p.Publish("kv", numbered("kv", i, size))
		slowest = max(slowest, time.Since(before))
		if i%1000 == 0 { // a load the healthy reader can follow on a busy machine
			eventually(t, "healthy reader follows", func() bool { return healthyQueue() < limit/2 })
		}
	}
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	peers, dropped := p.Peers()
	stalled, healthy := peers[0], peers[1]
	if healthy.Dropped != 0 || stalled.Dropped == 0 || dropped != stalled.Dropped {
		t.Errorf("dropped: healthy %d, stalled %d, all %d", healthy.Dropped, stalled.Dropped, dropped)
	}
	if stalled.QueuedBytes > limit {
		t.Errorf("stalled subscriber holds %d bytes, limit %d", stalled.QueuedBytes, limit)
	}
	if total := stalled.Dropped + stalled.Sent + uint64(stalled.Queued); total != n {
		t.Errorf("stalled subscriber accounts for %d of %d messages", total, n)
	}
	if slowest > 5*time.Second {
		t.Errorf("one Publish took %v", slowest)
	}
}

func TestQueueBoundByMessages(t *testing.T) {
	q := newQueue(3, 1000)
	first := []bool{q.offer([]byte{1}), q.offer([]byte{2}), q.offer([]byte{3}), q.offer([]byte{4}), q.offer([]byte{5})}
	if !slices.Equal(first, []bool{false, false, false, true, false}) || q.dropped != 2 || q.count != 3 {
		t.Errorf("first drop %v, dropped %d, kept %d", first, q.dropped, q.count)
	}
	q = newQueue(3, 10)
	q.offer(make([]byte, 100))
	if q.count != 1 || !q.offer([]byte{1}) {
		t.Error("an empty queue takes a message above its byte limit, and then no other")
	}
}

// Peers that say nothing, or nonsense, are dropped and disturb nobody.
func TestHostilePeers(t *testing.T) {
	p := listenPub(t, Options{})
	noise := make([]byte, 1<<20)
	rand.Read(noise)
	open := func(after ...byte) []byte { return append(greeting[:], after...) }
	for name, input := range map[string][]byte{
		"silent":              nil,
		"half a greeting":     greeting[:30],
		"random bytes":        noise,
		"http":                []byte("GET / HTTP/1.1\r\n\r\n"),
		"old version":         append([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1}, make([]byte, 53)...),
		"frame of 2^63":       open(2, 0x80, 0, 0, 0, 0, 0, 0, 0),
		"READY of 2^46":       open(6, 0, 0, 0x40, 0, 0, 0, 0, 0),
		"property of 2^32":    open(appendCommand(nil, "READY", []byte("\x0bSocket-Type\xff\xff\xff\xffSUB"))...),
		"wrong socket type":   open(appendCommand(nil, "READY", appendReady(nil, "PUSH"))...),
		"no socket type":      open(appendCommand(nil, "READY", nil)...),
		"message, no READY":   open(Message([]byte("\x01"))...),
		"command, no name":    open(4, 0),
		"unknown frame flags": open(0xf0, 1, 1),
	} {
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go conn.Write(input)
		if name == "silent" || name == "half a greeting" {
			continue
		}
		conn.SetReadDeadline(time.Now().Add(generous))
		if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
			t.Errorf("%s: still connected", name)
		}
	}
	conn, r := subscribe(t, p.Addr(), "")
	awaitSubscriptions(t, p, 1)
	p.Publish("x", Message([]byte("x")))
	if _, body, err := r.next(); err != nil || string(body) != "x" {
		t.Fatalf("subscriber beside hostile peers got %q, %v", body, err)
	}
	conn.Write([]byte{2, 0x80, 0, 0, 0, 0, 0, 0, 0}) // a subscriber that goes mad after its handshake
	eventually(t, "dropped after a frame of 2^63", func() bool { peers, _ := p.Peers(); return len(peers) == 0 })
}

// Subscribers that come, read and go leave no goroutine and no descriptor.
func TestComeAndGo(t *testing.T) {
	before := goleak.IgnoreCurrent()
	p, err := ListenPub(Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				p.Publish("kv", numbered("kv", i, 100))
			}
		}
	}()
	descriptors := openDescriptors(t)
	for range 200 {
		conn, r := subscribe(t, p.Addr(), "kv")
		for range 5 * 2 {
			if _, _, err := r.next(); err != nil {
				t.Fatal(err)
			}
		}
		conn.Close()
	}
	conn, r := subscribe(t, p.Addr(), "kv")
	if _, _, err := r.next(); err != nil {
		t.Fatalf("a subscriber after 200 others: %v", err)
	}
	conn.Close()
	eventually(t, "all peers gone", func() bool { peers, _ := p.Peers(); return len(peers) == 0 })
	eventually(t, "descriptors returned", func() bool { return openDescriptors(t) <= descriptors })
	close(stop)
	<-stopped
	p.Close(0)
	goleak.VerifyNone(t, before)
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestPrefixNobodyMatches(t *testing.T) {
	p := listenPub(t, Options{})
	subscribe(t, p.Addr(), "nothing-has-this")
	awaitSubscriptions(t, p, 1)
	for i := range 1000 {
		p.Publish("kv", numbered("kv", i, 10))
	}
	peers, _ := p.Peers()
	if got := peers[0]; got.Queued != 0 || got.Sent != 0 || got.Dropped != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestCloseDrains(t *testing.T) {
	p := listenPub(t, Options{})
	_, r := subscribe(t, p.Addr(), "")
	awaitSubscriptions(t, p, 1)
	const n = 5000
	for i := range n {
		p.Publish("", numbered("", i, 200))
	}
	got := make(chan int)
	go func() {
		count := 0
		for {
			if _, _, err := r.next(); err != nil {
				got <- count
				return
			}
			count++
		}
	}()
	p.Close(generous)
	if count := <-got; count != 2*n {
		t.Errorf("%d of %d frames arrived before the socket closed", count, 2*n)
	}
	if _, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Error("still listening")
	}
	p.Close(0) // again
}

func TestListenErrors(t *testing.T) {
	p := listenPub(t, Options{})
	if _, err := ListenPub(Options{Address: p.Addr()}); err == nil {
		t.Error("a port in use was taken")
	}
	six, err := ListenPub(Options{Address: "[::1]:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer six.Close(0)
	if !strings.HasPrefix(six.Addr(), "[::1]:") {
		t.Errorf("address %s", six.Addr())
	}
}

func TestRouter(t *testing.T) {
	const replies = 10_001
	r, err := ListenRouter(Options{Address: "127.0.0.1:0", QueueMessages: 100}, func(request [][]byte, reply func([]byte) bool) {
		if len(request) < 2 {
			return
		}
		for i := range replies {
			if !reply(Message(nil, request[1], binary.BigEndian.AppendUint64(nil, uint64(i)))) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(0)
	stalled, _ := client(t, r.Addr(), "DEALER") // asks often and never reads
	for range 100 {
		stalled.Write(Message(nil, make([]byte, 1000)))
	}
	dealer := zmq4.NewDealer(context.Background())
	defer dealer.Close()
	if err := dealer.Dial("tcp://" + r.Addr()); err != nil {
		t.Fatal(err)
	}
	if err := dealer.Send(zmq4.NewMsgFrom([]byte{}, []byte("ask"))); err != nil {
		t.Fatal(err)
	}
	for i := range replies {
		m, err := dealer.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Frames) != 3 || string(m.Frames[1]) != "ask" || binary.BigEndian.Uint64(m.Frames[2]) != uint64(i) {
			t.Fatalf("reply %d: %q", i, m.Frames)
		}
	}
	req := zmq4.NewReq(context.Background())
	defer req.Close()
	if err := req.Dial("tcp://" + r.Addr()); err != nil {
		t.Fatal(err)
	}
	if err := req.Send(zmq4.NewMsg([]byte("one"))); err != nil {
		t.Fatal(err)
	}
	if m, err := req.Recv(); err != nil || string(m.Frames[0]) != "one" {
		t.Fatalf("REQ got %q, %v", m.Frames, err)
	}
}

// FuzzPeer gives arbitrary bytes to the handshake and the frame reader: they end with an error, within their limits.
func FuzzPeer(f *testing.F) {
	f.Add(append(append(greeting[:], appendCommand(nil, "READY", appendReady(nil, "SUB"))...), Message([]byte("\x01a"))...))
	f.Add(append(greeting[:], 6, 0, 0, 0x40, 0, 0, 0, 0, 0))
	f.Add(append(greeting[:], 2, 0x80, 0, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := newFrameReader(bytes.NewReader(in))
		if err := handshake(io.Discard, r, "PUB", []string{"SUB"}); err != nil {
			return
		}
		q := &peer{prefixes: map[string]bool{}, out: newQueue(10, 1000), in: r}
		if err := (&Pub{}).serve(q); err == nil {
			t.Fatal("the reader ended without an error")
		}
		if cap(r.body) > maxFrameBytes {
			t.Fatalf("%d bytes allocated for a frame", cap(r.body))
		}
	})
}

func BenchmarkPublish(b *testing.B) {
	p := listenPub(b, Options{})
	conn, _ := subscribe(b, p.Addr(), "")
	awaitSubscriptions(b, p, 1)
	go io.Copy(io.Discard, conn)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Publish("kv-events", numbered("kv-events", i, 400))
	}
}
