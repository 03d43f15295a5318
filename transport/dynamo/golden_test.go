package dynamo

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/outputs"
	"mockbench/transport/goldencase"
	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
)

// generate is the endpoint of workers in these tests; its path has the length of the recorded ones.
var generate = requestplane.Name{Namespace: "dynamo", Component: "backend", Endpoint: "generate", Instance: 0x7918a19c3407d5f7}

func endpointOf(role engine.Role) requestplane.Name {
	n := generate
	if role == engine.PrefillRole {
		n.Component = "prefill"
	}
	return n
}

// rig is a worker with its request plane.
type rig struct {
	server    *requestplane.Server
	worker    *live.Worker
	generator *Generator
}

// setup describes a worker of a test.
type setup struct {
	config    engine.Config
	ranks     int
	noDelay   bool
	quirks    bool
	reasoning *outputs.Reasoning
	replay    string // response trace
}

// plain is a vLLM worker whose passes take the given times.
func plain(prefill, decode float64) setup {
	c := engine.DefaultConfig(engine.VLLM)
	c.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: prefill, DecodeMS: decode}
	return setup{config: c, ranks: 1}
}

// start starts a worker that ends with the test.
func start(t testing.TB, s setup) *rig {
	t.Helper()
	r := startKept(t, s)
	t.Cleanup(func() {
		r.worker.Close()
		r.server.Close()
	})
	return r
}

