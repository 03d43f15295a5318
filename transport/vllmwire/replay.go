package vllmwire

import (
	"encoding/binary"
	"math"

	"mockbench/transport/zmtp"
)

// endOfReplay is the last reply: it has the largest number and no payload.
var endOfReplay = zmtp.Message(nil, nil, binary.BigEndian.AppendUint64(nil, math.MaxUint64), nil)

// keep adds a batch to those that can be replayed. The ring is filled by number.
func (w *Wire) keep(reply []byte) {
	if len(w.ring) < ringBatches {
		w.ring = append(w.ring, reply)
		return
	}
	w.ring[w.next%ringBatches] = reply
}

// kept returns the batches from a number on, oldest first, and the numbers that could be asked for: first to next-1.
func (w *Wire) kept(start uint64) (batches [][]byte, first, next uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first = w.next - uint64(len(w.ring))
	for n := max(start, first); n < w.next; n++ {
		batches = append(batches, w.ring[n%ringBatches])
	}
	return batches, first, w.next
}

// replay answers a request: an empty frame and the number to start from. The answer is one message a batch and an end
// mark. What is no such request gets no answer.
func (w *Wire) replay(request [][]byte, reply func([]byte) bool) {
	if len(request) < 2 || len(request[1]) != 8 {
		w.log.Warn("replay request is not an empty frame and a number of 8 bytes", "rank", w.rank, "frames", len(request))
		return
	}
	start := binary.BigEndian.Uint64(request[1])
	batches, first, next := w.kept(start)
	if start < first || start >= next {
		w.log.Warn("replay request is outside of the buffer", "rank", w.rank, "start", start, "first", first, "next", next)
	}
	for _, b := range batches {
		if !reply(b) {
			return
		}
	}
	reply(endOfReplay)
}
