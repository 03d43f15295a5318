package interop

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mockbench/transport/embeddednats"
)

// broker starts a NATS server on a port, 0 for any, until the test ends.
func broker(t *testing.T, port int) *embeddednats.Server {
	t.Helper()
	b, err := embeddednats.Start(embeddednats.Options{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func portOf(t *testing.T, b *embeddednats.Server) int {
	t.Helper()
	u, err := url.Parse(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// natsCluster is a cluster whose processes use a NATS server for requests and the given plane for events.
func natsCluster(t *testing.T, events string) (*cluster, *embeddednats.Server) {
	t.Helper()
	b := broker(t, 0)
	c := newCluster(t)
	c.env = []string{"NATS_SERVER=" + b.URL(), "DYN_REQUEST_PLANE=nats", "DYN_EVENT_PLANE=" + events}
	return c, b
}

// repeats asks the same long prompt twice and returns how many of its tokens the second time found in the cache of
// the worker that the router chose.
func (c *cluster) repeats(prompt string) int {
	c.t.Helper()
	long := strings.Repeat(prompt+" ", 100)
	c.mustChat(long, 4)
	time.Sleep(300 * time.Millisecond) // events travel
	return c.mustChat(long, 4).usage.Details.Cached
}

func TestNATSRequestPlane(t *testing.T) {
	for _, events := range []string{"zmq", "nats"} {
		t.Run("events "+events, func(t *testing.T) {
			c, _ := natsCluster(t, events)
			c.frontend("--router-mode", "kv")
			p := c.ours("--num-workers", "2", "--speedup-ratio", "10")
			c.serving(2)
			for _, topic := range []string{"instances", "event_channels"} {
				if files := c.records(topic, ""); len(files) == 0 {
					t.Errorf("no records of %s", topic)
				}
			}
			for i := range 4 {
				if cached := c.repeats(fmt.Sprint("river ", i)); cached == 0 {
					t.Errorf("prompt %d: nothing of it is found in the cache the second time", i)
				}
			}
			var group sync.WaitGroup
			for i := range 50 {
				group.Go(func() {
					a, err := c.ask(t.Context(), "/v1/chat/completions", chat(fmt.Sprintf("stream %d", i), 64), nil)
					if err != nil || a.usage.Completion != 64 || a.finish != "length" || a.errored {
						t.Errorf("stream %d: got %+v, %v", i, a, err)
					}
				})
			}
			group.Wait()
			took, status := p.stop(10 * time.Second)
			if status != 0 || len(c.records("*", "")) > 0 {
				t.Errorf("exit status %d, records %v", status, c.records("*", ""))
			}
			t.Logf("stopped after %d ms", took.Milliseconds())
		})
	}
}

// TestNATSBesideTheReference lets the real mocker and our worker share the requests of one NATS server.
func TestNATSBesideTheReference(t *testing.T) {
	c, _ := natsCluster(t, "nats")
	c.frontend("--router-mode", "round-robin")
	c.reference(modelDir(t))
	c.ours("--model-path", modelDir(t))
	c.serving(2)
	for i := range 6 {
		c.mustChat(fmt.Sprint("shared ", i), 8)
	}
}

// TestNATSRestarts takes the NATS server away while nothing happens and in the middle of a stream, and brings it back.
func TestNATSRestarts(t *testing.T) {
	c, b := natsCluster(t, "nats")
	port := portOf(t, b)
	c.frontend("--router-mode", "kv")
	p := c.ours("--speedup-ratio", "0.5")
	c.serving(1)
	c.mustChat("before", 4)

	b.Close()
	time.Sleep(time.Second)
	b = broker(t, port)
	back := c.answersAgain()
	t.Logf("idle: answers again %d ms after the server is back", back.Milliseconds())

	ended := c.begin("a long story", 300)
	b.Close()
	time.Sleep(500 * time.Millisecond)
	broker(t, port)
	if o := <-ended; !o.complete(300) {
		t.Errorf("the stream of before ended with %+v", o)
	}
	back = c.answersAgain()
	t.Logf("in a stream: answers again %d ms after the stream", back.Milliseconds())
	c.eventually(20*time.Second, "a repeated prompt is found in the cache", func() bool { return c.repeats("after") > 0 })
	if _, status := p.stop(10 * time.Second); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// answersAgain polls until a request is answered.
func (c *cluster) answersAgain() time.Duration {
	c.t.Helper()
	return c.eventually(40*time.Second, "requests are answered again", func() bool {
		ctx, cancel := context.WithTimeout(c.t.Context(), 15*time.Second)
		defer cancel()
		a, err := c.ask(ctx, "/v1/chat/completions", chat("again", 2), nil)
		return err == nil && a.status == 200 && !a.errored
	})
}

// TestNATSStopsMidStream drains a worker on the NATS plane.
func TestNATSStopsMidStream(t *testing.T) {
	c, _ := natsCluster(t, "zmq")
	c.frontend()
	p := c.ours("--speedup-ratio", "0.5")
	c.serving(1)
	c.stopMidStream(p, 200)
}

// TestEmbeddedNATS runs the server inside our worker; the frontend finds it at the address both are told.
func TestEmbeddedNATS(t *testing.T) {
	c := newCluster(t)
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	c.env = []string{"NATS_SERVER=nats://" + address, "DYN_REQUEST_PLANE=nats", "DYN_EVENT_PLANE=nats"}
	c.ours("--embedded-nats")
	c.eventually(20*time.Second, "the NATS server is up", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	c.frontend("--router-mode", "kv")
	c.serving(1)
	if c.repeats("inside") == 0 {
		t.Error("no KV event reached the router")
	}
}

func fetch(t testing.TB, address string) string {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", address, r.StatusCode, err)
	}
	return string(text)
}
