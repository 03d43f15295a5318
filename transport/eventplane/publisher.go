package eventplane

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"mockbench/transport/wire"
	"mockbench/transport/zmtp"
)

// ErrClosed is returned by a publisher that was closed.
var ErrClosed = errors.New("event plane: publisher is closed")

// maxEnvelopeHead is more than an envelope takes in front of its payload.
const maxEnvelopeHead = 128

// Publisher carries the messages of one topic, numbered from 0 without gaps. It is safe for concurrent use.
type Publisher struct {
	topic  Topic
	id     uint64
	outlet outlet
	now    func() time.Time

	mu     sync.Mutex
	stats  TopicStats
	next   uint64 // sequence number of the next message
	closed bool
}

// outlet is how a publisher's messages leave the process. send must not wait.
type outlet interface {
	// send takes one message: its sequence number and the envelope, of which size bytes will be appended by fill.
	send(p *Publisher, sequence uint64, size int, fill func([]byte) []byte) (bytes int, err error)
	limit() int // bytes an envelope may have, 0 = any
	channel() Transport
	subscribers() (peers []zmtp.Peer, dropped uint64)
	close(linger time.Duration)
}

// Transport says where a publisher's messages can be received: at a ZeroMQ endpoint, "tcp://host:port", or under a
// NATS subject prefix. One of the two is set.
type Transport struct{ Endpoint, SubjectPrefix string }

// Channel is what discovery announces of a publisher.
type Channel struct {
	Topic     Topic
	Publisher uint64
	Transport Transport
}

// TopicStats counts what one publisher sent.
type TopicStats struct {
	Topic        Topic
	Publisher    uint64
	Messages     uint64
	Bytes        uint64    // of the messages as they are on the wire, once each whatever the number of subscribers
	Failed       uint64    // messages that could not be handed over
	LastSequence uint64    // meaningful if Messages is positive
	Last         time.Time // of the latest message
	Subscribers  []zmtp.Peer
	Dropped      uint64 // messages lost by slow subscribers, gone ones included
}

// ID returns the publisher's identity.
func (p *Publisher) ID() uint64 { return p.id }

// Channel returns what discovery has to announce.
func (p *Publisher) Channel() Channel {
	return Channel{Topic: p.topic, Publisher: p.id, Transport: p.outlet.channel()}
}

// PayloadLimit returns the bytes a payload may have, 0 for any number.
func (p *Publisher) PayloadLimit() int {
	if n := p.outlet.limit(); n > 0 {
		return n - maxEnvelopeHead
	}
	return 0
}

// Publish sends one payload, of which nothing is kept. It never waits. An error means that the message is lost; its
// number is not used again.
func (p *Publisher) Publish(payload []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	now := p.now()
	sequence := p.next
	p.next++
	var scratch [maxEnvelopeHead]byte
	head := p.appendEnvelope(scratch[:0], sequence, now, len(payload))
	n, err := p.outlet.send(p, sequence, len(head)+len(payload), func(b []byte) []byte {
		return append(append(b, head...), payload...)
	})
	if err != nil {
		p.stats.Failed++
		return err
	}
	p.stats.Messages++
	p.stats.Bytes += uint64(n)
	p.stats.LastSequence, p.stats.Last = sequence, now
	return nil
}

// appendEnvelope adds an envelope up to its payload of n bytes.
func (p *Publisher) appendEnvelope(b []byte, sequence uint64, now time.Time, n int) []byte {
	b = append(b, "\x85\xacpublisher_id"...)
	b = wire.AppendUint(b, p.id)
	b = append(b, "\xa8sequence"...)
	b = wire.AppendUint(b, sequence)
	b = append(b, "\xacpublished_at"...)
	b = wire.AppendUint(b, uint64(max(0, now.UnixMilli())))
	b = append(b, "\xa5topic"...)
	b = wire.AppendString(b, string(p.topic))
	b = append(b, "\xa7payload"...)
	return wire.AppendBinaryHead(b, n)
}

// Stats returns the counters and the subscribers.
func (p *Publisher) Stats() TopicStats {
	p.mu.Lock()
	s := p.stats
	p.mu.Unlock()
	s.Topic, s.Publisher = p.topic, p.id
	s.Subscribers, s.Dropped = p.outlet.subscribers()
	return s
}

// Close gives subscribers the linger time to take what is queued for them and disconnects them. The channel must have
// left discovery before.
func (p *Publisher) Close(linger time.Duration) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.outlet.close(linger)
}

// zmqOutlet is a listening ZeroMQ publisher.
type zmqOutlet struct {
	socket   *zmtp.Pub
	endpoint string
}

const frameVersion = 1

func (z *zmqOutlet) send(p *Publisher, sequence uint64, size int, fill func([]byte) []byte) (int, error) {
	b := frames(p, sequence, size, fill)
	z.socket.Publish(string(p.topic), b)
	return len(b), nil
}

// frames builds the four frames of a message in one buffer: topic, publisher, sequence number, and version, length and
// envelope.
func frames(p *Publisher, sequence uint64, size int, fill func([]byte) []byte) []byte {
	b := make([]byte, 0, zmtp.FrameSize(len(p.topic))+2*zmtp.FrameSize(8)+zmtp.FrameSize(5+size))
	b = append(zmtp.AppendFrameHead(b, len(p.topic), true), p.topic...)
	b = binary.BigEndian.AppendUint64(zmtp.AppendFrameHead(b, 8, true), p.id)
	b = binary.BigEndian.AppendUint64(zmtp.AppendFrameHead(b, 8, true), sequence)
	b = append(zmtp.AppendFrameHead(b, 5+size, false), frameVersion)
	return fill(binary.BigEndian.AppendUint32(b, uint32(size)))
}

func (z *zmqOutlet) limit() int { return 0 }

func (z *zmqOutlet) channel() Transport { return Transport{Endpoint: z.endpoint} }

func (z *zmqOutlet) subscribers() ([]zmtp.Peer, uint64) { return z.socket.Peers() }

func (z *zmqOutlet) close(linger time.Duration) { z.socket.Close(linger) }
