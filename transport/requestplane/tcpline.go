package requestplane

import (
	"context"
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

// tcpLine is a connection of its own for one answer. The introduction of the answer is written with its prologue.
type tcpLine struct {
	conn         duplex
	introduction []byte
	over         atomic.Bool // the frontend gave the request up
}

// open implements home.
func (h *CallHome) open(d *Dispatcher, s *Stream) (line, error) {
	plain, err := dial(d.ctx, h.Address)
	if err != nil {
		return nil, err
	}
	conn, err := d.tls.encrypted(d.ctx, plain, h.Address)
	if err != nil {
		return nil, err
	}
	if !d.keep(conn) {
		return nil, net.ErrClosed
	}
	e := Encoder{Codec: JSON}
	e.Map(2)
	encodeText(&e, "subject", h.Subject)
	encodeText(&e, "stream_type", h.StreamType)
	e.EndMap()
	l := &tcpLine{conn: conn, introduction: AppendMessage(nil, e.Buf, nil)}
	d.Go("answer connection", func() {
		defer d.drop(conn)
		l.listen(s)
	})
	return l, nil
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

func (l *tcpLine) write(messages []byte) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if l.over.Load() { // after the deadline was set: listen sets over first, and then a deadline in the past
		return ErrGone
	}
	if l.introduction != nil {
		messages = append(l.introduction, messages...)
		l.introduction = nil
	}
	_, err := l.conn.Write(messages)
	return err
}

// listen reads what the frontend says until it closes the connection, then closes it here too. It may say "stop" or
// "kill"; whatever else arrives before the end of the answer, or the end of the connection, means the same.
func (l *tcpLine) listen(s *Stream) {
	defer l.conn.Close()
	_, _, err := ReadMessage(l.conn, maxControl)
	if s.giveUp() {
		l.over.Store(true)
		now := time.Now()
		_ = l.conn.SetWriteDeadline(now) // wakes a blocked writer
		_ = l.conn.SetReadDeadline(now.Add(closeTimeout))
	}
	if err == nil {
		_, _ = io.Copy(io.Discard, l.conn)
	}
}

// conclude leaves the connection open for the frontend to close it first.
func (l *tcpLine) conclude(finished bool) {
	_ = l.conn.SetReadDeadline(time.Now().Add(closeTimeout))
	if !finished {
		_ = l.conn.CloseWrite()
	}
}
