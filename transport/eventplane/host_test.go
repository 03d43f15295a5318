package eventplane

import (
	"net"
	"strings"
	"testing"
)

func TestAdvertisedIP(t *testing.T) {
	loopback := loopbackInterface(t)
	for _, c := range []struct{ setting, want, problem string }{
		{"10.1.2.3", "10.1.2.3", ""},
		{"  ::1 ", "::1", ""},
		{loopback, "127.0.0.1", ""},
		{"0.0.0.0", "", "cannot be advertised"},
		{"::", "", "cannot be advertised"},
		{"no-such-interface", "", "neither an IP address nor a network interface"},
	} {
		ip, ok, err := AdvertisedIP(c.setting)
		switch {
		case c.problem != "":
			if err == nil || ok || !strings.Contains(err.Error(), c.problem) || !strings.Contains(err.Error(), HostVariable) {
				t.Errorf("%q: %v, %v", c.setting, ip, err)
			}
		case err != nil || !ok || ip.String() != c.want:
			t.Errorf("%q: %v, %v, want %s", c.setting, ip, err, c.want)
		}
	}
	for _, blank := range []string{"", " \t"} {
		if ip, _, err := AdvertisedIP(blank); err != nil || !ip.IsValid() || ip.IsUnspecified() {
			t.Errorf("%q: %v, %v", blank, ip, err)
		}
	}
}

func loopbackInterface(t *testing.T) string {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name
		}
	}
	t.Fatal("no loopback interface")
	return ""
}

func TestIPv6Publisher(t *testing.T) {
	p, err := ZMQ{Host: "::1"}.Open(KVMetrics, 1, Endpoint{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(0)
	endpoint := p.Channel().Transport.Endpoint
	if !strings.HasPrefix(endpoint, "tcp://[::1]:") {
		t.Errorf("endpoint %s", endpoint)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestPublisherID(t *testing.T) {
	seen := map[uint64]bool{}
	for range 1000 {
		id := NewPublisherID()
		if id >= 1<<53 || seen[id] {
			t.Fatalf("id %x", id)
		}
		seen[id] = true
	}
	if got := QueryEndpoint(0xc54f9e435487a); got != "worker_kv_query_source_c54f9e435487a" {
		t.Error(got)
	}
}
