package requestplane_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
)

// TestFrontendGivesUp ends the request in every way a frontend may, and expects the handler's context to end and
// nothing more to be written.
func TestFrontendGivesUp(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := listen(t, requestplane.Options{Registerer: registry})
	cause := make(chan error, 1)
	handle(t, s, echo, func(ctx context.Context, _ *requestplane.Request, out *requestplane.Stream) {
		_ = out.Accept()
		<-ctx.Done()
		out.Data([]byte("late"))
		if err := out.Flush(); err == nil {
			t.Error("a frame was written after the end")
		}
		_ = out.Finish() // as an answer does whose last token crosses the frontend's word
		cause <- context.Cause(ctx)
	})
	f := planetest.New(t)
	c := planetest.Dial(t, s.Addr())
	ways := map[string]func(a *planetest.Answer){
		"stop":          func(a *planetest.Answer) { a.Send(`"stop"`) },
		"kill":          func(a *planetest.Answer) { a.Send(`"kill"`) },
		"stop and kill": func(a *planetest.Answer) { a.Send(`"stop"`); a.Send(`"kill"`) },
		"unknown word":  func(a *planetest.Answer) { a.Send(`nope`) },
		"data":          func(a *planetest.Answer) { _, _ = a.Conn.Write(requestplane.AppendMessage(nil, nil, []byte("abc"))) },
		"huge length":   func(a *planetest.Answer) { _, _ = a.Conn.Write([]byte(strings.Repeat("\xff", 24))) },
		"end":           func(a *planetest.Answer) { a.Conn.CloseWrite() },
		"reset":         func(a *planetest.Answer) { a.Conn.SetLinger(0); a.Conn.Close() },
	}
	for name, end := range ways {
		c.Send(echo.Path(), nil, f.Control(f.ID(), "msgpack"), nil)
		c.Ack()
		a := f.Answer()
		if m, _ := a.Next(); string(m.Header) != `{"error":null}` {
			t.Errorf("%s: prologue %s", name, m.Header)
		}
		end(a)
		if err := <-cause; !errors.Is(err, requestplane.ErrGone) {
			t.Errorf("%s: the request ended with %v", name, err)
		}
		if name == "reset" {
			continue
		}
		begin := time.Now()
		if m, ok := a.Next(); ok {
			t.Errorf("%s: the worker went on with %q", name, m)
		}
		if took := time.Since(begin); took > planetest.Patience/4 { // half of the time that a worker waits for a frontend
			t.Errorf("%s: the worker closed after %v", name, took)
		}
	}
	eventually(t, func() bool {
		return counter(t, registry, "dynamo_component_cancellation_total") == float64(len(ways))
	})
}

func counter(t *testing.T, g prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(planetest.Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("what was expected has not happened")
		}
	}
}

// TestBlockedFrontendDoesNotHold expects a writer that the frontend holds back to let go when the frontend leaves.
func TestBlockedFrontendDoesNotHold(t *testing.T) {
	s := listen(t, requestplane.Options{})
	var written atomic.Int64
	done := make(chan error, 1)
	handle(t, s, echo, func(ctx context.Context, _ *requestplane.Request, out *requestplane.Stream) {
		err := out.Accept()
		for err == nil {
			out.Data(make([]byte, 1<<16))
			written.Add(1)
			err = out.Flush()
		}
		done <- err
	})
	f := planetest.New(t)
	c := planetest.Dial(t, s.Addr())
	c.Send(echo.Path(), nil, f.Control("r", "msgpack"), nil)
	c.Ack()
	a := f.Answer()
	for before := int64(-1); before != written.Load(); time.Sleep(50 * time.Millisecond) {
		before = written.Load()
	}
	a.Send(`"kill"`)
	select {
	case <-done:
	case <-time.After(planetest.Patience):
		t.Fatal("the writer is still blocked")
	}
}