// startKept starts a worker that the caller ends.
func startKept(t testing.TB, s setup) *rig {
	t.Helper()
	worker, err := live.Start(t.Context(), live.Options{Name: "w0", Engine: s.config, Ranks: s.ranks, Seed: 1,
		Clock: live.NewClock(1), NoDelay: s.noDelay})
	if err != nil {
		t.Fatal(err)
	}
	server, err := requestplane.Listen(requestplane.Options{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	g := &Generator{Worker: worker, Seed: 1, Quirks: s.quirks, Reasoning: s.reasoning,
		Log: slog.New(slog.DiscardHandler)}
	if s.config.Role != engine.Aggregated {
		g.Handoffs = NewHandoffs(worker, nil, time.Minute, g.Log)
	}
	if s.replay != "" {
		if g.Replay, err = outputs.ReadTable(strings.NewReader(s.replay)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := server.Handle(endpointOf(s.config.Role), g); err != nil {
		t.Fatal(err)
	}
	return &rig{server: server, worker: worker, generator: g}
}

// recorded are the workers that the recorded cases were made with, by the first part of a case's name.
func recorded(group string, slow bool) setup {
	s := plain(1, 1)
	if slow {
		s = plain(1, 50)
	}
	s.quirks = true
	switch group {
	case "prefill-no-bootstrap-server":
		s.config.Role = engine.PrefillRole
	case "decode":
		s.config.Role = engine.DecodeRole
	case "kv-router-dp2":
		s.ranks = 2
	case "maxlen64-dp2-reasoning-replay":
		s.ranks = 2
		s.config.MaxModelLen = 64
		s.reasoning = &outputs.Reasoning{Start: 100, End: 101, Ratio: 0.5}
		s.replay = `{"request_id":"r1","output_length":3,"output_token_ids":[70,71,72]}`
	}
	return s
}

func TestGoldenRequestPlane(t *testing.T) {
	rigs := map[string]*rig{}
	rigOf := func(group string, slow bool) *rig {
		key := fmt.Sprint(group, slow)
		if rigs[key] == nil {
			rigs[key] = start(t, recorded(group, slow))
		}
		return rigs[key]
	}
	for _, c := range goldencase.Read(t, "request-plane", "primitives.jsonl") {
		kind, _, _ := strings.Cut(c.Name, "/")
		if check := primitives[kind]; check != nil {
			t.Run("primitives/"+c.Name, func(t *testing.T) { check(t, c) })
		}
	}
	for _, c := range goldencase.Read(t, "request-plane", "worker-behaviour.jsonl") {
		group, _, _ := strings.Cut(c.Name, "/")
		slow := bytes.Contains(c.Input, []byte("frontend_sends_hex"))
		t.Run("worker-behaviour/"+c.Name, func(t *testing.T) { checkBehaviour(t, rigOf(group, slow), c) })
	}
	for _, c := range goldencase.Read(t, "request-plane", "response-streams.jsonl") {
		group, _, _ := strings.Cut(c.Name, "/")
		t.Run("response-streams/"+c.Name, func(t *testing.T) { checkStream(t, rigOf(group, false), c) })
	}
}

type behaviour struct {
	Path, Headers string
	Control       json.RawMessage
	ControlRaw    string `json:"control_raw"`
	BodyHex       string `json:"body_hex"`
	PayloadLen    *uint32
	LengthField   *uint32  `json:"payload_len_field"`
	Sends         []string `json:"frontend_sends_hex"`
	SendsAfter    int      `json:"frontend_sends_after_frames"`
}

type expectation struct {
	Ack        string
	Connection string `json:"request_connection"`
	CallsHome  bool   `json:"calls_home"`
	Frames     []struct {
		Kind    string
		Header  *string
		Payload any
	}
	Cut bool `json:"middle_token_frames_cut"`
}

func checkBehaviour(t *testing.T, r *rig, c goldencase.Case) {
	var in behaviour
	var want expectation
	if err := errors.Join(json.Unmarshal(c.Input, &in), json.Unmarshal(c.Expect, &want)); err != nil {
		t.Fatal(err)
	}
	f := planetest.New(t)
	id := f.ID()
	fill := strings.NewReplacer("${INSTANCE_HEX}", generate.InstanceHex(), "${ID}", id, "${CALLHOME_ADDR}", f.Addr(),
		"${SUBJECT}", planetest.Subject(id), "${HEADERS}", `{"request-id":"`+id+`","x-frontend-send-ts-ns":"1"}`)
	text := func(s string) []byte {
		if b, ok := strings.CutPrefix(s, "hex:"); ok {
			return unhex(t, b)
		}
		return []byte(fill.Replace(s))
	}
	control := text(string(in.Control))
	if in.ControlRaw != "" {
		control = text(in.ControlRaw)
	}
	conn := planetest.Dial(t, r.server.Addr())
	frame := planetest.Frame(string(text(in.Path)), text(in.Headers), requestplane.AppendMessage(nil, control, unhex(t, in.BodyHex)))
	if in.LengthField != nil {
		frame = planetest.Frame(string(text(in.Path)), text(in.Headers), nil)
		frame = append(frame[:len(frame)-4], byte(*in.LengthField>>24), byte(*in.LengthField>>16), byte(*in.LengthField>>8), byte(*in.LengthField))
	}
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
	ack := conn.Ack()
	checkAck(t, ack, want)
	checkOpen(t, conn, want.Connection == "open")
	if !want.CallsHome {
		if ack == "" { // the worker accepted it, so it must say what is wrong
			checkRefusal(t, f.Answer())
		}
		return
	}
	a := f.Answer()
	got := []planetest.Message{a.Introduction}
	for i := 0; len(in.Sends) > 0 && i < in.SendsAfter; i++ {
		m, _ := a.Next()
		got = append(got, m)
	}
	for _, s := range in.Sends {
		if _, err := a.Conn.Write(unhex(t, s)); err != nil {
			t.Fatal(err)
		}
	}
	rest := a.Rest()
	if len(in.Sends) > 0 { // tokens may have been on their way
		for _, m := range rest {
			if string(m.Header) == `"sentinel"` || bytes.Contains(m.Body, []byte("complete_final\xc3")) {
				t.Errorf("the worker went on to the end: %q", m)
			}
		}
		rest = nil
	}
	compare(t, fill, codecOf(t, control), append(got, rest...), want)
}

func checkAck(t *testing.T, ack string, want expectation) {
	t.Helper()
	unavailable := strings.HasPrefix(ack, "Server unavailable:")
	switch {
	case ack == want.Ack:
	case want.Ack == "" && !want.CallsHome && unavailable: // nobody could be told otherwise
	case strings.HasPrefix(want.Ack, "Server unavailable:") && unavailable:
	case want.Ack == "Invalid endpoint path" && unavailable:
	default:
		t.Errorf("acknowledged %q, want %q", ack, want.Ack)
	}
}

func checkOpen(t *testing.T, conn *planetest.Conn, open bool) {
	t.Helper()
	if !open {
		if !conn.Closed() {
			t.Error("the request connection is still open")
		}
		return
	}
	conn.Send("nobody", nil, nil, nil)
	if ack := conn.Ack(); !strings.HasPrefix(ack, "Server unavailable: unknown endpoint") {
		t.Errorf("the next request is acknowledged with %q", ack)
	}
}

// checkRefusal expects an answer that ends before it starts.
func checkRefusal(t *testing.T, a *planetest.Answer) {
	t.Helper()
	list := a.Rest()
	if len(list) != 2 || !strings.HasPrefix(string(list[0].Header), `{"error":"Generate Error: `) || string(list[1].Header) != `"sentinel"` {
		t.Errorf("answered %q, want an error prologue and the sentinel", list)
	}
}

func checkStream(t *testing.T, r *rig, c goldencase.Case) {
	var in struct {
		Body    any `json:"request_body"`
		Codec   string
		Payload string `json:"payload_codec"`
	}
	var want expectation
	if err := errors.Join(json.Unmarshal(c.Input, &in), json.Unmarshal(c.Expect, &want)); err != nil {
		t.Fatal(err)
	}
	var ids struct {
		Subject string
		ID      string `json:"request_id"`
	}
	_ = json.Unmarshal(c.Input, &ids)
	f := planetest.New(t)
	id := f.ID()
	conn := planetest.Dial(t, r.server.Addr())
	control := f.Control(id, in.Payload)
	conn.Send(generate.Path(), nil, control, encodeBody(t, codecOf(t, control), in.Body))
	if ack := conn.Ack(); ack != "" {
		t.Fatalf("acknowledged %q", ack)
	}
	a := f.Answer()
	fill := strings.NewReplacer(ids.Subject, planetest.Subject(id), ids.ID, id)
	compare(t, fill, codecOf(t, control), append([]planetest.Message{a.Introduction}, a.Rest()...), want)
}

func codecOf(t *testing.T, control []byte) requestplane.Codec {
	t.Helper()
	c, err := requestplane.ParseControl(control)
	if err != nil {
		t.Fatal(err)
	}
	codec, _ := c.Codec()
	return codec
}

// encodeBody encodes a recorded body; texts that start with "bin:" stand for bytes.
func encodeBody(t *testing.T, codec requestplane.Codec, body any) []byte {
	t.Helper()
	if codec == requestplane.JSON {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return marshal(t, restore(t, body))
}

func restore(t *testing.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = restore(t, v[k])
		}
	case []any:
		for i := range v {
			v[i] = restore(t, v[i])
		}
	case string:
		if b, ok := strings.CutPrefix(v, "bin:"); ok {
			return unhex(t, b)
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
