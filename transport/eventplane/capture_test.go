package eventplane

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"mockbench/transport/zmtp"
)

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
