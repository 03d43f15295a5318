package dynamo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"mockbench/engine"
	"mockbench/transport/embeddednats"
	"mockbench/transport/natsconn"
	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/natsplane"
	"mockbench/transport/requestplane/planetest"
)

// TestLeavingClientsLeaveNothing lets clients leave at every stage of a request, under load and with subscribers of KV
// events that come and go: afterwards no goroutine, block, request, record or descriptor is left of them.
func TestLeavingClientsLeaveNothing(t *testing.T) {
	t.Run("tcp", func(t *testing.T) {
		o := overloaded(t)
		server := o.Server.(*requestplane.Server)
		leaveAll(t, o, tcpDoor{server.Addr(), "4d/ns/backend/generate"}, 10_000)
	})
	t.Run("nats", func(t *testing.T) {
		o := overloaded(t)
		broker, err := embeddednats.Start(embeddednats.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(broker.Close)
		settings, err := natsconn.FromEnvironment(func(name string) string { return map[string]string{"NATS_SERVER": broker.URL()}[name] })
		if err != nil {
			t.Fatal(err)
		}
		dial := func() (*natsDoor, error) {
			c, err := natsconn.Connect(t.Context(), settings, "test", nil)
			return &natsDoor{conn: c, subject: "ns_backend.generate-4d"}, err
		}
		worker, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		if o.Server, err = natsplane.Open(worker.conn, requestplane.Options{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { o.Server.Close() })
		d, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.conn.Close)
		if _, err := d.conn.Request("nobody", nil, planetest.Patience); !errors.Is(err, nats.ErrNoResponders) { // starts its goroutine
			t.Fatal(err)
		}
		leaveAll(t, o, d, 2_000)
	})
}

// overloaded is a worker with two ranks whose pool and batches are too small for what is asked of it.
func overloaded(t *testing.T) *Options {
	s := twoRanks(0, 0)
	s.noDelay = true
	s.config.BlockSize, s.config.NumGPUBlocks, s.config.MaxNumSeqs = 16, 64, 12
	o, _ := registrable(t, s)
	return &o
}

// leaveAll registers a worker, lets n clients leave it, and compares what is there before and after.
func leaveAll(t *testing.T, o *Options, d door, n int) {
	r, err := Register(t.Context(), *o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	goroutines, files := goleak.IgnoreCurrent(), openFiles(t)

	const clients = 64
	begin := time.Now()
	gone, subscribers := make(chan struct{}), sync.WaitGroup{}
	for i, source := range o.Events.Sources() {
		subscribers.Go(func() { churnSubscribers(t, address(o, source.Publisher), uint64(i), gone) })
	}
	left := departures(t, d, clients, n)
	close(gone)
	subscribers.Wait()
	t.Logf("%d clients left within %.1f s: %v", n, time.Since(begin).Seconds(), left)

	eventually(t, func() string {
		running, waiting := o.Server.Load()
		if running+waiting+r.Active()+o.Worker.InFlight() > 0 {
			return fmt.Sprintf("requests: %d running and %d waiting on the request plane, %d open, %d in the worker", running, waiting, r.Active(),
				o.Worker.InFlight())
		}
		return heldByRanks(t, o)
	})
	eventually(t, func() string {
		if now := openFiles(t); now > files {
			return fmt.Sprintf("%d descriptors are open, %d were before", now, files)
		}
		return ""
	})
	eventually(t, func() string {
		if err := goleak.Find(goroutines); err != nil {
			return err.Error()
		}
		return ""
	})
}

// departures lets n clients leave, some of them at the same time, and counts them by the way they left.
func departures(t *testing.T, d door, atOnce, n int) map[string]int {
	t.Helper()
	total := map[string]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range atOnce {
		group.Go(func() {
			l, err := newLeaver(uint64(i), d)
			for k := i; k < n && err == nil; k += atOnce {
				err = l.next()
			}
			if err != nil {
				t.Errorf("frontend %d, request %d: %v", i, l.serial, err)
			}
			_ = l.home.Close()
			mu.Lock()
			defer mu.Unlock()
			for way, count := range l.left {
				total[way] += count
			}
		})
	}
	group.Wait()
	for _, way := range append([]string{beforeAck, beforeCall, atCall}, wayNames...) {
		if total[way] == 0 {
			t.Errorf("nobody left %s", way)
		}
	}
	return total
}

// heldByRanks says what requests still hold in a rank, empty for nothing.
func heldByRanks(t *testing.T, o *Options) string {
	var s engine.Snapshot
	for rank := range o.Worker.Ranks() {
		if err := o.Worker.Inspect(rank, &s); err != nil {
			t.Fatal(err)
		}
		if l := s.Load; l.ActiveBlocks+l.Running+l.Waiting+len(s.Running)+s.Queued > 0 {
			return fmt.Sprintf("rank %d: %+v, %d running, %d queued", rank, l, len(s.Running), s.Queued)
		}
	}
	return ""
}

// eventually waits until nothing is wrong any more.
func eventually(t *testing.T, wrong func() string) {
	t.Helper()
	for end := time.Now().Add(planetest.Patience); ; time.Sleep(5 * time.Millisecond) {
		text := wrong()
		if text == "" {
			return
		}
		if time.Now().After(end) {
			t.Error(text)
			return
		}
	}
}

// openFiles counts the descriptors of the process.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// address returns where a publisher of a worker listens.
func address(o *Options, publisher uint64) string {
	for _, c := range o.Events.Channels() {
		if c.Publisher == publisher {
			return strings.TrimPrefix(c.Transport.Endpoint, "tcp://")
		}
	}
	return ""
}

// churnSubscribers lets subscribers come and go at any point of ZeroMQ's handshake and behind it.
func churnSubscribers(t *testing.T, address string, seed uint64, gone <-chan struct{}) {
	greeting := make([]byte, 64)
	copy(greeting, "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL")
	hello := append(greeting, "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"+"\x00\x01\x01"...)
	r := rand.New(rand.NewPCG(seed, 1))
	buffer := make([]byte, 4<<10)
	for heard := 0; ; {
		select {
		case <-gone:
			if heard == 0 {
				t.Errorf("no subscriber of %s heard anything", address)
			}
			return
		default:
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		said := hello[:r.IntN(len(hello)+1)]
		if r.IntN(2) == 0 {
			said = hello
		}
		_, _ = c.Write(said)
		_ = c.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(20)) * time.Millisecond))
		for total := 0; ; {
			n, err := c.Read(buffer)
			if total += n; total > 64+27 { // more than greeting and READY
				heard++
			}
			if err != nil {
				break
			}
		}
		depart(c.(*net.TCPConn), r)
	}
}
