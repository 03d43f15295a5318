package zmtp

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"mockbench/engine/spawn"
)

// handshakeTimeout is how long a new peer may take to say who it is.
const handshakeTimeout = 5 * time.Second

// Options configure a listening socket.
type Options struct {
	Address       string       // host:port to listen on; port 0 chooses a free one
	QueueMessages int          // messages kept for one peer; 0 = 100 000
	QueueBytes    int          // bytes kept for one peer; 0 = 64 MiB
	Log           *slog.Logger // nil = no log
}

// Peer describes one connected peer.
type Peer struct {
	Address     string
	Since       time.Time // when its handshake was done
	Prefixes    []string  // subscriptions, sorted; nil for peers of a router
	Queued      int       // messages waiting, the ones being written included
	QueuedBytes int
	Sent        uint64 // messages written to the connection
	Dropped     uint64 // messages lost because its queue was full
}

// peer is one connection after its handshake.
type peer struct {
	conn  net.Conn
	in    *frameReader
	out   *queue
	since time.Time

	mu       sync.Mutex
	prefixes map[string]bool
}

// server accepts peers of one socket and runs each of them on its own.
type server struct {
	kind     string   // own socket type
	accepted []string // socket types of peers
	options  Options
	log      *slog.Logger
	listener net.Listener
	serve    func(*peer) error // reads one peer until it fails
	work     sync.WaitGroup
	stop     chan struct{}

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]bool // every open connection, also before its handshake
	peers   []*peer
	dropped uint64 // by peers that are gone
}

// listen opens the socket. Go's listeners already set SO_REUSEADDR, its connections TCP_NODELAY and keep-alive.
func listen(o Options, kind string, accepted []string) (*server, error) {
	if o.QueueMessages == 0 {
		o.QueueMessages = 100_000
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = 64 << 20
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l, err := net.Listen(network(o.Address), o.Address)
	if err != nil {
		return nil, err
	}
	return &server{kind: kind, accepted: accepted, options: o, log: log, listener: l, conns: map[net.Conn]bool{},
		stop: make(chan struct{})}, nil
}

// network keeps a socket on an IPv4 address off IPv6, which net.Listen would add to 0.0.0.0.
func network(address string) string {
	if a, err := netip.ParseAddrPort(address); err == nil && a.Addr().Is4() {
		return "tcp4"
	}
	return "tcp"
}

func (s *server) start(serve func(*peer) error) {
	s.serve = serve
	s.run("zmtp accept", s.accept)
}

func (s *server) run(name string, f func()) {
	s.work.Add(1)
	spawn.Go(name, func() {
		defer s.work.Done()
		f()
	})
}

func (s *server) accept() {
	for {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors: peers that leave make room
			s.log.Warn("accepting a peer failed", "socket", s.kind, "error", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-s.stop:
				return
			}
		case s.admit(conn):
			s.run("zmtp peer", func() { s.handle(conn) })
		}
	}
}

// admit registers a connection so that close finds it.
func (s *server) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = true
	return true
}

// handle is the life of one connection.
func (s *server) handle(conn net.Conn) {
	defer s.forget(conn)
	in := newFrameReader(conn)
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if err := handshake(conn, in, s.kind, s.accepted); err != nil {
		s.log.Debug("handshake failed", "socket", s.kind, "peer", conn.RemoteAddr().String(), "error", err)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	p := &peer{conn: conn, in: in, since: time.Now(), prefixes: map[string]bool{},
		out: newQueue(s.options.QueueMessages, s.options.QueueBytes)}
	if !s.join(p) {
		return
	}
	defer s.leave(p)
	s.run("zmtp writer", func() {
		if err := p.out.run(conn); err != nil {
			s.log.Debug("writing to a peer failed", "socket", s.kind, "peer", conn.RemoteAddr().String(), "error", err)
		}
		_ = conn.Close() // ends the reader
	})
	err := s.serve(p)
	s.log.Debug("peer left", "socket", s.kind, "peer", conn.RemoteAddr().String(), "error", err)
}

func (s *server) join(p *peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.peers = append(s.peers, p)
	return true
}

func (s *server) leave(p *peer) {
	p.out.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = slices.DeleteFunc(s.peers, func(q *peer) bool { return q == p })
	p.out.mu.Lock()
	s.dropped += p.out.dropped
	p.out.mu.Unlock()
}

func (s *server) forget(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	delete(s.conns, conn)
	s.mu.Unlock()
}

// describe returns the connected peers in order of arrival and the messages lost by all peers so far.
func (s *server) describe() (peers []Peer, dropped uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped = s.dropped
	for _, p := range s.peers {
		d := p.describe()
		dropped += d.Dropped
		peers = append(peers, d)
	}
	return peers, dropped
}

// close stops listening, gives peers the linger time to take what is queued for them, and disconnects all. When it
// returns no goroutine of the socket is left.
func (s *server) close(linger time.Duration) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.work.Wait()
		return
	}
	s.closed = true
	close(s.stop)
	_ = s.listener.Close()
	for _, p := range s.peers {
		p.out.close()
	}
	busy := slices.Clone(s.peers)
	s.mu.Unlock()

	for deadline := time.Now().Add(linger); slices.ContainsFunc(busy, (*peer).unsent) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

func (p *peer) unsent() bool {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.count > 0
}

func (p *peer) describe() Peer {
	d := Peer{Address: p.conn.RemoteAddr().String(), Since: p.since}
	p.mu.Lock()
	for prefix := range p.prefixes {
		d.Prefixes = append(d.Prefixes, prefix)
	}
	p.mu.Unlock()
	slices.Sort(d.Prefixes)
	q := p.out
	q.mu.Lock()
	d.Queued, d.QueuedBytes, d.Sent, d.Dropped = q.count, q.bytes, q.sent, q.dropped
	q.mu.Unlock()
	return d
}

// pong answers a PING command: the context after its two bytes of time-to-live is sent back. The answer goes through
// the queue, because only the writer may write.
func (p *peer) pong(data []byte) {
	if len(data) >= 2 {
		p.out.offer(appendCommand(nil, "PONG", data[2:]))
	}
}
