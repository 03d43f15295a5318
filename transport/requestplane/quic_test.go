package requestplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
	"mockbench/transport/requestplane/quicline"
)

// askQUIC sends a request to echo whose answer is expected over QUIC.
func askQUIC(t *testing.T, h requestplane.HandlerFunc) (*planetest.QUICFrontend, *requestplane.Endpoint) {
	t.Helper()
	s := listen(t, requestplane.Options{Response: requestplane.QUIC})
	e := handle(t, s, echo, h)
	f := planetest.NewQUIC(t)
	c := planetest.Dial(t, s.Addr())
	c.Send(echo.Path(), nil, f.Control("r"), []byte("hello"))
	if ack := c.Ack(); ack != "" {
		t.Fatalf("acknowledged with %q", ack)
	}
	f.Expect(quicline.Register)
	return f, e
}

func TestAnswerOverQUIC(t *testing.T) {
	f, _ := askQUIC(t, func(_ context.Context, r *requestplane.Request, s *requestplane.Stream) {
		_ = s.Accept()
		s.Data(r.Body)
		s.Data([]byte("more"))
		_ = s.Flush()
		s.Data([]byte("and more"))
		_ = s.Finish()
	})
	// The lanes are connections of their own: only within one kind of lane the order is certain.
	want := map[bool][]string{true: {"1 ", "8 hello"}, false: {"2 more", "2 and more", "2 \x81\xaecomplete_final\xc3", "4 "}}
	got := map[bool][]string{}
	for range 6 {
		frame := f.Next()
		got[f.Priority(frame)] = append(got[f.Priority(frame)], fmt.Sprint(frame.Kind, " ", string(frame.Payload)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("frames by priority (-want +got):\n%s", diff)
	}
}

func TestRefusalOverQUIC(t *testing.T) {
	f, _ := askQUIC(t, func(_ context.Context, _ *requestplane.Request, s *requestplane.Stream) {
		_ = s.Refuse(&requestplane.Failure{Reason: requestplane.Unclassified, Diagnostic: "no"})
	})
	var got struct {
		Kind, Error string
		Typed       struct{ Reason string } `json:"typed_error"`
	}
	if err := json.Unmarshal(f.Expect(quicline.Error).Payload, &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "dynamo.quic.typed_error" || got.Error != "Generate Error: no" || got.Typed.Reason != "runtime.unclassified" {
		t.Errorf("got %+v", got)
	}
}

func TestStopOverQUIC(t *testing.T) {
	causes := make(chan error, 1)
	f, e := askQUIC(t, func(ctx context.Context, _ *requestplane.Request, s *requestplane.Stream) {
		_ = s.Accept()
		<-ctx.Done()
		causes <- context.Cause(ctx)
		s.Data([]byte("late"))
		if s.Flush() == nil {
			t.Error("a frame was written after the stop")
		}
	})
	f.Say(quicline.Stop, f.Expect(quicline.Prologue))
	select {
	case cause := <-causes:
		if !errors.Is(cause, requestplane.ErrGone) {
			t.Errorf("cause %v", cause)
		}
	case <-time.After(planetest.Patience):
		t.Fatal("the handler is not told")
	}
	f.Expect(quicline.Reset)
	if err := e.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestResponsePlaneMismatch asks each way while the worker is configured for the other.
func TestResponsePlaneMismatch(t *testing.T) {
	const text = "response plane mismatch: frontend requested "
	t.Run("tcp requested", func(t *testing.T) {
		s := listen(t, requestplane.Options{Response: requestplane.QUIC})
		handle(t, s, echo, serveEcho)
		f, c := planetest.New(t), planetest.Dial(t, s.Addr())
		c.Send(echo.Path(), nil, f.Control("r", "msgpack"), nil)
		list := f.Answer().Rest()
		if len(list) != 2 || string(list[0].Header) != `{"error":"`+text+`tcp, worker configured quic"}` {
			t.Errorf("got %q", list)
		}
	})
	t.Run("quic requested", func(t *testing.T) {
		s := listen(t, requestplane.Options{})
		handle(t, s, echo, serveEcho)
		f, c := planetest.NewQUIC(t), planetest.Dial(t, s.Addr())
		c.Send(echo.Path(), nil, f.Control("r"), nil)
		f.Expect(quicline.Register)
		if got := string(f.Expect(quicline.Error).Payload); !strings.HasPrefix(got, text+"quic, worker configured tcp") {
			t.Errorf("got %q", got)
		}
	})
}
