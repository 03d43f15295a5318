package requestplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
)

var echo = requestplane.Name{Namespace: "n/s", Component: "c", Endpoint: "e", Instance: 10}

func listen(t *testing.T, o requestplane.Options) *requestplane.Server {
	t.Helper()
	o.Host = "127.0.0.1"
	s, err := requestplane.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func handle(t *testing.T, s *requestplane.Server, n requestplane.Name, h requestplane.HandlerFunc) *requestplane.Endpoint {
	t.Helper()
	e, err := s.Handle(n, h)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// serveEcho answers with the request's body as the only frame.
func serveEcho(_ context.Context, r *requestplane.Request, s *requestplane.Stream) {
	if s.Accept() != nil {
		return
	}
	s.Data(r.Body)
	_ = s.Finish()
}

func expectEcho(t *testing.T, a *planetest.Answer, id, body string) {
	t.Helper()
	if want := fmt.Sprintf(`{"subject":%q,"stream_type":"response"}`, planetest.Subject(id)); string(a.Introduction.Header) != want {
		t.Errorf("introduced as %s, want %s", a.Introduction.Header, want)
	}
	var got []string
	for _, m := range a.Rest() {
		got = append(got, string(m.Header)+string(m.Body))
	}
	want := []string{`{"error":null}`, body, "\x81\xaecomplete_final\xc3", `"sentinel"`}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPipelinedRequestsAreAcknowledgedInOrder(t *testing.T) {
	s := listen(t, requestplane.Options{})
	e := handle(t, s, echo, serveEcho)
	f := planetest.New(t)
	c := planetest.Dial(t, s.Addr())
	const n = 20
	var all []byte
	for i := range n {
		path := echo.Path()
		if i%4 == 3 {
			path = fmt.Sprint("unknown-", i)
		}
		all = append(all, planetest.Frame(path, nil, requestplane.AppendMessage(nil, f.Control(fmt.Sprint("r", i), "msgpack"), []byte("\xc0")))...)
	}
	if _, err := c.Write(all); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		want := ""
		if i%4 == 3 {
			want = fmt.Sprint("Server unavailable: unknown endpoint unknown-", i)
		}
		if got := c.Ack(); got != want {
			t.Errorf("acknowledgement %d is %q, want %q", i, got, want)
		}
	}
	for range n - n/4 {
		if list := f.Answer().Rest(); len(list) != 4 {
			t.Errorf("an answer has %d messages, want 4", len(list))
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), planetest.Patience)
	defer stop()
	if err := e.Wait(ctx); err != nil || e.Active() != 0 {
		t.Errorf("%d requests are active after all answers: %v", e.Active(), err)
	}
}

func TestWaitingRequestsRunFirstComeFirstServed(t *testing.T) {
	s := listen(t, requestplane.Options{Limits: requestplane.EngineLimits(1, 2)})
	release := make(chan struct{})
	handle(t, s, echo, func(ctx context.Context, r *requestplane.Request, out *requestplane.Stream) {
		<-release
		serveEcho(ctx, r, out)
	})
	f := planetest.New(t)
	c := planetest.Dial(t, s.Addr())
	for i := range 4 {
		id := fmt.Sprint("r", i)
		c.Send(echo.Path(), nil, f.Control(id, "msgpack"), []byte(id))
		want := ""
		if i == 3 {
			want = "Server overloaded: worker at capacity"
		}
		if got := c.Ack(); got != want {
			t.Errorf("request %d: acknowledged %q, want %q", i, got, want)
		}
	}
	if running, waiting := s.Load(); running != 1 || waiting != 2 {
		t.Errorf("%d requests run and %d wait, want 1 and 2", running, waiting)
	}
	for i := range 3 {
		release <- struct{}{}
		expectEcho(t, f.Answer(), fmt.Sprint("r", i), fmt.Sprint("r", i))
	}
}

func TestRemovedEndpointDrains(t *testing.T) {
	s := listen(t, requestplane.Options{})
	release := make(chan struct{})
	e := handle(t, s, echo, func(ctx context.Context, r *requestplane.Request, out *requestplane.Stream) {
		<-release
		serveEcho(ctx, r, out)
	})
	f := planetest.New(t)
	c := planetest.Dial(t, s.Addr())
	c.Send(echo.Path(), nil, f.Control("r", "msgpack"), []byte("x"))
	c.Ack()
	e.Remove()
	c.Send(echo.Path(), nil, f.Control("r2", "msgpack"), []byte("x"))
	if got := c.Ack(); !strings.HasPrefix(got, "Server unavailable: unknown endpoint") {
		t.Errorf("a removed endpoint is acknowledged with %q", got)
	}
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if err := e.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a running request ended with %v", err)
	}
	close(release)
	expectEcho(t, f.Answer(), "r", "x")
	if err := e.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHandleRefusesATakenPath(t *testing.T) {
	s := listen(t, requestplane.Options{})
	handle(t, s, echo, serveEcho)
	if _, err := s.Handle(echo, requestplane.HandlerFunc(serveEcho)); err == nil {
		t.Error("the same path was accepted twice")
	}
}

// TestUndecodableRequestsAreAnswered sends requests with something wrong in them. Whoever says where an answer is
// expected gets one.
func TestUndecodableRequestsAreAnswered(t *testing.T) {
	s := listen(t, requestplane.Options{})
	handle(t, s, echo, func(context.Context, *requestplane.Request, *requestplane.Stream) {
		t.Error("an undecodable request reached the handler")
	})
	f := planetest.New(t)
	c := planetest.Dial(t, s.Addr())
	change := func(from, to string) []byte {
		return []byte(strings.Replace(string(f.Control("r", "msgpack")), from, to, 1))
	}
	for name, control := range map[string][]byte{
		"unknown codec":      f.Control("r", "cbor"),
		"other context":      change(`\"context\":\"r\"`, `\"context\":\"q\"`),
		"other stream":       change(`\"stream_type\":\"response\"`, `\"stream_type\":\"request\"`),
		"number as id":       change(`"id":"r"`, `"id":7`),
		"no id":              change(`"id":"r",`, ``),
		"other request type": change(`single_in`, `none`),
	} {
		c.Send(echo.Path(), nil, control, []byte("\xc0"))
		if got := c.Ack(); got != "" {
			t.Errorf("%s: acknowledged %q", name, got)
		}
		list := f.Answer().Rest()
		if len(list) != 2 || !strings.Contains(string(list[0].Header), `"class":"InvalidRequest"`) {
			t.Errorf("%s: answered %q", name, list)
		}
	}
	for name, control := range map[string][]byte{
		"no JSON":           []byte("{nope"),
		"no address":        []byte(`{"id":"x"}`),
		"unknown transport": change("tcp_server", "zzz"),
		"name as address":   change("127.0.0.1", "localhost"),
	} {
		c.Send(echo.Path(), nil, control, []byte("\xc0"))
		if got := c.Ack(); !strings.HasPrefix(got, "Server unavailable:") {
			t.Errorf("%s: acknowledged %q", name, got)
		}
	}
	if _, err := c.Write(planetest.Frame(echo.Path(), nil, []byte("half a message"))); err != nil {
		t.Fatal(err)
	}
	if got := c.Ack(); !strings.HasPrefix(got, "Server unavailable:") {
		t.Errorf("half a message: acknowledged %q", got)
	}
}

// TestGarbage writes what no frontend would, and expects the server to serve the next one.
func TestGarbage(t *testing.T) {
	s := listen(t, requestplane.Options{})
	handle(t, s, echo, serveEcho)
	random := make([]byte, 1<<20)
	rand.New(rand.NewSource(1)).Read(random)
	for _, bytes := range [][]byte{
		random,
		{0, 1},
		{0xff, 0xff},
		[]byte("\x00\x01p\x00\x00\xff\xff\xff\xff"),
		planetest.Frame(echo.Path(), nil, []byte(strings.Repeat("\x80\x00\x00\x00\x00\x00\x00\x00", 3))),
		[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		nil,
	} {
		c := planetest.Dial(t, s.Addr())
		_, _ = c.Write(bytes) // the server may have closed the connection already
		c.Close()
	}
	half := planetest.Dial(t, s.Addr()) // stays open in the middle of a frame
	_, _ = half.Write([]byte{0, 9, 'h'})

	f := planetest.New(t)
	c := planetest.Dial(t, s.Addr())
	c.Send(echo.Path(), []byte("{"), f.Control("r", "msgpack"), []byte("ok"))
	if got := c.Ack(); got != "" {
		t.Errorf("acknowledged %q", got)
	}
	expectEcho(t, f.Answer(), "r", "ok")
}

func TestTooLargeFrameIsRefusedUnread(t *testing.T) {
	s := listen(t, requestplane.Options{MaxMessage: 100})
	c := planetest.Dial(t, s.Addr())
	if _, err := c.Write([]byte("\x00\x01p\x00\x02{}\x00\x00\x00\x5a")); err != nil { // 8 + 1 + 2 + 90
		t.Fatal(err)
	}
	if got, want := c.Ack(), "Read error: message too large: 101 bytes (max: 100 bytes)"; got != want {
		t.Errorf("acknowledged %q, want %q", got, want)
	}
	if !c.Closed() {
		t.Error("the connection is still open")
	}
}

func TestCloseBreaksOff(t *testing.T) {
	s := listen(t, requestplane.Options{})
	handle(t, s, echo, func(ctx context.Context, _ *requestplane.Request, out *requestplane.Stream) {
		_ = out.Accept()
		<-ctx.Done()
	})
	f := planetest.New(t)
	c := planetest.Dial(t, s.Addr())
	c.Send(echo.Path(), nil, f.Control("r", "msgpack"), nil)
	c.Ack()
	f.Answer()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if !c.Closed() {
		t.Error("the request connection is still open")
	}
}

func TestPrologueOfARefusal(t *testing.T) {
	s := listen(t, requestplane.Options{})
	long := strings.Repeat("é", 3000)
	handle(t, s, echo, func(_ context.Context, _ *requestplane.Request, out *requestplane.Stream) {
		_ = out.Refuse(&requestplane.Failure{Reason: requestplane.EngineShutdown, Diagnostic: long, Public: "<gone> & \"away\""})
	})
	f := planetest.New(t)
	c := planetest.Dial(t, s.Addr())
	c.Send(echo.Path(), nil, f.Control("r", "json"), nil)
	c.Ack()
	list := f.Answer().Rest()
	var p struct {
		Error string
		Typed struct {
			Type   map[string]string `json:"error_type"`
			Reason string
			Public struct{ Message string }
			Diag   string `json:"diagnostic"`
		} `json:"typed_error"`
	}
	if err := json.Unmarshal(list[0].Header, &p); err != nil || len(list) != 2 {
		t.Fatalf("%q: %v", list, err)
	}
	if p.Typed.Type["Backend"] != "EngineShutdown" || p.Typed.Reason != "backend.engine_shutdown" ||
		p.Typed.Public.Message != "<gone> & \"away\"" {
		t.Errorf("prologue %+v", p)
	}
	if n := len(p.Typed.Diag); n > 4096 || !strings.HasSuffix(p.Typed.Diag, "é...[truncated]") {
		t.Errorf("the long text has %d bytes and ends in %q", n, p.Typed.Diag[n-20:])
	}
}

func TestResolveHost(t *testing.T) {
	for host, want := range map[string]string{"127.0.0.1": "127.0.0.1", "[::1]": "::1", " ::1 ": "::1"} {
		bind, advertise, err := requestplane.ResolveHost(host)
		if err != nil || bind != advertise || bind.String() != want {
			t.Errorf("%q: %v, %v, %v, want %s", host, bind, advertise, err, want)
		}
	}
	for _, host := range []string{"0.0.0.0", "::", ""} {
		bind, advertise, err := requestplane.ResolveHost(host)
		if err != nil || advertise.IsUnspecified() || !bind.IsValid() || bind.Is4() != advertise.Is4() {
			t.Errorf("%q: %v, %v, %v", host, bind, advertise, err)
		}
	}
	if _, _, err := requestplane.ResolveHost("no-such-interface"); err == nil {
		t.Error("an unknown interface was accepted")
	}
}
