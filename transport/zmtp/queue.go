package zmtp

import (
	"net"
	"sync"
	"time"
)

// writeTimeout disconnects a peer that takes no byte for so long. ZeroMQ sockets reconnect by themselves when they
// wake up, and until then hold no memory here.
const writeTimeout = 2 * time.Minute

// A batch is what one write call sends: so many messages or bytes, whichever comes first.
const (
	batchMessages = 256
	batchBytes    = 256 << 10
)

// keepCapacity is the longest list of messages that is kept for reuse, so that a stall leaves no memory behind.
const keepCapacity = 4096

// queue is the bounded list of messages for one peer and the goroutine that writes them.
type queue struct {
	maxMessages int
	maxBytes    int

	mu      sync.Mutex
	pending [][]byte
	count   int // messages not yet written, those of the batch being written included
	bytes   int
	dropped uint64
	sent    uint64
	closing bool // write what is pending, then stop
	wake    chan struct{}
	space   chan struct{} // one element after each batch, for senders that wait
	done    chan struct{} // closed when nothing is written any more
}

func newQueue(maxMessages, maxBytes int) *queue {
	return &queue{maxMessages: maxMessages, maxBytes: maxBytes, wake: make(chan struct{}, 1),
		space: make(chan struct{}, 1), done: make(chan struct{})}
}

// add queues a message if there is room. A message larger than the byte limit is taken by an empty queue.
func (q *queue) add(m []byte) bool {
	q.mu.Lock()
	full := q.count > 0 && (q.count >= q.maxMessages || q.bytes+len(m) > q.maxBytes)
	if full || q.closing {
		q.mu.Unlock()
		return false
	}
	q.pending = append(q.pending, m)
	q.count++
	q.bytes += len(m)
	q.mu.Unlock()
	signal(q.wake)
	return true
}

// offer queues a message, or drops and counts it if there is no room. It never waits. first is true for the first
// message that is dropped.
func (q *queue) offer(m []byte) (first bool) {
	if q.add(m) {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing {
		return false
	}
	q.dropped++
	return q.dropped == 1
}

// close lets run return after the messages that are pending.
func (q *queue) close() {
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	signal(q.wake)
}

// run writes messages until the queue is closed and empty, or a write fails.
func (q *queue) run(conn net.Conn) error {
	defer close(q.done)
	var spare [][]byte
	for range q.wake {
		for {
			batch, closing := q.take(spare)
			if len(batch) == 0 {
				if closing {
					return nil
				}
				break
			}
			if err := q.write(conn, batch); err != nil {
				return err
			}
			clear(batch)
			spare = nil
			if cap(batch) <= keepCapacity {
				spare = batch
			}
		}
	}
	return nil
}

// take removes all pending messages; further ones are collected in spare, which the queue then owns. Without pending
// messages nothing changes.
func (q *queue) take(spare [][]byte) (batch [][]byte, closing bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) == 0 {
		return nil, q.closing
	}
	batch, q.pending = q.pending, spare[:0]
	return batch, q.closing
}

// write sends messages in few calls and releases the queue's space as they leave.
func (q *queue) write(conn net.Conn, messages [][]byte) error {
	var scratch [batchMessages][]byte
	for len(messages) > 0 {
		n, size := 0, 0
		for n < len(messages) && n < batchMessages && (n == 0 || size+len(messages[n]) <= batchBytes) {
			size += len(messages[n])
			n++
		}
		if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		buffers := net.Buffers(append(scratch[:0], messages[:n]...))
		if _, err := buffers.WriteTo(conn); err != nil {
			return err
		}
		messages = messages[n:]
		q.mu.Lock()
		q.count -= n
		q.bytes -= size
		q.sent += uint64(n)
		q.mu.Unlock()
		signal(q.space)
	}
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
