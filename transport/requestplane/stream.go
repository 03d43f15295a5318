package requestplane

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
)

// ErrGone is the cause of a cancelled Stream context: the frontend stopped the request or is no longer there.
var ErrGone = errors.New("the frontend has given the request up")

var sentinel = []byte(`"sentinel"`)

// Stream is the answer to one request on its way to the frontend. A handler calls Accept or Refuse first, adds frames,
// and ends with Finish; everything it adds stands in a buffer until Accept, Refuse, Flush or Finish, which write it in
// one go. A handler that returns without Finish breaks the stream off, which the frontend sees as a failed worker.
// One goroutine uses a Stream.
type Stream struct {
	codec   Codec
	line    line
	ctx     context.Context
	cancel  context.CancelCauseFunc
	pending []byte
	encoder Encoder // lent to frame writers
	bytes   int     // of data frames

	accepted func()      // called with the prologue of an accepted request
	finished atomic.Bool // nothing more will be added, and the frontend's end is expected
	gone     atomic.Bool // the frontend gave up before that
}

// line is the connection on which an answer travels.
type line interface {
	// write sends whole two-part messages. It returns ErrGone once the frontend has given the request up.
	write(messages []byte) error

	// conclude is called when nothing more will be written. A line that is not finished tells the frontend so.
	conclude(finished bool)
}

// newStream returns a stream without line.
func newStream(ctx context.Context, codec Codec) *Stream {
	s := &Stream{codec: codec}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// Accept tells the frontend that the request is being answered.
func (s *Stream) Accept() error {
	s.pending = AppendMessage(s.pending, []byte(`{"error":null}`), nil)
	s.accepted()
	return s.Flush()
}

// Refuse tells the frontend that the request will not be answered, and ends the stream. Frontends take a worker that
// refuses out of routing for a while, unless the reason is the client's fault.
func (s *Stream) Refuse(f *Failure) error { return s.refuse("Generate Error: "+clip(f.Diagnostic), f) }

// refuse sends a text, and a failure if there is one.
func (s *Stream) refuse(text string, f *Failure) error {
	e := Encoder{Codec: JSON}
	e.Map(2)
	encodeText(&e, "error", text)
	if f != nil {
		e.Key("typed_error")
		f.Encode(&e)
	}
	e.EndMap()
	s.pending = AppendMessage(s.pending, e.Buf, nil)
	return s.end()
}

// Codec returns the form of this stream's data frames.
func (s *Stream) Codec() Codec { return s.codec }

// Data adds a data frame that is already encoded. It copies the frame.
func (s *Stream) Data(frame []byte) {
	s.pending = append(appendHead(s.pending, 0, len(frame)), frame...)
	s.bytes += len(frame)
}

// Encode adds a data frame.
func (s *Stream) Encode(write func(e *Encoder)) {
	start := len(s.pending)
	s.encoder = Encoder{Codec: s.codec, Buf: appendHead(s.pending, 0, 0)}
	write(&s.encoder)
	s.pending = s.encoder.Buf
	n := len(s.pending) - start - headSize
	binary.BigEndian.PutUint64(s.pending[start+8:], uint64(n))
	s.bytes += n
}

// Fail adds the error frame of an accepted request.
func (s *Stream) Fail(f *Failure) {
	s.Encode(func(e *Encoder) {
		e.Map(2)
		e.Key("data")
		e.Map(2)
		encodeText(e, "event", "error")
		e.Key("error")
		f.Encode(e)
		e.EndMap()
		e.Key("complete_final")
		e.Bool(false)
		e.EndMap()
	})
}

// Finish ends an accepted request in an orderly way.
func (s *Stream) Finish() error {
	s.Encode(func(e *Encoder) {
		e.Map(1)
		e.Key("complete_final")
		e.Bool(true)
		e.EndMap()
	})
	return s.end()
}

func (s *Stream) end() error {
	s.pending = AppendMessage(s.pending, sentinel, nil)
	s.finished.Store(true)
	return s.Flush()
}

// Pending returns what was added and not written yet. It is valid until the next call.
func (s *Stream) Pending() []byte { return s.pending }

// Discard forgets what was added and not written yet.
func (s *Stream) Discard() { s.pending = s.pending[:0] }

// Flush writes what was added. It returns ErrGone, and writes nothing, once the frontend has given the request up.
func (s *Stream) Flush() error {
	if s.gone.Load() {
		return ErrGone
	}
	err := s.line.write(s.pending)
	s.pending = s.pending[:0]
	return err
}

// giveUp is called when the frontend wants no more. It reports whether the answer was not complete.
func (s *Stream) giveUp() bool {
	if s.finished.Load() {
		return false
	}
	s.gone.Store(true)
	s.cancel(ErrGone)
	return true
}

// conclude is called when the handler has returned. An answer that was complete only after the frontend had given it up
// was not written to its end, so the frontend is not waited for.
func (s *Stream) conclude() {
	s.cancel(nil)
	s.line.conclude(s.finished.Load() && !s.gone.Load())
}
