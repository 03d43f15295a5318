package bootstrap

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"mockbench/engine"
	"mockbench/engine/live"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// pair is a prefill and a decode worker of ours.
type pair struct {
	server          *Server
	prefill, decode *live.Worker
	address         string // where the decode worker connects
	t               *testing.T
}

func newPair(t *testing.T, cfg engine.Config, change ...func(*Options)) *pair {
	t.Helper()
	p := &pair{t: t, prefill: startWorker(t, cfg, engine.PrefillRole), decode: startWorker(t, cfg, engine.DecodeRole)}
	o := Options{Address: "127.0.0.1:0", Engine: p.prefill.Config(), Limit: 256, Timeout: time.Minute}
	for _, f := range change {
		f(&o)
	}
	var err error
	if p.server, err = Listen(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.server.Close() })
	p.address = p.server.Addr().String()
	return p
}

func startWorker(t *testing.T, cfg engine.Config, role engine.Role) *live.Worker {
	t.Helper()
	cfg.Role = role
	w, err := live.Start(t.Context(), live.Options{Name: string(role), Engine: cfg, Ranks: 1, Clock: live.NewClock(1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func vllm() engine.Config {
	c := engine.DefaultConfig(engine.VLLM)
	c.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: 5, DecodeMS: 1}
	return c
}

func newIdentity() Identity {
	return Identity{Handoff: uuid.New(), Room: 7, Request: uuid.New()}
}

// session is a handoff between two workers of ours.
type session struct {
	source, destination       *live.Transfer
	sourceErr, destinationErr chan error
	leave                     context.CancelFunc // the client of the decode worker
}

// transfer starts both sides of a handoff of a prompt.
func (p *pair) transfer(t *testing.T, id Identity, prompt, output int) *session {
	t.Helper()
	s := &session{sourceErr: make(chan error, 1), destinationErr: make(chan error, 1)}
	tokens := make([]uint32, prompt)
	var err error
	if s.source, err = p.prefill.Source(live.Request{Prompt: tokens, MaxOutput: 1, Rank: -1}, engine.ID(id.Handoff)); err != nil {
		t.Fatal(err)
	}
	if s.destination, err = p.decode.Destination(live.Request{Prompt: tokens, MaxOutput: output, Rank: -1}, engine.ID(id.Handoff)); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	s.leave = leave
	d := p.connect(t, id)
	go func() { s.destinationErr <- d.Run(ctx, s.destination) }()
	go func() { s.sourceErr <- p.server.Source(t.Context(), id, s.source) }()
	return s
}

// connect connects the decode worker.
func (p *pair) connect(t *testing.T, id Identity) *Destination {
	t.Helper()
	host, port, err := net.SplitHostPort(p.address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Connect(t.Context(), DialOptions{Host: host, Port: uint16(n), Identity: id, Backend: p.decode.Config().Backend, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// result waits for an error that must come.
func result(t *testing.T, c chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatal("the session goes on")
		return nil
	}
}

// ends takes a stream to its end.
func ends(t *testing.T, s *live.Stream) (tokens int, end live.End) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for {
		list, end, err := s.Take(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		tokens += len(list)
		if end != live.Open {
			return tokens, end
		}
	}
}

func (s *session) succeed(t *testing.T) {
	t.Helper()
	if err := result(t, s.sourceErr); err != nil {
		t.Errorf("source: %v", err)
	}
	if err := result(t, s.destinationErr); err != nil {
		t.Errorf("destination: %v", err)
	}
	if n, end := ends(t, s.source.Stream); n != 1 || end != live.Finished {
		t.Errorf("source: %d tokens, end %d", n, end)
	}
	if _, end := ends(t, s.destination.Stream); end != live.Finished {
		t.Errorf("destination: end %d", end)
	}
}

// clean waits until neither worker has anything left of any handoff.
func (p *pair) clean(t *testing.T) {
	t.Helper()
	eventually(t, "nothing is left", func() bool {
		for _, w := range []*live.Worker{p.prefill, p.decode} {
			l := w.Load()[0]
			if w.Config().Backend == engine.SGLang {
				l.ActiveBlocks = 0 // counts what is cached
			}
			if w.InFlight() != 0 || len(w.Holds()) != 0 || l.Running+l.Waiting+l.ActiveBlocks != 0 {
				return false
			}
		}
		waiting, active := p.server.Counts()
		return waiting+active == 0
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// recorder passes bytes on between a decode and a prefill worker and keeps them.
type recorder struct {
	mu   sync.Mutex
	data map[string][]byte
	over sync.WaitGroup
}

// record puts a recorder between the two workers.
func (p *pair) record() *recorder {
	r := &recorder{data: map[string][]byte{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = l.Close() })
	target := p.address
	p.address = l.Addr().String()
	r.over.Add(2)
	go func() {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", target)
		if err != nil {
			_ = from.Close()
			return
		}
		go r.pass(from, to, "decode>prefill")
		go r.pass(to, from, "prefill>decode")
	}()
	return r
}

func (r *recorder) pass(from, to net.Conn, direction string) {
	defer r.over.Done()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		r.mu.Lock()
		r.data[direction] = append(r.data[direction], buffer[:n]...)
		r.mu.Unlock()
		if n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if err != nil {
			_ = to.(*net.TCPConn).CloseWrite()
			return
		}
	}
}

// bytes returns what was sent in each direction, when both have ended.
func (r *recorder) bytes() map[string][]byte {
	r.over.Wait()
	return r.data
}

// silent reads until the end of a connection and returns how many bytes came.
func silent(t *testing.T, conn net.Conn) int {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(conn)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Error("the connection stays open")
	}
	return len(b)
}
