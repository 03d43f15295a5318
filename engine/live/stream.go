package live

import (
	"context"
	"sync"
)

// Request is one request as a transport hands it in.
type Request struct {
	Label     string // the client's id, for people
	Prompt    []uint32
	MaxOutput int
	Output    []uint32 // planned output; nil if there is none
	Rank      int      // -1: round robin over the ranks
}

// End says how a stream ended.
type End uint8

const (
	Open      End = iota
	Finished      // all tokens were produced
	Rejected      // the engine refused the request for its size
	Cancelled     // Cancel was called or the worker was closed
	Failed        // the engine failed; Stream.Err says how
)

// Token is one output token as the driver releases it.
type Token struct {
	ID     uint32 // scheduler's token
	Cached int32  // first token: prompt tokens reused; -1 if the engine does not say
}

// Stream is the output side of one request. The worker never waits for its reader: tokens are kept until taken.
type Stream struct {
	Rank   int
	cancel func()

	mu     sync.Mutex
	tokens []Token
	end    End
	err    error
	ready  chan struct{} // holds one element while there is something to take
}

// NewStream returns an open stream; cancel is called at most once a Cancel.
func NewStream(rank int, cancel func()) *Stream {
	return &Stream{Rank: rank, cancel: cancel, ready: make(chan struct{}, 1)}
}

// Take waits until there are tokens or the stream has ended, appends all pending tokens to dst and returns the end
// state after them. It returns ctx's error if ctx ends first. Only one goroutine may take.
func (s *Stream) Take(ctx context.Context, dst []Token) ([]Token, End, error) {
	for {
		s.mu.Lock()
		dst = append(dst, s.tokens...)
		n, end := len(s.tokens), s.end
		s.tokens = s.tokens[:0]
		s.mu.Unlock()
		if n > 0 || end != Open {
			return dst, end, nil
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return dst, Open, ctx.Err()
		}
	}
}

// Err returns why a stream Failed.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Cancel gives the request up: its blocks are freed at once, also in the middle of a pass. Tokens that were released
// before can still be taken. It does not wait, and does nothing to a stream that has ended.
func (s *Stream) Cancel() { s.cancel() }

// Push releases a token to the reader. The driver calls it; it never blocks.
func (s *Stream) Push(t Token) {
	s.push(t)
	s.wake()
}

// Close ends the stream; the first end stands.
func (s *Stream) Close(end End, err error) {
	s.finish(end, err)
	s.wake()
}

// push is Push without waking the reader.
func (s *Stream) push(t Token) {
	s.mu.Lock()
	if s.end == Open {
		s.tokens = append(s.tokens, t)
	}
	s.mu.Unlock()
}

// finish is Close without waking the reader.
func (s *Stream) finish(end End, err error) {
	s.mu.Lock()
	if s.end == Open {
		s.end, s.err = end, err
	}
	s.mu.Unlock()
}

func (s *Stream) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
