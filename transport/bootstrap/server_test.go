package bootstrap

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
	"mockbench/engine/live"
)

// scripted is a destination that does what a test says.
type scripted struct {
	t    *testing.T
	conn net.Conn
	id   Identity
}

func (p *pair) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func introduce(t *testing.T, p *pair, id Identity) *scripted {
	t.Helper()
	s := &scripted{t: t, conn: p.dial(t), id: id}
	_, _ = s.conn.Write(preface[:])
	s.send(Register{Role: destinationRole, Order: SourceFirst, Engine: "vllm"})
	return s
}

func (s *scripted) send(m Message) { _, _ = s.conn.Write(appendFrame(nil, s.id, m)) }

// expect reads frames and compares them, then the end of the connection if that is asked for.
func (s *scripted) expect(want ...Message) {
	s.t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(patience))
	for _, w := range want {
		id, m, err := readFrame(s.conn)
		if err != nil {
			s.t.Fatalf("reading %T: %v", w, err)
		}
		if d := cmp.Diff(w, m); d != "" || id != s.id {
			s.t.Errorf("identity %+v (-want +got)\n%s", id, d)
		}
	}
}

func (s *scripted) expectEnd() {
	s.t.Helper()
	if n := silent(s.t, s.conn); n > 0 {
		s.t.Errorf("%d bytes more", n)
	}
}

// source starts the prefill side alone.
func (p *pair) source(t *testing.T, ctx context.Context, id Identity) (*live.Transfer, chan error) {
	t.Helper()
	s, err := p.prefill.Source(live.Request{Prompt: make([]uint32, 100), MaxOutput: 1, Rank: -1}, engine.ID(id.Handoff))
	if err != nil {
		t.Fatal(err)
	}
	c := make(chan error, 1)
	go func() { c <- p.server.Source(ctx, id, s) }()
	return s, c
}

func expectError(t *testing.T, c chan error, want error) {
	t.Helper()
	if err := result(t, c); err == nil || err.Error() != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
}

func held(id Identity, tokens int) SourceHeld {
	return SourceHeld{Handoff: id.Handoff, Timing: Timing{Mode: FullPrompt, Tokens: tokens}}
}

func action(id Identity, n uint64, k ActionKind) ActionRequest {
	return ActionRequest{ID: n, Kind: k, Handoff: id.Handoff}
}

func TestHandoffs(t *testing.T) {
	sglang := engine.DefaultConfig(engine.SGLang)
	sglang.Timing, sglang.EnablePrefixCaching = vllm().Timing, false
	for name, cfg := range map[string]engine.Config{"vllm": vllm(), "sglang": sglang} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, cfg)
			var list []*session
			for i := range 20 {
				list = append(list, p.transfer(t, newIdentity(), 50+10*i, 3))
			}
			for _, s := range list {
				s.succeed(t)
			}
			p.clean(t)
		})
	}
}

