package requestplane

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mockbench/engine/spawn"
)

// Options configure a Server. The zero value listens where others can reach it, on a port of the system's choice.
type Options struct {
	Host       string // see ResolveHost
	Port       int    // 0: chosen by the system
	MaxMessage int    // bytes of a request frame; 0 is DefaultMaxMessage
	Limits     Limits // the zero value is DefaultLimits
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
	listener net.Listener
	address  string
	max      int
	limiter  *limiter
	metrics  *metrics
	log      *slog.Logger
	ctx      context.Context // ends when the server is closed
	stop     context.CancelFunc
	work     sync.WaitGroup // every goroutine of the server

	mu        sync.Mutex
	closed    bool
	endpoints map[string]*Endpoint
	conns     map[net.Conn]struct{} // request connections and answer connections
}

// Listen starts a server without endpoints.
func Listen(o Options) (*Server, error) {
	if o.MaxMessage == 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	bind, advertise, err := ResolveHost(o.Host)
	if err != nil {
		return nil, err
	}
	limiter := &limiter{limits: o.Limits}
	metrics, err := newMetrics(o.Registerer, limiter)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", netip.AddrPortFrom(bind, uint16(o.Port)).String())
	if err != nil {
		return nil, err
	}
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	s := &Server{listener: listener, address: netip.AddrPortFrom(advertise, port).String(), max: o.MaxMessage,
		limiter: limiter, metrics: metrics, log: o.Log, endpoints: map[string]*Endpoint{}, conns: map[net.Conn]struct{}{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.goes("request plane", s.accept)
	return s, nil
}

// Addr returns the address to advertise, as ip:port.
func (s *Server) Addr() string { return s.address }

// Load returns the numbers of requests that are being answered and that wait.
func (s *Server) Load() (running, waiting int) { return s.limiter.load() }

// Close ends everything at once: requests that are being answered are broken off. It returns when all is over.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.stop()
	err := s.listener.Close()
	s.work.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) goes(name string, f func()) {
	s.work.Add(1)
	spawn.Go(name, func() {
		defer s.work.Done()
		f()
	})
}

// keep registers a connection to be closed with the server; it closes the connection if that has happened.
func (s *Server) keep(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) drop(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		switch {
		case err == nil:
			if s.keep(c) {
				s.goes("request connection", func() { s.converse(c) })
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
	defer s.drop(c)
	defer c.Close()
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
		ack, start := s.take(f)
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
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(lingerTimeout))
	_, _ = io.Copy(io.Discard, io.LimitReader(c, maxLinger))
}
