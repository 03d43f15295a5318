package quicline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mockbench/transport/requestplane/planetest"
	"mockbench/transport/requestplane/quicline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPool(t *testing.T) *quicline.Pool {
	t.Helper()
	p := &quicline.Pool{}
	t.Cleanup(p.Close)
	return p
}

func open(t *testing.T, p *quicline.Pool, h quicline.Home) (*quicline.Answer, chan struct{}) {
	t.Helper()
	ended := make(chan struct{})
	a, err := p.Open(t.Context(), h, func() { close(ended) })
	if err != nil {
		t.Fatal(err)
	}
	return a, ended
}

func wait(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(planetest.Patience):
		t.Fatalf("%s does not happen", what)
	}
}

func TestOneBundleForAllAnswers(t *testing.T) {
	f, p := planetest.NewQUIC(t), newPool(t)
	for i := range 20 {
		a, _ := open(t, p, f.Home(fmt.Sprint("r", i)))
		register := f.Expect(quicline.Register)
		if register.ID != a.ID() || !f.Priority(register) {
			t.Errorf("registered %v on a priority lane: %v, want %v", register.ID, f.Priority(register), a.ID())
		}
		if err := a.Bulk(quicline.AppendFrame(nil, quicline.End, a.ID(), nil)); err != nil {
			t.Fatal(err)
		}
		if end := f.Expect(quicline.End); f.Priority(end) {
			t.Error("the end came on a priority lane")
		}
		a.Close(true)
	}
	got := f.Streams()
	slices.Sort(got)
	if want := []int{1, 1, 1, 1, 1, 1, 1, 1, 8}; !slices.Equal(got, want) {
		t.Errorf("the connections have %v streams, want %v", got, want)
	}
}

// Frames of answers that share a lane wait for one another, for as long as was said and up to a number.
func TestBatches(t *testing.T) {
	f := planetest.NewQUIC(t)
	p := &quicline.Pool{Batch: 50 * time.Millisecond}
	t.Cleanup(p.Close)
	a, _ := open(t, p, f.Home("r"))
	begin := time.Now()
	for range 3 {
		if err := a.Bulk(quicline.AppendFrame(nil, quicline.Data, a.ID(), []byte("data"))); err != nil {
			t.Fatal(err)
		}
	}
	f.Expect(quicline.Register)
	for range 3 {
		f.Expect(quicline.Data)
	}
	if took := time.Since(begin); took < p.Batch {
		t.Errorf("the frames waited %v, want %v", took, p.Batch)
	}
	for range 1000 {
		if err := a.Bulk(quicline.AppendFrame(nil, quicline.Data, a.ID(), nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Bulk(quicline.AppendFrame(nil, quicline.End, a.ID(), nil)); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		f.Expect(quicline.Data)
	}
	f.Expect(quicline.End)
	a.Close(true)
}

func TestFrontendWantsNoMore(t *testing.T) {
	for _, kind := range []quicline.Kind{quicline.Stop, quicline.Kill, quicline.Reset} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			f, p := planetest.NewQUIC(t), newPool(t)
			a, ended := open(t, p, f.Home("r"))
			register := f.Expect(quicline.Register)
			f.Say(kind, register)
			wait(t, "the end", ended)
			f.Say(kind, register) // once more is no mistake
			a.Close(false)
			if kind == quicline.Stop {
				f.Expect(quicline.Reset)
			}
			open(t, p, f.Home("r2"))
			f.Expect(quicline.Register)
		})
	}
}

func TestLostBundleIsReplaced(t *testing.T) {
	for name, lose := range map[string]func(*planetest.QUICFrontend, planetest.QUICFrame){
		"connection closed":  func(f *planetest.QUICFrontend, _ planetest.QUICFrame) { f.Drop() },
		"protocol violation": func(f *planetest.QUICFrontend, r planetest.QUICFrame) { f.Say(quicline.Prologue, r) },
	} {
		t.Run(name, func(t *testing.T) {
			f, p := planetest.NewQUIC(t), newPool(t)
			a, ended := open(t, p, f.Home("r"))
			lose(f, f.Expect(quicline.Register))
			wait(t, "the end", ended)
			if err := a.Priority([]byte("x")); err == nil {
				t.Error("a lost bundle takes frames")
			}
			a.Close(false)
			open(t, p, f.Home("r2"))
			f.Expect(quicline.Register)
		})
	}
}

func TestOtherCertificate(t *testing.T) {
	f, p := planetest.NewQUIC(t), newPool(t)
	h := f.Home("r")
	h.Certificate = strings.Repeat("0", 64)
	if _, err := p.Open(t.Context(), h, func() {}); err == nil || !strings.Contains(err.Error(), "fingerprint") {
		t.Errorf("got %v", err)
	}
}

func TestCancelledOpen(t *testing.T) {
	f, p := planetest.NewQUIC(t), newPool(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Open(ctx, f.Home("r"), func() {}); err == nil {
		t.Error("opened after the end of the context")
	}
}

func TestClosedPool(t *testing.T) {
	f, p := planetest.NewQUIC(t), newPool(t)
	_, ended := open(t, p, f.Home("r"))
	p.Close()
	wait(t, "the end", ended)
	if _, err := p.Open(t.Context(), f.Home("r2"), func() {}); err == nil {
		t.Error("a closed pool opens answers")
	}
}

func TestParseHome(t *testing.T) {
	const good = `{"version":3,"address":"127.0.0.1:9","frontend_id":"7ce9422a-6109-4eb4-9861-72cd602986c7",` +
		`"registration_id":"22222222-2222-3333-4444-555555555555","request_id":"r","certificate_sha256":"CERT"}`
	text := strings.Replace(good, "CERT", strings.Repeat("ab", 32), 1)
	if h, err := quicline.ParseHome(text); err != nil || h.RequestID != "r" || h.Registration.String()[:8] != "22222222" {
		t.Errorf("got %+v, %v", h, err)
	}
	for _, change := range [][2]string{{`"version":3`, `"version":2`}, {"127.0.0.1:9", "nowhere"}, {"abab", "xx"}, {"7ce9422a", "?"}, {"{", ""}} {
		if _, err := quicline.ParseHome(strings.Replace(text, change[0], change[1], 1)); err == nil {
			t.Errorf("%s instead of %s is accepted", change[1], change[0])
		}
	}
}