// TestFailures plays a destination that does not do its part. The source lets go of everything each time.
func TestFailures(t *testing.T) {
	p := newPair(t, vllm())
	begin := func(t *testing.T) (*scripted, *live.Transfer, chan error) {
		id := newIdentity()
		d := introduce(t, p, id)
		s, c := p.source(t, t.Context(), id)
		d.expect(Registered{}, held(id, 100), action(id, 1, ReserveDestination))
		return d, s, c
	}
	for name, play := range map[string]func(t *testing.T){
		"no room": func(t *testing.T) {
			d, _, c := begin(t)
			d.send(ActionAck{1, Failed("no capacity")})
			d.expect(action(d.id, 3, CancelDestination))
			d.send(ActionAck{3, Applied})
			d.expect(Abort{"handoff canceled"})
			d.expectEnd()
			expectError(t, c, errCancelled)
		},
		"no activation": func(t *testing.T) {
			d, _, c := begin(t)
			d.send(ActionAck{1, Accepted})
			d.send(DestinationReserved{Handoff: d.id.Handoff, Tokens: 128})
			d.expect(action(d.id, 3, ActivateDestination))
			d.send(ActionAck{3, Failed("too late")})
			d.expect(action(d.id, 5, CancelDestination))
			d.send(ActionAck{5, Noop})
			d.expect(Abort{"handoff canceled"})
			expectError(t, c, errCancelled)
		},
		"abort": func(t *testing.T) {
			d, _, c := begin(t)
			d.send(Abort{"peer <gave> up"})
			d.expect(Abort{"peer <gave> up"})
			d.expectEnd()
			expectError(t, c, errors.New("peer <gave> up"))
		},
		"disconnect": func(t *testing.T) {
			d, _, c := begin(t)
			_ = d.conn.Close()
			expectError(t, c, errDisconnected)
		},
		"wrong outcome": func(t *testing.T) {
			d, _, c := begin(t)
			d.send(ActionAck{1, Applied})
			d.expect(Abort{"invalid handoff action outcome Applied"})
			expectError(t, c, errors.New("invalid handoff action outcome Applied"))
		},
		"changed identity": func(t *testing.T) {
			d, _, c := begin(t)
			d.id.Room++
			d.send(ActionAck{1, Accepted})
			if err := result(t, c); !errors.Is(err, errProtocol) {
				t.Errorf("got %v", err)
			}
		},
		"message of a source": func(t *testing.T) {
			d, _, c := begin(t)
			d.send(Complete{})
			expectError(t, c, errUnexpected)
		},
		"garbage": func(t *testing.T) {
			d, _, c := begin(t)
			_, _ = d.conn.Write([]byte("\x05\x00\x00\x00hello"))
			if err := result(t, c); !errors.Is(err, errProtocol) {
				t.Errorf("got %v", err)
			}
		},
		"abort in the middle of the prompt": func(t *testing.T) {
			id := newIdentity()
			s, c := p.source(t, t.Context(), id)
			d := introduce(t, p, id)
			d.expect(Registered{})
			eventually(t, "the pass runs", func() bool {
				var now engine.Snapshot
				return p.prefill.Inspect(0, &now) == nil && now.Load.ActiveBlocks > 0
			})
			d.send(Abort{"x"})
			expectError(t, c, errors.New("x"))
			if n, end := ends(t, s.Stream); n != 1 || end != live.Finished {
				t.Errorf("%d tokens, end %d: a token that is computed reaches its client", n, end)
			}
		},
		"client of the source leaves": func(t *testing.T) {
			id := newIdentity()
			d := introduce(t, p, id)
			ctx, leave := context.WithCancel(t.Context())
			_, c := p.source(t, ctx, id)
			d.expect(Registered{}, held(id, 100))
			leave()
			expectError(t, c, errSourceGone)
			d.expect(action(id, 1, ReserveDestination), Abort{"source request was canceled"})
			d.expectEnd()
		},
	} {
		t.Run(name, func(t *testing.T) { play(t); p.clean(t) })
	}
}

