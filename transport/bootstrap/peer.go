package bootstrap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"mockbench/engine/spawn"
)

// incoming is a frame of the other side, or the end of the connection.
type incoming struct {
	message Message
	err     error
}

// peer is the other side of a session. One goroutine uses it.
type peer struct {
	conn  net.Conn
	id    Identity
	early chan incoming // holds what was read before the session began, at most one
	in    chan incoming
	quit  chan struct{} // closed when nobody reads any more
	once  sync.Once
}

// newPeer begins to read the frames of a connection that has introduced itself.
func newPeer(conn net.Conn, r *bufio.Reader, id Identity) *peer {
	p := &peer{conn: conn, id: id, early: make(chan incoming, 1), in: make(chan incoming), quit: make(chan struct{})}
	_ = conn.SetReadDeadline(time.Time{})
	spawn.Go("handoff connection", func() { p.read(r) })
	return p
}

func (p *peer) read(r io.Reader) {
	for {
		id, m, err := readFrame(r)
		if err == nil && id != p.id {
			err = fmt.Errorf("%w: the identity changed", errProtocol)
		}
		select {
		case p.in <- incoming{m, err}:
		case <-p.quit:
			return
		}
		if err != nil {
			return
		}
	}
}

// frames returns the channel that the next frame comes from.
func (p *peer) frames() <-chan incoming {
	if len(p.early) > 0 {
		return p.early
	}
	return p.in
}

// send writes frames in one go.
func (p *peer) send(messages ...Message) error {
	var b []byte
	for _, m := range messages {
		b = appendFrame(b, p.id, m)
	}
	_ = p.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := p.conn.Write(b)
	return err
}

// close ends the connection after the other side had time to read the last frame.
func (p *peer) close() {
	p.once.Do(func() {
		close(p.quit)
		linger(p.conn)
	})
}

// linger closes a connection. Closing it at once would destroy what the other side has not read, if there is anything
// that we have not read.
func linger(conn net.Conn) {
	if c, ok := conn.(*net.TCPConn); !ok || c.CloseWrite() != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(lingerTimeout))
	spawn.Go("end of a handoff connection", func() {
		_, _ = io.CopyN(io.Discard, conn, MaxFrame)
		_ = conn.Close()
	})
}

// failure is the error of a session whose connection ended or carried something wrong.
func failure(err, disconnected error) error {
	if errors.Is(err, errProtocol) {
		return err
	}
	return disconnected
}
