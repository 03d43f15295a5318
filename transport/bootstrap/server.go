package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"

	"mockbench/engine"
	"mockbench/engine/spawn"
)

// Options configure a Server.
type Options struct {
	Address string        // to listen on, for example "0.0.0.0:7000"; port 0 is chosen by the system
	Engine  engine.Config // of the prefill worker
	Limit   int           // sessions, waiting ones included; also connections that have not introduced themselves
	Timeout time.Duration // of a session, without the modelled transfer
	Log     *slog.Logger  // nil: none

	Rendezvous time.Duration // how long one side waits for the other; 0: 30 s
}

// Server is where decode workers reach a prefill worker.
type Server struct {
	o        Options
	listener net.Listener
	ctx      context.Context // ends with the server
	stop     context.CancelFunc
	routines sync.WaitGroup // connections

	mu       sync.Mutex // guards what follows
	closed   bool
	strange  map[net.Conn]bool // not introduced yet; true: only to be told of the overload
	extra    bool              // one of them is true
	waiting  map[uuid.UUID]*waiter
	active   map[uuid.UUID]bool
	retired  map[uuid.UUID]error // why nobody may use the id
	byAge    []retiree
	sessions sync.WaitGroup
}

type retiree struct {
	id uuid.UUID
	at time.Time
}

// waiter is one side that waits for the other.
type waiter struct {
	id      Identity
	peer    *peer         // the destination waits; nil: the source does
	taken   chan struct{} // closed when a source has come for the destination
	refusal error         // of that source, set before taken is closed
	result  chan meeting  // has room for one
}

// meeting is what a waiting source gets.
type meeting struct {
	peer *peer
	err  error
}

// Listen opens the server of a prefill worker.
func Listen(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Rendezvous == 0 {
		o.Rendezvous = defaultRendezvous
	}
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, listener: l, strange: map[net.Conn]bool{}, waiting: map[uuid.UUID]*waiter{},
		active: map[uuid.UUID]bool{}, retired: map[uuid.UUID]error{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.routines.Add(1)
	spawn.Go("handoff listener", s.accept)
	return s, nil
}

// Addr returns the address that is listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Counts returns the number of sides that wait for the other one, and of sessions.
func (s *Server) Counts() (waiting, active int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting), len(s.active)
}

// Close ends all sessions and waits for them.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.strange {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.stop()
	err := s.listener.Close()
	s.routines.Wait()
	s.sessions.Wait()
	return err
}

func (s *Server) accept() {
	defer s.routines.Done()
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.o.Log.Warn("handoff listener", "error", err)
			select {
			case <-time.After(100 * time.Millisecond): // out of files, most likely
				continue
			case <-s.ctx.Done():
				return
			}
		}
		overloaded, ok := s.admit(conn)
		if !ok {
			_ = conn.Close()
			continue
		}
		s.routines.Add(1)
		spawn.Go("handoff destination", func() {
			defer s.routines.Done()
			s.welcome(conn, overloaded)
		})
	}
}

// admit counts a new connection. Beyond the limit one at a time may introduce itself, to be told of it.
func (s *Server) admit(conn net.Conn) (overloaded, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	overloaded = len(s.strange) >= s.o.Limit
	if s.closed || overloaded && s.extra {
		return false, false
	}
	s.strange[conn] = overloaded
	s.extra = s.extra || overloaded
	return overloaded, true
}

// welcome reads the introduction of a destination and lets it meet its source.
func (s *Server) welcome(conn net.Conn, overloaded bool) {
	_ = conn.SetReadDeadline(time.Now().Add(s.o.Rendezvous))
	r := bufio.NewReader(conn)
	id, register, err := introduction(r)
	s.mu.Lock()
	s.extra = s.extra && !s.strange[conn]
	delete(s.strange, conn)
	s.mu.Unlock()
	if err != nil {
		s.o.Log.Debug("handoff connection dropped", "from", conn.RemoteAddr(), "error", err)
		_ = conn.Close()
		return
	}
	p := newPeer(conn, r, id)
	refusal := Message(Overloaded{})
	if !overloaded {
		refusal = s.destination(p, register)
	}
	if refusal != nil {
		s.o.Log.Debug("handoff destination refused", "handoff", id.Handoff, "answer", refusal)
		_ = p.send(refusal)
		p.close()
	}
}

// introduction reads the preface and the first frame.
func introduction(r io.Reader) (id Identity, register Register, err error) {
	var head [len(preface)]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return id, register, err
	}
	if head != preface {
		return id, register, errors.New("no handoff preface of version 1")
	}
	id, m, err := readFrame(r)
	if err != nil {
		return id, register, err
	}
	register, ok := m.(Register)
	if !ok {
		err = errors.New("the first frame is no registration")
	}
	return id, register, err
}
