// Package vllmwire publishes the KV events of one rank in the form of vLLM's own workers, over ZeroMQ, and replays
// batches that a consumer missed.
package vllmwire

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"mockbench/kv"
	"mockbench/transport/zmtp"
)

// ringBatches is how many batches are kept for replay.
const ringBatches = 10_000

// publishQueue is how many batches may wait for one slow subscriber.
const publishQueue = 1000

// Options configure the wire of one rank.
type Options struct {
	Host       string       // address to listen on; empty = 0.0.0.0
	EventsPort int          // of the rank; 0 chooses a free one
	Replay     bool         // keep batches and listen for replay requests
	ReplayPort int          // of the rank; 0 chooses a free one
	Rank       int          // data-parallel rank, as it appears in batches
	BlockSize  int          // tokens of a block
	Log        *slog.Logger // nil = no log
}

// Wire is the KV event stream of one rank. Group is called from one goroutine at a time; everything else is safe for
// concurrent use.
type Wire struct {
	rank, blockSize int
	log             *slog.Logger
	pub             *zmtp.Pub
	router          *zmtp.Router // nil = no replay
	now             func() time.Time
	encoded         []byte

	mu    sync.Mutex
	stats Stats
	ring  [][]byte // batches as replies: an empty frame and the published message; nil = no replay
	next  uint64   // sequence number of the next batch
}

// Stats counts what a wire published.
type Stats struct {
	Batches      uint64
	Bytes        uint64 // of the messages as they are on the wire, once each
	LastSequence uint64 // meaningful if Batches is positive
	Last         time.Time
	Subscribers  []zmtp.Peer
	Dropped      uint64 // batches lost by slow subscribers, gone ones included
}

// PortOf returns the port of one rank, given the port of its worker's first rank. With 0 the system chooses each.
func PortOf(base, rank int) (int, error) {
	if base == 0 {
		return 0, nil
	}
	if p := base + rank; base >= 1 && rank >= 0 && p <= 65535 {
		return p, nil
	}
	return 0, fmt.Errorf("vllm wire: port %d of rank %d must be between 1 and 65535, the worker's first port is %d", base+rank, rank, base)
}

// ListenError is a socket that could not be opened.
type ListenError struct {
	Replay bool // the one for replay requests, not the one for events
	Rank   int
	Err    error
}

func (e *ListenError) Error() string {
	what := "events"
	if e.Replay {
		what = "replay"
	}
	return fmt.Sprintf("vllm wire: %s of rank %d: %v", what, e.Rank, e.Err)
}

func (e *ListenError) Unwrap() error { return e.Err }

// Open opens the sockets of one rank. The error is a *ListenError.
func Open(o Options) (*Wire, error) {
	w := &Wire{rank: o.Rank, blockSize: o.BlockSize, log: o.Log, now: time.Now}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if o.Host == "" {
		o.Host = "0.0.0.0"
	}
	address := func(port int) string { return net.JoinHostPort(o.Host, strconv.Itoa(port)) }
	var err error
	w.pub, err = zmtp.ListenPub(zmtp.Options{Address: address(o.EventsPort), QueueMessages: publishQueue, Log: o.Log})
	if err != nil {
		return nil, &ListenError{Rank: o.Rank, Err: err}
	}
	if !o.Replay {
		return w, nil
	}
	w.ring = make([][]byte, 0, 16)
	w.router, err = zmtp.ListenRouter(zmtp.Options{Address: address(o.ReplayPort), QueueMessages: ringBatches + 1, Log: o.Log}, w.replay)
	if err != nil {
		w.pub.Close(0)
		return nil, &ListenError{Replay: true, Rank: o.Rank, Err: err}
	}
	return w, nil
}

// Addr returns the host:port of the event socket.
func (w *Wire) Addr() string { return w.pub.Addr() }

// ReplayAddr returns the host:port of the replay socket, empty if there is none.
func (w *Wire) ReplayAddr() string {
	if w.router == nil {
		return ""
	}
	return w.router.Addr()
}

// Group publishes KV events that became visible at the same moment as one batch. Host events are left out; a group
// without device events takes no number. Stored device events need token ids.
func (w *Wire) Group(events *kv.Events) {
	n := 0
	w.encoded, n = appendEvents(w.encoded[:0], events, w.blockSize)
	if n == 0 {
		return
	}
	w.publish(w.encoded, n)
}

// publish sends one batch of n encoded events.
func (w *Wire) publish(events []byte, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	reply := w.message(events, n, now)
	if w.ring != nil {
		w.keep(reply)
	}
	w.stats.Batches++
	w.stats.Bytes += uint64(len(reply) - delimiter)
	w.stats.LastSequence, w.stats.Last = w.next, now
	w.next++
	w.pub.Publish("", reply[delimiter:])
}

// delimiter is the size of the empty frame that a reply has in front of the published message.
const delimiter = 2

// message builds a batch in one buffer: the empty frame of a reply, then the empty topic, the number and the payload.
func (w *Wire) message(events []byte, n int, now time.Time) []byte {
	var scratch [32]byte
	head := appendBatchHead(scratch[:0], now, n)
	size := len(head) + len(events) + rankSize(w.rank)
	b := make([]byte, 0, delimiter+zmtp.FrameSize(0)+zmtp.FrameSize(8)+zmtp.FrameSize(size))
	b = zmtp.AppendFrameHead(b, 0, true)
	b = zmtp.AppendFrameHead(b, 0, true)
	b = binary.BigEndian.AppendUint64(zmtp.AppendFrameHead(b, 8, true), w.next)
	b = append(append(zmtp.AppendFrameHead(b, size, false), head...), events...)
	return appendRank(b, w.rank)
}

// Stats returns the counters and the subscribers.
func (w *Wire) Stats() Stats {
	w.mu.Lock()
	s := w.stats
	w.mu.Unlock()
	s.Subscribers, s.Dropped = w.pub.Peers()
	return s
}

// Close disconnects all peers at once: what waits for them is dropped, as vLLM's publisher does.
func (w *Wire) Close() {
	w.pub.Close(0)
	if w.router != nil {
		w.router.Close(0)
	}
}