func TestRendezvous(t *testing.T) {
	p := newPair(t, vllm(), func(o *Options) { o.Rendezvous = 100 * time.Millisecond })
	for name, play := range map[string]func(t *testing.T){
		"no source": func(t *testing.T) {
			d := introduce(t, p, newIdentity())
			d.expect(ProtocolError{errRendezvous.Error()})
			d.expectEnd()
		},
		"no destination": func(t *testing.T) {
			_, c := p.source(t, t.Context(), newIdentity())
			expectError(t, c, errRendezvous)
		},
		"destination left early": func(t *testing.T) {
			id := newIdentity()
			d := introduce(t, p, id)
			eventually(t, "the destination waits", func() bool { n, _ := p.server.Counts(); return n == 1 })
			_ = d.conn.Close()
			eventually(t, "the destination is gone", func() bool { n, _ := p.server.Counts(); return n == 0 })
			_, c := p.source(t, t.Context(), id)
			expectError(t, c, errLeftEarly)
		},
		"source left early": func(t *testing.T) {
			id := newIdentity()
			ctx, leave := context.WithCancel(t.Context())
			_, c := p.source(t, ctx, id)
			leave()
			expectError(t, c, errSourceEarly)
			introduce(t, p, id).expect(ProtocolError{errSourceEarly.Error()})
		},
		"silence": func(t *testing.T) {
			if n := silent(t, p.dial(t)); n > 0 {
				t.Errorf("%d bytes", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { play(t); p.clean(t) })
	}
}

func TestSidesThatDoNotFit(t *testing.T) {
	p := newPair(t, vllm())
	other := func(id Identity) Identity { id.Room++; return id }
	t.Run("the source waits", func(t *testing.T) {
		id := newIdentity()
		_, c := p.source(t, t.Context(), id)
		eventually(t, "the source waits", func() bool { n, _ := p.server.Counts(); return n == 1 })
		introduce(t, p, other(id)).expect(ProtocolError{errMismatch.Error()})
		expectError(t, c, errMismatch)
	})
	t.Run("the destination waits", func(t *testing.T) {
		id := newIdentity()
		d := introduce(t, p, other(id))
		eventually(t, "the destination waits", func() bool { n, _ := p.server.Counts(); return n == 1 })
		_, c := p.source(t, t.Context(), id)
		expectError(t, c, errMismatch)
		d.expect(ProtocolError{errMismatch.Error()})
	})
	t.Run("another engine", func(t *testing.T) {
		id := newIdentity()
		d := &scripted{t: t, conn: p.dial(t), id: id}
		_, _ = d.conn.Write(preface[:])
		d.send(Register{Role: destinationRole, Order: DestinationFirst, Engine: "sglang"})
		d.expect(ProtocolError{errMismatch.Error()})
		_, c := p.source(t, t.Context(), id)
		expectError(t, c, errMismatch)
	})
	t.Run("second destination", func(t *testing.T) {
		id := newIdentity()
		first := introduce(t, p, id)
		eventually(t, "the destination waits", func() bool { n, _ := p.server.Counts(); return n == 1 })
		introduce(t, p, id).expect(ProtocolError{errDuplicate.Error()})
		_, c := p.source(t, t.Context(), id)
		first.expect(Registered{})
		_, again := p.source(t, t.Context(), id)
		expectError(t, again, errRetired)
		introduce(t, p, id).expect(ProtocolError{errRetired.Error()})
		_ = first.conn.Close()
		expectError(t, c, errDisconnected)
		introduce(t, p, id).expect(ProtocolError{errRetired.Error()})
	})
	p.clean(t)
}

func TestLimits(t *testing.T) {
	p := newPair(t, vllm(), func(o *Options) { o.Limit = 2 })
	ctx, leave := context.WithCancel(t.Context())
	var errs []chan error
	for range 2 {
		_, c := p.source(t, ctx, newIdentity())
		errs = append(errs, c)
	}
	eventually(t, "two sources wait", func() bool { n, _ := p.server.Counts(); return n == 2 })
	_, c := p.source(t, t.Context(), newIdentity())
	expectError(t, c, errLimit)
	introduce(t, p, newIdentity()).expect(Overloaded{})
	leave()
	for _, c := range errs {
		expectError(t, c, errSourceEarly)
	}

	strangers := []net.Conn{p.dial(t), p.dial(t)}
	known := func() int { p.server.mu.Lock(); defer p.server.mu.Unlock(); return len(p.server.strange) }
	eventually(t, "two strangers", func() bool { return known() == 2 })
	extra := &scripted{t: t, conn: p.dial(t), id: newIdentity()}
	eventually(t, "one more", func() bool { return known() == 3 })
	if n := silent(t, p.dial(t)); n > 0 {
		t.Errorf("%d bytes beyond the limit", n)
	}
	_, _ = extra.conn.Write(preface[:])
	extra.send(Register{Role: destinationRole, Order: SourceFirst, Engine: "vllm"})
	extra.expect(Overloaded{})
	for _, c := range strangers {
		_ = c.Close()
	}
	eventually(t, "no strangers", func() bool { return known() == 0 })
	p.transfer(t, newIdentity(), 100, 2).succeed(t)
	p.clean(t)
}

// TestSessionTimeout has a destination that never answers: what the source holds is released.
func TestSessionTimeout(t *testing.T) {
	p := newPair(t, vllm(), func(o *Options) { o.Timeout = 100 * time.Millisecond })
	id := newIdentity()
	d := introduce(t, p, id)
	_, c := p.source(t, t.Context(), id)
	d.expect(Registered{}, held(id, 100), action(id, 1, ReserveDestination), Abort{errTimeout.Error()})
	expectError(t, c, errTimeout)
	p.clean(t)
}

// TestTransferExtendsTheSession has a transfer that alone takes longer than a session may.
func TestTransferExtendsTheSession(t *testing.T) {
	for _, mode := range []string{"full_prompt", "destination_missing"} {
		cfg := vllm()
		cfg.KVTransferBandwidth, cfg.KVTransferBytesPerToken, cfg.KVTransferTimingMode = 1, 8_000_000, mode
		p := newPair(t, cfg, func(o *Options) { o.Timeout = 400 * time.Millisecond })
		begin := time.Now()
		p.transfer(t, newIdentity(), 100, 1).succeed(t)
		if took := time.Since(begin); took < 800*time.Millisecond {
			t.Errorf("%s: took %v, the transfer alone takes 800 ms", mode, took)
		}
	}
}

func TestClosingEndsSessions(t *testing.T) {
	p := newPair(t, vllm())
	id, late := newIdentity(), newIdentity()
	d := introduce(t, p, id)
	_, c := p.source(t, t.Context(), id)
	d.expect(Registered{}, held(id, 100), action(id, 1, ReserveDestination))
	waiting := introduce(t, p, newIdentity())
	_, alone := p.source(t, t.Context(), late)
	stranger := p.dial(t)
	eventually(t, "two wait", func() bool { n, _ := p.server.Counts(); return n == 2 })
	if err := p.server.Close(); err != nil {
		t.Error(err)
	}
	d.expect(Abort{errStopping.Error()})
	expectError(t, c, errStopping)
	waiting.expect(ProtocolError{errShutdown.Error()})
	expectError(t, alone, errShutdown)
	silent(t, stranger)
	_, after := p.source(t, t.Context(), newIdentity())
	expectError(t, after, errShutdown)
	p.clean(t)
}
