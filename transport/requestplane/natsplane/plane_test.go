package natsplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"mockbench/transport/embeddednats"
	"mockbench/transport/natsconn"
	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var generate = requestplane.Name{Namespace: "dynamo", Component: "backend", Endpoint: "generate", Instance: 0x44624b2227a8eb9b}

// plane is a server under test with a NATS server and a frontend of its own.
type plane struct {
	*Server
	broker   *embeddednats.Server
	client   *nats.Conn // of the frontend
	frontend *planetest.Frontend
}

func startBroker(t *testing.T, port int) *embeddednats.Server {
	t.Helper()
	broker, err := embeddednats.Start(embeddednats.Options{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return broker
}

func dial(t *testing.T, broker *embeddednats.Server) *nats.Conn {
	t.Helper()
	settings, err := natsconn.FromEnvironment(func(name string) string { return map[string]string{"NATS_SERVER": broker.URL()}[name] })
	if err != nil {
		t.Fatal(err)
	}
	c, err := natsconn.Connect(t.Context(), settings, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newPlane(t *testing.T, limits requestplane.Limits) *plane {
	t.Helper()
	broker := startBroker(t, 0)
	s, err := Open(dial(t, broker), requestplane.Options{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &plane{s, broker, dial(t, broker), planetest.New(t)}
}

func (p *plane) handle(t *testing.T, n requestplane.Name, h requestplane.HandlerFunc) *requestplane.Endpoint {
	t.Helper()
	e, err := p.Handle(n, h)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// serveEcho answers with the body of the request.
func serveEcho(_ context.Context, r *requestplane.Request, s *requestplane.Stream) {
	if s.Accept() == nil {
		s.Data(r.Body)
		_ = s.Finish()
	}
}

func waitFor(release <-chan struct{}) requestplane.HandlerFunc {
	return func(ctx context.Context, r *requestplane.Request, s *requestplane.Stream) {
		<-release
		serveEcho(ctx, r, s)
	}
}

// ask sends a message and returns the reply.
func (p *plane) ask(t *testing.T, m *nats.Msg) string {
	t.Helper()
	reply, err := p.client.RequestMsg(m, planetest.Patience)
	if err != nil {
		t.Fatalf("%s: %v", m.Subject, err)
	}
	return string(reply.Data)
}

// send sends a request whose id and body are id, and returns its acknowledgement.
func (p *plane) send(t *testing.T, to requestplane.Name, h nats.Header, id string) string {
	t.Helper()
	payload := requestplane.AppendMessage(nil, p.frontend.Control(id, "msgpack"), []byte(id))
	return p.ask(t, &nats.Msg{Subject: to.Subject(), Header: h, Data: payload})
}

func (p *plane) expectEcho(t *testing.T, body string) {
	t.Helper()
	list := p.frontend.Answer().Rest()
	if len(list) != 4 || string(list[1].Body) != body {
		t.Errorf("the answer is %q, want a prologue, %q, the end and the sentinel", list, body)
	}
}

// eventuallyUnknown waits until the server knows no subscriber of a subject.
func (p *plane) eventuallyUnknown(t *testing.T, subject string) {
	t.Helper()
	for deadline := time.Now().Add(planetest.Patience); ; time.Sleep(2 * time.Millisecond) {
		_, err := p.client.Request(subject, nil, planetest.Patience)
		if errors.Is(err, nats.ErrNoResponders) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s still has subscribers: %v", subject, err)
		}
	}
}

func TestManyRequests(t *testing.T) {
	p := newPlane(t, requestplane.Limits{})
	other := generate
	other.Instance = 10
	p.handle(t, generate, serveEcho)
	p.handle(t, other, func(_ context.Context, r *requestplane.Request, s *requestplane.Stream) {
		t.Error("the wrong endpoint is asked")
	})
	const n = 100
	var group sync.WaitGroup
	for i := range n {
		payload := requestplane.AppendMessage(nil, p.frontend.Control(fmt.Sprint("r", i), "msgpack"), []byte("x"))
		group.Go(func() {
			if reply, err := p.client.Request(generate.Subject(), payload, planetest.Patience); err != nil || len(reply.Data) > 0 {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	for range n {
		p.expectEcho(t, "x")
	}
	group.Wait()
	if _, err := p.Handle(generate, requestplane.HandlerFunc(serveEcho)); err == nil {
		t.Error("an endpoint was installed twice")
	}
}

func TestBadRequests(t *testing.T) {
	p := newPlane(t, requestplane.Limits{})
	e := p.handle(t, generate, serveEcho)
	for _, payload := range []string{"", "nonsense", string(requestplane.AppendMessage(nil, []byte("{}"), nil))} {
		if got := p.ask(t, &nats.Msg{Subject: generate.Subject(), Data: []byte(payload)}); !strings.HasPrefix(got, "Server unavailable:") {
			t.Errorf("%q is acknowledged with %q", payload, got)
		}
	}
	if s := e.Stats(); s.Requests != 3 || s.Errors != 3 || s.LastError == "" {
		t.Errorf("stats %+v", s)
	}
	var stats struct {
		Endpoints []struct {
			Requests uint64 `json:"num_requests"`
			Errors   uint64 `json:"num_errors"`
		}
	}
	text := p.ask(t, &nats.Msg{Subject: "$SRV.STATS.dynamo_backend"})
	if err := json.Unmarshal([]byte(text), &stats); err != nil || len(stats.Endpoints) != 1 || stats.Endpoints[0].Requests != 3 || stats.Endpoints[0].Errors != 3 {
		t.Errorf("the service says %s", text)
	}
}

func TestRemovedEndpointDrains(t *testing.T) {
	p := newPlane(t, requestplane.Limits{})
	release := make(chan struct{})
	e := p.handle(t, generate, waitFor(release))
	p.send(t, generate, nil, "r")
	e.Remove()
	p.eventuallyUnknown(t, generate.Subject())
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if err := e.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a running request ended with %v", err)
	}
	close(release)
	p.expectEcho(t, "r")
	if err := e.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	again := p.handle(t, generate, serveEcho)
	if got := p.send(t, generate, nil, "r2"); got != "" || again.Active() > 1 {
		t.Errorf("an endpoint that came back acknowledges with %q", got)
	}
	p.expectEcho(t, "r2")
}

// TestServerRestarts takes the NATS server away between and during answers: the answer goes on, and the endpoint is
// found again.
func TestServerRestarts(t *testing.T) {
	p := newPlane(t, requestplane.Limits{})
	release := make(chan struct{})
	p.handle(t, generate, waitFor(release))
	p.send(t, generate, nil, "r")
	address, err := url.Parse(p.broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, _ := strconv.Atoi(address.Port())
	p.broker.Close()
	for deadline := time.Now().Add(planetest.Patience); p.Connected(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the loss of the server goes unnoticed")
		}
	}
	close(release)
	p.expectEcho(t, "r")
	startBroker(t, port)
	payload := requestplane.AppendMessage(nil, p.frontend.Control("r2", "msgpack"), []byte("r2"))
	for deadline := time.Now().Add(planetest.Patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err = p.client.Request(generate.Subject(), payload, time.Second); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the endpoint does not come back: %v", err)
		}
	}
	p.expectEcho(t, "r2")
}

func TestCloseBreaksAnswersOff(t *testing.T) {
	p := newPlane(t, requestplane.Limits{})
	p.handle(t, generate, func(ctx context.Context, _ *requestplane.Request, s *requestplane.Stream) {
		_ = s.Accept()
		<-ctx.Done()
	})
	p.send(t, generate, nil, "r")
	a := p.frontend.Answer()
	if _, ok := a.Next(); !ok {
		t.Fatal("no prologue")
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if m, ok := a.Next(); ok {
		t.Errorf("a closed server says %q", m)
	}
	if _, err := p.Handle(generate, requestplane.HandlerFunc(serveEcho)); err == nil {
		t.Error("a closed server takes endpoints")
	}
}
