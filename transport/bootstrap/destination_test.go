package bootstrap

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
)

// scriptedSource is a prefill worker that does what a test says.
type scriptedSource struct {
	scripted
	transfer *live.Transfer
	err      chan error
	leave    context.CancelFunc
}

// meetSource connects a decode worker of ours to a scripted source.
func meetSource(t *testing.T, decode *live.Worker) *scriptedSource {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	id := newIdentity()
	at := l.Addr().(*net.TCPAddr)
	d, err := Connect(t.Context(), DialOptions{Host: at.IP.String(), Port: uint16(at.Port), Identity: id, Rank: 0,
		Backend: engine.VLLM, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := &scriptedSource{scripted: scripted{t: t, conn: conn, id: id}, err: make(chan error, 1)}
	head := make([]byte, len(preface))
	if _, err := io.ReadFull(conn, head); err != nil || string(head) != string(preface[:]) {
		t.Fatalf("preface %q, %v", head, err)
	}
	s.expect(Register{Role: destinationRole, Rank: 0, Order: SourceFirst, Engine: "vllm"})
	s.transfer, err = decode.Destination(live.Request{Prompt: make([]uint32, 100), MaxOutput: 5, Rank: 0}, engine.ID(id.Handoff))
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, s.leave = context.WithCancel(t.Context())
	go func() { s.err <- d.Run(ctx, s.transfer) }()
	return s
}

func (s *scriptedSource) reserve() {
	s.t.Helper()
	s.send(Registered{})
	s.send(action(s.id, 1, ReserveDestination))
	s.expect(ActionAck{1, Accepted}, DestinationReserved{Handoff: s.id.Handoff, Tokens: 128})
}

// TestDestination plays a source, a good one and bad ones. Unless the handoff succeeds nothing stays reserved.
func TestDestination(t *testing.T) {
	cfg := vllm()
	cfg.EnablePrefixCaching = false
	decode := startWorker(t, cfg, engine.DecodeRole)
	fails := func(s *scriptedSource, text string) {
		s.t.Helper()
		if err := result(s.t, s.err); err == nil || !strings.Contains(err.Error(), text) {
			s.t.Errorf("got %v, want %q", err, text)
		}
	}
	for name, play := range map[string]func(s *scriptedSource){
		"success": func(s *scriptedSource) {
			s.reserve()
			s.send(held(s.id, 100))
			s.send(action(s.id, 3, ActivateDestination))
			s.expect(ActionAck{3, Applied})
			if n, end := ends(s.t, s.transfer.Stream); n != 5 || end != live.Finished {
				s.t.Errorf("%d tokens, end %d", n, end)
			}
			s.send(Complete{})
			if err := result(s.t, s.err); err != nil {
				s.t.Error(err)
			}
			s.expectEnd()
		},
		"answers again": func(s *scriptedSource) {
			s.reserve()
			s.send(action(s.id, 1, ReserveDestination))
			s.expect(ActionAck{1, Accepted})
			s.send(action(s.id, 1, ActivateDestination))
			fails(s, "came again with other content")
		},
		"foreign actions": func(s *scriptedSource) {
			s.reserve()
			other := newIdentity()
			s.send(action(other, 2, ActivateDestination))
			s.expect(ActionAck{2, Failed("the action belongs to a different handoff")})
			s.send(action(s.id, 3, ReleaseSource))
			s.expect(ActionAck{3, Failed("not an action of a destination: ReleaseSource")})
			s.send(action(s.id, 4, CancelDestination))
			s.expect(ActionAck{4, Applied})
			s.send(action(s.id, 5, ActivateDestination))
			s.expect(ActionAck{5, Failed("the destination has no reservation")})
			s.send(Abort{"enough"})
			fails(s, "enough")
		},
		"too many actions": func(s *scriptedSource) {
			s.reserve()
			for i := range uint64(maxActions) {
				s.send(action(s.id, 10+i, ReleaseSource))
			}
			fails(s, "more than 16 actions")
		},
		"early completion": func(s *scriptedSource) {
			s.reserve()
			s.send(Complete{})
			fails(s, "completion before the activation")
		},
		"fact before the registration": func(s *scriptedSource) {
			s.send(held(s.id, 100))
			fails(s, "before the registration")
		},
		"refusals": func(s *scriptedSource) {
			s.send(ProtocolError{"go away"})
			fails(s, "go away")
		},
		"overload": func(s *scriptedSource) {
			s.send(Overloaded{})
			fails(s, "overloaded")
		},
		"end of the connection": func(s *scriptedSource) {
			s.reserve()
			_ = s.conn.Close()
			fails(s, "source disconnected")
		},
		"impossible bandwidth": func(s *scriptedSource) {
			s.reserve()
			h, bad := held(s.id, 100), decimal(-1)
			h.Timing.BandwidthGBps = &bad
			s.send(h)
			fails(s, "invalid handoff transfer bandwidth -1")
		},
		"client leaves": func(s *scriptedSource) {
			s.reserve()
			s.leave()
			fails(s, "context canceled")
			s.expectEnd()
		},
		"client leaves while decoding": func(s *scriptedSource) {
			s.reserve()
			s.send(action(s.id, 3, ActivateDestination))
			s.expect(ActionAck{3, Applied})
			s.leave()
			fails(s, "context canceled")
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(meetSource(t, decode))
			eventually(t, "nothing is left", func() bool {
				l := decode.Load()[0]
				return decode.InFlight() == 0 && len(decode.Holds()) == 0 && l.Running+l.Waiting+l.ActiveBlocks == 0
			})
		})
	}
}

func TestConnectionErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	o := DialOptions{Host: "127.0.0.1", Port: port, Identity: newIdentity(), Backend: engine.VLLM}
	if _, err := Connect(t.Context(), o); err == nil || err.Error() != "bootstrap connection failed: Connection refused (os error 111)" {
		t.Errorf("got %v", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	if _, err := Connect(ctx, o); err == nil || !strings.Contains(err.Error(), "bootstrap connect timeout to 127.0.0.1:") {
		t.Errorf("got %v", err)
	}
}

func TestIPv6Hosts(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Logf("no IPv6 here: %v", err)
		return
	}
	defer l.Close()
	for _, host := range []string{"::1", "[::1]"} {
		d, err := Connect(t.Context(), DialOptions{Host: host, Port: uint16(l.Addr().(*net.TCPAddr).Port), Identity: newIdentity()})
		if err != nil {
			t.Fatal(err)
		}
		d.Abandon()
	}
}

// FuzzFrame reads frames of anybody. What can be read is the same after it was written and read again.
func FuzzFrame(f *testing.F) {
	id := newIdentity()
	bandwidth, bytes := decimal(1.5), uint64(131072)
	for _, m := range []Message{Register{Role: destinationRole, Order: SourceFirst, Engine: "vllm"}, Registered{}, Complete{}, Overloaded{},
		action(id, 1, ReserveDestination), ActionAck{1, Accepted}, ActionAck{2, Failed("x")}, Abort{"a"}, ProtocolError{"b"},
		SourceHeld{id.Handoff, Timing{FullPrompt, 92, &bytes, &bandwidth}}, DestinationReserved{id.Handoff, 128}} {
		f.Add(appendFrame(nil, id, m))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		id, m, err := readFrame(bufio.NewReader(strings.NewReader(string(data))))
		if err != nil {
			return
		}
		again := appendFrame(nil, id, m)
		if len(again) > 4+MaxFrame {
			return // escapes may need more room than what was read
		}
		id2, m2, err := readFrame(strings.NewReader(string(again)))
		if err != nil || id2 != id {
			t.Fatalf("%q: %v", again, err)
		}
		if third := appendFrame(nil, id2, m2); string(third) != string(again) {
			t.Errorf("%q became %q", again, third)
		}
	})
}
