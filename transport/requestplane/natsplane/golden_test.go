package natsplane

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"mockbench/transport/goldencase"
	"mockbench/transport/natsconn"
	"mockbench/transport/requestplane"
)

func TestGoldenRequestPlaneNats(t *testing.T) {
	checks := map[string]func(*testing.T, goldencase.Case){"connect": goldenConnect, "ping-reply": goldenService,
		"info-reply": goldenService, "instance-record": goldenRecord, "request": goldenRequest, "shutdown": goldenShutdown,
		"reply-overloaded": goldenOverloaded, "no-reply": goldenReplyComesFirst}
	for _, c := range goldencase.Read(t, "request-plane", "nats.jsonl") {
		t.Run(c.Name, func(t *testing.T) {
			check := checks[c.Name]
			if check == nil {
				t.Fatal("no such check")
			}
			check(t, c)
		})
	}
}

// goldenConnect compares what a client says first with the recorded line.
func goldenConnect(t *testing.T, c goldencase.Case) {
	var in struct{ Env map[string]string }
	var want struct{ Contains map[string]any }
	goldencase.Parse(t, c.Input, &in)
	goldencase.Parse(t, c.Expect, &want)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	said := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, `INFO {"server_id":"x","version":"2.10.0","proto":1,"headers":true,"max_payload":1048576}`+"\r\n")
		line, _ := bufio.NewReader(conn).ReadString('\n')
		said <- line
	}()
	settings, err := natsconn.FromEnvironment(func(name string) string {
		return map[string]string{"NATS_SERVER": "nats://" + l.Addr().String(), "NATS_STARTUP_CONNECT_TIMEOUT_SECONDS": "0"}[name] + in.Env[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := natsconn.Connect(t.Context(), settings, "test", nil); err == nil {
		t.Fatal("connected to a server that says nothing")
	}
	var got map[string]any
	goldencase.Parse(t, json.RawMessage(strings.TrimPrefix(<-said, "CONNECT ")), &got)
	for key, value := range want.Contains {
		if !cmp.Equal(got[key], value) {
			t.Errorf("%s is %v, want %v", key, got[key], value)
		}
	}
}

// goldenService asks a service with the recorded endpoints and compares its answer byte for byte.
func goldenService(t *testing.T, c goldencase.Case) {
	var in struct {
		ID       string
		Instance string `json:"instance_hex"`
		KV       string `json:"kv_publisher_hex"`
	}
	var want struct{ JSON string }
	goldencase.Parse(t, c.Input, &in)
	goldencase.Parse(t, c.Expect, &want)
	p := newPlane(t, requestplane.Limits{})
	name := generate
	if in.Instance != "" {
		if _, err := fmt.Sscanf(in.Instance, "%x", &name.Instance); err != nil {
			t.Fatal(err)
		}
	}
	p.handle(t, name, serveEcho)
	if in.KV != "" {
		name.Endpoint = "worker_kv_query_source_" + in.KV
		p.handle(t, name, serveEcho)
	}
	id := p.services[keyOf(name)].id
	if len(id) != len(in.ID) {
		t.Errorf("id %q has another length than %q", id, in.ID)
	}
	verb := strings.ToUpper(strings.TrimSuffix(c.Name, "-reply"))
	for _, subject := range []string{"$SRV." + verb, "$SRV." + verb + ".dynamo_backend", "$SRV." + verb + ".dynamo_backend." + id} {
		got := p.ask(t, &nats.Msg{Subject: subject})
		if diff := cmp.Diff(want.JSON, strings.ReplaceAll(got, id, in.ID)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", subject, diff)
		}
	}
}

func goldenRecord(t *testing.T, c goldencase.Case) {
	var want struct {
		Transport struct {
			NATS string `json:"nats_tcp"`
		}
	}
	goldencase.Parse(t, c.Expect, &want)
	p := newPlane(t, requestplane.Limits{})
	if got := p.handle(t, generate, serveEcho).Place(); got.NATS != want.Transport.NATS || got.TCP != "" {
		t.Errorf("the record says %+v, want %s", got, want.Transport.NATS)
	}
}

// goldenRequest sends a request with the recorded headers.
func goldenRequest(t *testing.T, c goldencase.Case) {
	var in struct {
		Headers string `json:"header_block"`
	}
	var want struct {
		Reply   string `json:"reply_payload"`
		Headers map[string]string
	}
	goldencase.Parse(t, c.Input, &in)
	goldencase.Parse(t, c.Expect, &want)
	headers, err := nats.DecodeHeadersMsg([]byte(in.Headers))
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range want.Headers {
		if headers.Get(key) != value {
			t.Errorf("header %s is %q, want %q", key, headers.Get(key), value)
		}
	}
	if at := fmt.Sprint(sentAt(headers).UnixNano()); at != want.Headers[sentHeader] {
		t.Errorf("sent at %s, want %s", at, want.Headers[sentHeader])
	}
	p := newPlane(t, requestplane.Limits{})
	p.handle(t, generate, serveEcho)
	if got := p.send(t, generate, headers, "r"); got != want.Reply {
		t.Errorf("the reply is %q, want %q", got, want.Reply)
	}
	p.expectEcho(t, "r")
}

// goldenShutdown takes the endpoints out and expects the server to know no subscriber any more.
func goldenShutdown(t *testing.T, c goldencase.Case) {
	var want struct{ Unsub []string }
	goldencase.Parse(t, c.Expect, &want)
	p := newPlane(t, requestplane.Limits{})
	var endpoints []*requestplane.Endpoint
	names := []requestplane.Name{}
	for _, word := range want.Unsub {
		name := generate
		name.Endpoint = word
		names = append(names, name)
		endpoints = append(endpoints, p.handle(t, name, serveEcho))
	}
	for _, e := range endpoints {
		e.Remove()
	}
	for _, name := range names {
		p.eventuallyUnknown(t, name.Subject())
	}
	p.eventuallyUnknown(t, "$SRV.PING.dynamo_backend")
}

func goldenOverloaded(t *testing.T, c goldencase.Case) {
	var in struct{ Reply string }
	goldencase.Parse(t, c.Input, &in)
	p := newPlane(t, requestplane.Limits{Running: 1, Waiting: 1})
	release := make(chan struct{})
	p.handle(t, generate, waitFor(release))
	for _, want := range []string{"", "", in.Reply} {
		if got := p.send(t, generate, nil, "r"); got != want {
			t.Errorf("the reply is %q, want %q", got, want)
		}
	}
	close(release)
	p.expectEcho(t, "r")
	p.expectEcho(t, "r")
}

// goldenReplyComesFirst holds the handler back: a frontend must have its reply long before it gives up.
func goldenReplyComesFirst(t *testing.T, _ goldencase.Case) {
	p := newPlane(t, requestplane.Limits{})
	release := make(chan struct{})
	p.handle(t, generate, waitFor(release))
	if got := p.send(t, generate, nil, "r"); got != "" {
		t.Errorf("the reply is %q", got)
	}
	close(release)
	p.expectEcho(t, "r")
}
