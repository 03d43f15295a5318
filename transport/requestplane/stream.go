package requestplane

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	dialTimeout  = 5 * time.Second
	writeTimeout = 5 * time.Minute // a frontend may hold a stream back for as long as its client reads nothing
	closeTimeout = 10 * time.Second
	retryPause   = 200 * time.Millisecond // after running out of local ports

	// maxControl bounds messages from the frontend, which are words like "kill".
	maxControl = 64 << 10
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
	conn    *net.TCPConn
	ctx     context.Context
	cancel  context.CancelCauseFunc
	pending []byte
	encoder Encoder // lent to frame writers
	bytes   int     // of data frames

	accepted func()      // called with the prologue of an accepted request
	finished atomic.Bool // nothing more will be added, and the frontend's end is expected
	gone     atomic.Bool // the frontend gave up before that
}

// callHome connects to the frontend and introduces the answer. The introduction is written with the prologue.
func callHome(ctx context.Context, home CallHome) (*Stream, error) {
	conn, err := dial(ctx, home.Address)
	if err != nil {
		return nil, err
	}
	s := &Stream{conn: conn}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	e := Encoder{Codec: JSON}
	e.Map(2)
	encodeText(&e, "subject", home.Subject)
	encodeText(&e, "stream_type", home.StreamType)
	e.EndMap()
	s.pending = AppendMessage(make([]byte, 0, 1024), e.Buf, nil)
	return s, nil
}

func dial(ctx context.Context, address string) (*net.TCPConn, error) {
	ctx, stop := context.WithTimeout(ctx, dialTimeout)
	defer stop()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
		if !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return nil, err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Accept tells the frontend that the request is being answered.
func (s *Stream) Accept() error {
	s.pending = AppendMessage(s.pending, []byte(`{"error":null}`), nil)
	s.accepted()
	return s.Flush()
}

// Refuse tells the frontend that the request will not be answered, and ends the stream. Frontends take a worker that
// refuses out of routing for a while, unless the reason is the client's fault.
func (s *Stream) Refuse(f *Failure) error {
	e := Encoder{Codec: JSON}
	e.Map(2)
	encodeText(&e, "error", "Generate Error: "+clip(f.Diagnostic))
	e.Key("typed_error")
	f.Encode(&e)
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
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if s.gone.Load() { // after the deadline was set: giveUp sets gone first, and then a deadline in the past
		return ErrGone
	}
	_, err := s.conn.Write(s.pending)
	s.pending = s.pending[:0]
	return err
}

// listen reads what the frontend says until it closes the connection, then closes it here too. It may say "stop" or
// "kill"; whatever else arrives before the end of the answer, or the end of the connection, means the same.
func (s *Stream) listen() {
	defer s.conn.Close()
	_, _, err := ReadMessage(s.conn, maxControl)
	s.giveUp()
	if err == nil {
		_, _ = io.Copy(io.Discard, s.conn)
	}
}

// giveUp stops the request unless its answer is complete.
func (s *Stream) giveUp() {
	if s.finished.Load() {
		return
	}
	s.gone.Store(true)
	s.cancel(ErrGone)
	now := time.Now()
	_ = s.conn.SetWriteDeadline(now) // wakes a blocked writer
	_ = s.conn.SetReadDeadline(now.Add(closeTimeout))
}

// conclude is called when the handler has returned. The connection stays open for the frontend to close it first.
func (s *Stream) conclude() {
	s.cancel(nil)
	_ = s.conn.SetReadDeadline(time.Now().Add(closeTimeout))
	if !s.finished.Load() {
		_ = s.conn.CloseWrite()
	}
}
