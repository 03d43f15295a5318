package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"mockbench/engine"
	"mockbench/transport/discovery"
)

func options(s *server) Options {
	return Options{Endpoints: []string{s.url()}, TTL: time.Second, StartupTimeout: 20 * time.Second, PingTimeout: time.Second}
}

func open(t *testing.T, o Options) *Backend {
	t.Helper()
	b, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		b.Close(ctx)
	})
	return b
}

func join(t *testing.T, b *Backend) discovery.Member {
	t.Helper()
	m, err := b.Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var place = discovery.Endpoint{Namespace: "dynamo", Component: "backend", Name: "generate"}

// publish makes a worker with a card and an endpoint.
func publish(t *testing.T, m discovery.Member) (model, instance discovery.Record) {
	t.Helper()
	model = discovery.Model{Endpoint: place, ID: m.ID, Card: json.RawMessage(`{}`)}
	instance = discovery.Instance{Endpoint: place, ID: m.ID, Transport: discovery.Transport{TCP: "192.0.2.2:1/x"}}
	for _, r := range []discovery.Record{model, instance} {
		if err := discovery.Publish(t.Context(), m, r); err != nil {
			t.Fatal(err)
		}
	}
	return model, instance
}

func TestWorkersHaveLeases(t *testing.T) {
	s := serve(t)
	b := open(t, options(s))
	first, second := join(t, b), join(t, b)
	publish(t, first)
	_, instance := publish(t, second)
	want := []string{"v1/instances/dynamo/backend/generate/22f0a22a51b2200a", "v1/instances/dynamo/backend/generate/22f0a22a51b2200b",
		"v1/mdc/dynamo/backend/generate/22f0a22a51b2200a", "v1/mdc/dynamo/backend/generate/22f0a22a51b2200b"}
	if got := s.keys(t, first.ID, second.ID); !slices.Equal(got, want) {
		t.Errorf("records %q, want %q", got, want)
	}
	if err := discovery.Publish(t.Context(), second, instance); err != nil {
		t.Errorf("publishing again: %v", err)
	}
	list, err := b.List(t.Context(), discovery.Instances)
	if err != nil || len(list) != 2 || !strings.Contains(string(list["dynamo/backend/generate/22f0a22a51b2200a"]), `"instance_id":2517690494343061514`) {
		t.Errorf("listed %s, %v", list, err)
	}
	if err := second.Delete(t.Context(), instance.Key()); err != nil || len(s.keys(t, first.ID, second.ID)) != 3 {
		t.Errorf("deleted with %v, left %q", err, s.keys(t, first.ID, second.ID))
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if leases, records, _ := s.count(); leases+records > 0 {
		t.Errorf("%d leases and %d records are left", leases, records)
	}
	if _, err := b.Join(t.Context()); err == nil {
		t.Error("a closed backend takes workers")
	}
}

func TestLeaseIsKeptAlive(t *testing.T) {
	s := serve(t)
	join(t, open(t, options(s)))
	eventually(t, "three renewals", func() bool { _, _, n := s.count(); return n >= 3 })
}

func TestForeignRecordIsNotTaken(t *testing.T) {
	s := serve(t)
	b := open(t, options(s))
	m := join(t, b)
	key := fmt.Sprintf("v1/instances/dynamo/backend/generate/%x", m.ID)
	s.mu.Lock()
	s.records[key] = &mvccpb.KeyValue{Key: []byte(key), Version: 3, Lease: 7}
	s.mu.Unlock()
	err := discovery.Publish(t.Context(), m, discovery.Instance{Endpoint: place, ID: m.ID})
	if err == nil || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("got %v", err)
	}
}

// losses are the ways in which a worker loses its lease; back undoes what lasts.
var losses = map[string]struct {
	lose, back func(*testing.T, *server, uint64)
}{
	"revoked": {func(_ *testing.T, s *server, id uint64) { s.expire(id) }, func(*testing.T, *server, uint64) {}},
	"hung": {func(_ *testing.T, s *server, _ uint64) { s.hang() }, func(_ *testing.T, s *server, id uint64) {
		s.expire(id)
		s.thaw()
	}},
	"hung, but the lease is kept": {func(_ *testing.T, s *server, _ uint64) { s.hang() }, func(_ *testing.T, s *server, _ uint64) { s.thaw() }},
	"away": {func(_ *testing.T, s *server, _ uint64) { s.door.set(true) }, func(t *testing.T, s *server, id uint64) {
		s.expire(id)
		s.door.set(false)
	}},
	"refused": {func(_ *testing.T, s *server, _ uint64) { s.refuse(rpctypes.ErrGRPCInvalidAuthToken) },
		func(_ *testing.T, s *server, _ uint64) { s.refuse(nil) }},
}

func TestLostLeaseIsToldToTheWorker(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			b := open(t, options(s))
			m := join(t, b)
			_, instance := publish(t, m)
			loss.lose(t, s, m.ID)
			select {
			case err := <-m.Lost:
				if want := fmt.Sprintf("etcd at %s lost worker %x: ", s.url(), m.ID); err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got %v, want %s...", err, want)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the worker is not told")
			}
			begin := time.Now()
			if err := m.Delete(t.Context(), instance.Key()); err != nil {
				t.Errorf("deleting a record that is gone: %v", err)
			}
			if err := b.Close(t.Context()); err != nil || time.Since(begin) > requestTimeout {
				t.Errorf("closed after %v with %v", time.Since(begin), err)
			}
		})
	}
}

