package quicline

import (
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"mockbench/engine/spawn"
)

// batchWrites is how many writes travel together at most.
const batchWrites = 512

// lane is one stream of a bundle. Its writers take turns.
type lane struct {
	stream *quic.Stream
	batch  time.Duration // how long frames may wait for others; 0: not at all
	failed func(error)   // called if frames that waited cannot be written

	mu      sync.Mutex
	waiting []byte
	writes  int // in waiting
}

// write writes frames, or lets them wait for others.
func (l *lane) write(frames []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == 0 {
		return l.send(frames)
	}
	l.waiting = append(l.waiting, frames...)
	l.writes++
	switch l.writes {
	case 1:
		spawn.Go("QUIC batch", func() {
			time.Sleep(l.batch)
			if err := l.flush(); err != nil {
				l.failed(err)
			}
		})
	case batchWrites:
		return l.sendWaiting()
	}
	return nil
}

// flush writes what waits.
func (l *lane) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sendWaiting()
}

// sendWaiting writes what waits. The lane is locked.
func (l *lane) sendWaiting() error {
	if l.writes == 0 {
		return nil
	}
	err := l.send(l.waiting)
	l.waiting, l.writes = l.waiting[:0], 0
	return err
}

func (l *lane) send(frames []byte) error {
	_ = l.stream.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := l.stream.Write(frames)
	return err
}
