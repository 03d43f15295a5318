package embeddednats

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestServesAndComesBackOnItsPort(t *testing.T) {
	first := start(t, Options{})
	address, err := url.Parse(first.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Server{first, nil} {
		if s == nil {
			s = start(t, Options{Port: port, MaxPayload: 4096})
			if s.URL() != first.URL() {
				t.Errorf("the second server is at %s, want %s", s.URL(), first.URL())
			}
		}
		c, err := nats.Connect(s.URL(), nats.UserInfo("user", "user"))
		if err != nil {
			t.Fatal(err)
		}
		sub, err := c.SubscribeSync("a")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Publish("a", []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if m, err := sub.NextMsg(10 * time.Second); err != nil || string(m.Data) != "hello" {
			t.Errorf("got %v, %v", m, err)
		}
		if n := s.Clients(); n != 1 {
			t.Errorf("%d clients, want 1", n)
		}
		c.Close()
		s.Close()
	}
}

func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Start(Options{Port: l.Addr().(*net.TCPAddr).Port})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a taken port gives %v", err)
	}
}
