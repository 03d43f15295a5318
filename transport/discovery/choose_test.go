package discovery

import (
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	asked := 0
	answers := func(yes bool) func() bool { return func() bool { asked++; return yes } }
	for _, c := range []struct {
		endpoints string
		answers   bool
		backend   string
		why       string
	}{
		{"http://a:1", false, EtcdBackend, "ETCD_ENDPOINTS is set"},
		{"", true, EtcdBackend, "a server answers at http://here:2379"},
		{"", false, MemoryBackend, "no etcd server answers at http://here:2379"},
	} {
		got := Choose(c.endpoints, "http://here:2379", answers(c.answers))
		if got.Backend != c.backend || !strings.Contains(got.Why, c.why) {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
	if asked != 2 {
		t.Errorf("the default endpoint was asked %d times, want 2", asked)
	}
}
