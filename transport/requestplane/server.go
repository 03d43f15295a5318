package requestplane

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options configure a Server. The zero value listens where others can reach it, on a port of the system's choice.
type Options struct {
	Host       string        // see ResolveHost
	Port       int           // 0: chosen by the system
	MaxMessage int           // bytes of a request frame; 0 is DefaultMaxMessage
	Limits     Limits        // the zero value is DefaultLimits
	Response   ResponsePlane // how answers travel; empty is TCP
	TLS        TLS           // of requests and of answers over TCP
	QUICBatch  time.Duration // how long answers over QUIC may wait for others to travel with
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

const (
	// frameTimeout bounds the time between the first and the last byte of a request frame.
	frameTimeout = time.Minute

	ackTimeout    = 30 * time.Second
	acceptPause   = 50 * time.Millisecond // after a failed accept, such as one for want of descriptors
	maxLinger     = 64 << 20              // bytes of a refused frame that are read, so that the refusal arrives
	lingerTimeout = time.Second
)

// Server takes requests for all endpoints of a process on one port.
type Server struct {
	*Dispatcher
	listener net.Listener
	address  string
	max      int
}

// Listen starts a server without endpoints.
func Listen(o Options) (*Server, error) {
	if o.MaxMessage == 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	bind, advertise, err := ResolveHost(o.Host)
	if err != nil {
		return nil, err
	}
	d, err := NewDispatcher(o)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", netip.AddrPortFrom(bind, uint16(o.Port)).String())
	if err != nil {
		return nil, err
	}
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	s := &Server{Dispatcher: d, listener: listener, address: netip.AddrPortFrom(advertise, port).String(), max: o.MaxMessage}
	s.Go("request plane", s.accept)
	return s, nil
}

// Handle installs a handler. Requests for it may arrive from now on.
func (s *Server) Handle(name Name, h Handler) (*Endpoint, error) {
	return s.Add(name.Path(), Place{TCP: s.address + "/" + name.Path()}, name, h, nil)
}

// Addr returns the address to advertise, as ip:port.
func (s *Server) Addr() string { return s.address }

// Close ends everything at once: requests that are being answered are broken off. It returns when all is over.
func (s *Server) Close() error {
	s.halt()
	err := s.listener.Close()
	s.Dispatcher.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		switch {
		case err == nil:
			if s.keep(c) {
				s.Go("request connection", func() { s.converse(c) })
			}
		case s.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		default:
			s.log.Error("request plane cannot accept connections", "error", err)
			select {
			case <-time.After(acceptPause):
			case <-s.ctx.Done():
				return
			}
		}
	}
}

// converse reads request frames from one connection and acknowledges each before it reads the next: the frontend
// matches acknowledgements by their order alone.
func (s *Server) converse(c net.Conn) {
	defer s.drop(c) // as it was kept, without encryption
	defer c.Close()
	if s.tls.Requests != nil {
		encrypted := tls.Server(c, s.tls.Requests)
		if err := s.tls.shake(s.ctx, encrypted); err != nil {
			s.log.Warn("request connection refused", "error", err, "peer", c.RemoteAddr())
			return
		}
		c = encrypted
	}
	r := bufio.NewReaderSize(c, 32<<10)
	var out []byte
	for {
		if _, err := r.Peek(1); err != nil {
			return
		}
		_ = c.SetReadDeadline(time.Now().Add(frameTimeout))
		f, err := ReadFrame(r, s.max)
		if size := (*SizeError)(nil); errors.As(err, &size) {
			s.log.Warn("request frame refused", "error", err, "peer", c.RemoteAddr())
			_ = s.acknowledge(c, ackTooLarge(size).Append(out[:0]))
			linger(c)
			return
		}
		if err != nil {
			s.log.Debug("request connection ended", "error", err, "peer", c.RemoteAddr())
			return
		}
		_ = c.SetReadDeadline(time.Time{})
		ack, start := s.Take(f.Path, f.sentAt(), f.Payload)
		out = ack.Append(out[:0])
		err = s.acknowledge(c, out)
		start()
		if err != nil {
			s.log.Warn("request connection ended before an acknowledgement", "error", err, "peer", c.RemoteAddr())
			return
		}
	}
}

func (s *Server) acknowledge(c net.Conn, ack []byte) error {
	_ = c.SetWriteDeadline(time.Now().Add(ackTimeout))
	_, err := c.Write(ack)
	return err
}

// linger reads what the peer still sends for a moment: closing at once would destroy the last words to it.
func linger(c net.Conn) {
	_ = c.(duplex).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(lingerTimeout))
	_, _ = io.Copy(io.Discard, io.LimitReader(c, maxLinger))
}