func TestLostLeaseIsTakenAgain(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			o := options(s)
			o.Reregister = true
			b := open(t, o)
			m := join(t, b)
			model, instance := publish(t, m)
			other := instance.(discovery.Instance)
			other.Endpoint.Name = "taken back meanwhile"
			if err := discovery.Publish(t.Context(), m, other); err != nil {
				t.Fatal(err)
			}
			loss.lose(t, s, m.ID)
			l := m.Store.(*lease)
			if name != "revoked" { // which may be over before anybody looks
				eventually(t, "the loss is noticed", l.away)
			}
			if err := m.Delete(t.Context(), other.Key()); err != nil && name != "revoked" {
				t.Error(err)
			}
			loss.back(t, s, m.ID)
			eventually(t, "the worker is back", func() bool { return b.Restored() == 1 })
			want := []string{"v1/instances/" + instance.Key().Path, "v1/mdc/" + model.Key().Path}
			if got := s.keys(t, m.ID); !slices.Equal(got, want) {
				t.Errorf("records %q, want %q", got, want)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if n := len(s.history); s.history[n-2] != want[1] || s.history[n-1] != want[0] {
				t.Errorf("records come back in the order %q", s.history[3:])
			}
		})
	}
}

func TestOpenWaitsForTheServer(t *testing.T) {
	s := serve(t)
	s.door.set(true)
	time.AfterFunc(300*time.Millisecond, func() { s.door.set(false) })
	open(t, options(s))
}

func TestOpenSaysWhatWasTried(t *testing.T) {
	s := serve(t)
	s.door.set(true)
	o := options(s)
	o.StartupTimeout = 50 * time.Millisecond
	want := "etcd did not answer at " + s.url() + " (ETCD_ENDPOINTS) within 50ms (ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS), at last: "
	if _, err := Open(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want %s...", err, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, options(s)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a start that is broken off: %v", err)
	}
	refusing := serve(t)
	refusing.refuse(rpctypes.ErrGRPCUserEmpty)
	if _, err := Open(t.Context(), options(refusing)); err == nil || !strings.Contains(err.Error(), "ETCD_AUTH_USERNAME") {
		t.Errorf("a server that wants a user: %v", err)
	}
}

func TestAnswers(t *testing.T) {
	text := `{"etcdserver":"3.4.23","etcdcluster":"3.4.0"}`
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			fmt.Fprint(w, text)
		}
	}))
	defer h.Close()
	if !Answers(t.Context(), h.URL) {
		t.Error("etcd is not recognised")
	}
	if text = "<html>"; Answers(t.Context(), h.URL) {
		t.Error("another server is taken for etcd")
	}
	if h.Close(); Answers(t.Context(), h.URL) {
		t.Error("no server is taken for etcd")
	}
}

func TestFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		env      map[string]string
		check    func(Options) bool
		warnings int
		wrong    string // setting that is refused
	}{
		{check: func(o Options) bool {
			return slices.Equal(o.Endpoints, []string{"http://localhost:2379"}) && o.TTL == 30*time.Second && o.StartupTimeout == 2*time.Minute &&
				o.PingInterval == 15*time.Second && o.PingTimeout == 10*time.Second && o.TLS == nil && o.Username == ""
		}},
		{env: map[string]string{"ETCD_ENDPOINTS": "http://a:1, https://b:2", "ETCD_LEASE_TTL": "5", "ETCD_KEEPALIVE_INTERVAL_SECONDS": "0",
			"ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS": "1", "ETCD_AUTH_USERNAME": "u", "ETCD_AUTH_PASSWORD": "p"},
			check: func(o Options) bool {
				return slices.Equal(o.Endpoints, []string{"http://a:1", "https://b:2"}) && o.TTL == 5*time.Second && o.PingInterval == 0 &&
					o.StartupTimeout == time.Second && o.Username == "u" && o.Password == "p"
			}},
		{env: map[string]string{"ETCD_LEASE_TTL": "0", "ETCD_KEEPALIVE_INTERVAL_SECONDS": "3", "ETCD_KEEPALIVE_TIMEOUT_SECONDS": "x"}, warnings: 3,
			check: func(o Options) bool {
				return o.TTL == 30*time.Second && o.PingInterval == 3*time.Second && o.PingTimeout == 10*time.Second
			}},
		{env: map[string]string{"ETCD_AUTH_USERNAME": "u", "ETCD_AUTH_CA": "x"}, warnings: 2,
			check: func(o Options) bool { return o.TLS == nil && o.Username == "" }},
		{env: map[string]string{"ETCD_ENDPOINTS": "localhost:2379"}, wrong: "ETCD_ENDPOINTS"},
		{env: map[string]string{"ETCD_ENDPOINTS": "http://a:1,"}, wrong: "ETCD_ENDPOINTS"},
		{env: map[string]string{"ETCD_AUTH_CA": "/a", "ETCD_AUTH_CLIENT_CERT": "/b", "ETCD_AUTH_CLIENT_KEY": "/c"}, wrong: "ETCD_AUTH_CA"},
	} {
		o, warnings, err := FromEnvironment(func(name string) string { return c.env[name] })
		var setting *engine.SettingError
		switch {
		case c.wrong != "":
			if !errors.As(err, &setting) || setting.Setting != c.wrong {
				t.Errorf("%v: got %v, want a refusal of %s", c.env, err, c.wrong)
			}
		case err != nil || !c.check(o) || len(warnings) != c.warnings:
			t.Errorf("%v: got %+v, %q, %v", c.env, o, warnings, err)
		}
	}
}
