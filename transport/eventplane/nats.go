package eventplane

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"mockbench/engine/spawn"
	"mockbench/transport/zmtp"
)

// Bounds of the queue between a publisher and the NATS client, which waits when the server takes nothing.
const (
	natsQueueMessages = 16 << 10
	natsQueueBytes    = 64 << 20
)

var errNATSQueue = errors.New("nats: the server takes messages too slowly, the queue is full")

// NATS opens publishers that share a connection to a NATS server. The connection belongs to the caller, who should set
// a short nats.FlusherTimeout: closing a connection waits as long for a server that takes nothing.
type NATS struct{ Conn *nats.Conn }

// Open implements Opener.
func (n NATS) Open(topic Topic, id uint64, endpoint Endpoint) (*Publisher, error) {
	if n.Conn == nil {
		return nil, errors.New("event plane: nats needs a connection to a server, set NATS_SERVER")
	}
	prefix := endpoint.SubjectPrefix()
	o := &natsOutlet{conn: n.Conn, max: int(n.Conn.MaxPayload()), prefix: prefix, subject: prefix + "." + string(topic),
		queue: make(chan []byte, natsQueueMessages), done: make(chan struct{})}
	spawn.Go("nats events", o.run)
	return newPublisher(topic, id, o), nil
}

// BatchesSequences implements Opener.
func (NATS) BatchesSequences() bool { return false }

// natsOutlet publishes bare envelopes under one subject.
type natsOutlet struct {
	conn            *nats.Conn
	max             int // bytes of a message; asked once, because the client may not answer while it waits for the server
	prefix, subject string
	queue           chan []byte
	queued, failed  atomic.Int64 // bytes in the queue; messages the client refused
	closing         sync.Once
	done            chan struct{}
}

func (n *natsOutlet) run() {
	defer close(n.done)
	for m := range n.queue {
		if n.conn.Publish(n.subject, m) != nil {
			n.failed.Add(1)
		}
		n.queued.Add(-int64(len(m)))
	}
}

func (n *natsOutlet) send(_ *Publisher, _ uint64, size int, fill func([]byte) []byte) (int, error) {
	if n.max > 0 && size > n.max {
		return 0, fmt.Errorf("nats: message of %d bytes exceeds the server's limit of %d", size, n.max)
	}
	if n.queued.Load()+int64(size) > natsQueueBytes {
		return 0, errNATSQueue
	}
	b := fill(make([]byte, 0, size))
	select {
	case n.queue <- b:
		n.queued.Add(int64(size))
		return size, nil
	default:
		return 0, errNATSQueue
	}
}

func (n *natsOutlet) limit() int { return n.max }

func (n *natsOutlet) channel() Transport { return Transport{SubjectPrefix: n.prefix} }

func (n *natsOutlet) subscribers() ([]zmtp.Peer, uint64) { return nil, uint64(n.failed.Load()) }

// close must not be called while send runs; the publisher sees to that.
func (n *natsOutlet) close(linger time.Duration) {
	n.closing.Do(func() { close(n.queue) })
	select {
	case <-n.done:
		if linger > 0 && n.conn.IsConnected() {
			_ = n.conn.FlushTimeout(linger) // what could not be flushed is lost, as with every closing publisher
		}
	case <-time.After(linger): // the client waits for a server that takes nothing; closing the connection frees it
	}
}
