package bootstrap

import (
	"strings"
	"testing"
	"time"
)

// TestGarbageDropsOnlyItsConnection sends what is no introduction; a handoff beside it is not disturbed.
func TestGarbageDropsOnlyItsConnection(t *testing.T) {
	p := newPair(t, vllm())
	id := newIdentity()
	frame := func(payload string) string {
		return string(preface[:]) + string([]byte{byte(len(payload)), byte(len(payload) >> 8), 0, 0}) + payload
	}
	identity := `"identity":{"handoff_id":"` + id.Handoff.String() + `","bootstrap_room":7,"request_id":"` + id.Request.String() + `"}`
	for name, text := range map[string]string{
		"magic":         "DMHX\x01\x00\x00\x00",
		"version":       "DMHF\x02\x00\x00\x00",
		"flags":         "DMHF\x01\x00\x01\x00",
		"other client":  "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"zero frame":    string(preface[:]) + "\x00\x00\x00\x00",
		"long frame":    string(preface[:]) + "\x01\x00\x01\x00",
		"no JSON":       frame("hello"),
		"no identity":   frame(`{"message":"Registered"}`),
		"not Register":  frame(`{` + identity + `,"message":"Registered"}`),
		"unknown role":  frame(`{` + identity + `,"message":{"Register":{"role":"Source","dp_rank":0,"order":"SourceFirst","engine_type":"vllm"}}}`),
		"unknown":       frame(`{` + identity + `,"message":{"Hello":{}}}`),
		"two variants":  frame(`{` + identity + `,"message":{"Abort":{"message":"a"},"Complete":null}}`),
		"no such id":    frame(strings.Replace(`{`+identity+`,"message":"Registered"}`, id.Handoff.String(), "nobody", 1)),
		"room too wide": frame(strings.Replace(`{`+identity+`,"message":"Registered"}`, `:7,`, `:99999999999999999999,`, 1)),
	} {
		conn := p.dial(t)
		_, _ = conn.Write([]byte(text))
		if n := silent(t, conn); n > 0 {
			t.Errorf("%s: answered with %d bytes", name, n)
		}
	}
	p.transfer(t, id, 100, 2).succeed(t)
	p.clean(t)
}

// TestClientsLeaveAtAnyMoment lets the clients of decode workers leave while handoffs run.
func TestClientsLeaveAtAnyMoment(t *testing.T) {
	cfg := vllm()
	cfg.KVTransferBandwidth, cfg.KVTransferBytesPerToken = 1, 100_000
	p := newPair(t, cfg)
	var list []*session
	for i := range 60 {
		s := p.transfer(t, newIdentity(), 100, 50)
		list = append(list, s)
		time.AfterFunc(time.Duration(i)*time.Millisecond/2, s.leave)
	}
	for _, s := range list {
		_ = result(t, s.sourceErr)
		if result(t, s.destinationErr) == nil {
			s.destination.Cancel() // the handoff was complete before the client left
		}
	}
	p.clean(t)
	p.transfer(t, newIdentity(), 100, 2).succeed(t)
	p.clean(t)
}
