package eventplane

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"mockbench/engine"
	"mockbench/kv"
)

// natsServer runs a server in the process.
func natsServer(t *testing.T, maxPayload int32) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, MaxPayload: maxPayload})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(generous) {
		t.Fatal("the server does not start")
	}
	return s.ClientURL()
}

func natsConn(t *testing.T, url string) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(url, nats.FlusherTimeout(time.Second), nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNATS(t *testing.T) {
	url := natsServer(t, 4096)
	reader := natsConn(t, url)
	messages := make(chan *nats.Msg, 1000)
	if _, err := reader.ChanSubscribe(">", messages); err != nil {
		t.Fatal(err)
	}
	if err := reader.Flush(); err != nil {
		t.Fatal(err)
	}
	p := openPlane(t, Options{Opener: NATS{Conn: natsConn(t, url)}, KVEvents: true, Sequences: true})
	if got := p.channel(t, KVEvents).Transport; got != (Transport{SubjectPrefix: "namespace.dynamo.component.backend.endpoint.generate"}) {
		t.Errorf("transport %+v", got)
	}
	// 300 events exceed the server's limit for one message and must be split.
	var pass engine.Pass
	for i := range uint64(300) {
		pass.Events.List = append(pass.Events.List, kv.Event{Offset: int32(i), Count: 1, Position: -1})
		pass.Events.Sequence = append(pass.Events.Sequence, i)
		pass.Events.Local = append(pass.Events.Local, i)
	}
	p.feed(&pass)
	p.Sequences().PrefillCompleted("r1", 0)
	p.Sequences().PrefillCompleted("r2", 0)
	p.load.Load(0, 0, engine.Load{ActiveBlocks: 3})
	events, seen := 0, map[string]int{}
	for events < 300 || seen["active_sequences_events"] < 2 || seen["kv_metrics"] < 1 {
		var m *nats.Msg
		select {
		case m = <-messages:
		case <-time.After(generous):
			t.Fatalf("missing messages: %d events, %v", events, seen)
		}
		topic := strings.TrimPrefix(m.Subject, "namespace.dynamo.component.backend.endpoint.generate.")
		seen[topic]++
		e, err := ReadEnvelope(m.Data)
		if err != nil || string(e.Topic) != topic || m.Reply != "" || m.Header != nil {
			t.Fatalf("message %+v of %s: %v", e, m.Subject, err)
		}
		if e.Topic == KVEvents {
			list, err := ReadKVEvents(e.Payload, testWorker, 0)
			if err != nil {
				t.Fatal(err)
			}
			events += len(list)
		}
	}
	if seen["kv-events"] < 2 {
		t.Errorf("messages %v", seen)
	}
	if err := p.publishers[0].Publish(make([]byte, 5000)); err == nil {
		t.Error("a message above the server's limit was accepted")
	}
}

func TestNATSNeedsConnection(t *testing.T) {
	if _, err := Open(Options{Opener: NATS{}, Ranks: 1}); err == nil || !strings.Contains(err.Error(), "NATS_SERVER") {
		t.Errorf("error %v", err)
	}
}

// A server that takes nothing any more makes nobody wait; what finds no room is refused.
func TestNATSServerThatStalls(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintf(c, "INFO {\"server_id\":\"x\",\"version\":\"2.10.0\",\"max_payload\":1048576}\r\n")
		r := bufio.NewReader(c)
		for line := ""; !strings.HasPrefix(line, "PING"); {
			if line, err = r.ReadString('\n'); err != nil {
				break
			}
		}
		fmt.Fprint(c, "PONG\r\n")
		accepted <- c
	}()
	conn := natsConn(t, "nats://"+l.Addr().String())
	defer (<-accepted).Close()
	p, err := NATS{Conn: conn}.Open(KVEvents, 1, Endpoint{"n", "c", "e"})
	if err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, 256<<10)
	start := time.Now()
	refused := 0
	for range 1000 {
		if p.Publish(payload) != nil {
			refused++
		}
	}
	if refused == 0 || time.Since(start) > generous {
		t.Errorf("%d of 1000 messages refused after %v", refused, time.Since(start))
	}
	if s := p.Stats(); s.Failed != uint64(refused) || s.Messages != uint64(1000-refused) || s.LastSequence > 999 {
		t.Errorf("stats %+v", s)
	}
	p.Close(0)
}

func TestSubjects(t *testing.T) {
	got := Endpoint{"my.ns", "ä b", "A-z_9"}.SubjectPrefix()
	if want := "namespace.my%2Ens.component.%C3%A4%20b.endpoint.A-z_9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
