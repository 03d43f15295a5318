package dynamo

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"mockbench/engine"
	"mockbench/transport/bootstrap"
	"mockbench/transport/goldencase"
	"mockbench/transport/requestplane/planetest"
)

// TestGoldenDisagg replays what was recorded of prefill and decode workers: their answers, their conversations with a
// scripted decode worker, and the requests of the real frontend.
func TestGoldenDisagg(t *testing.T) {
	for file, check := range map[string]func(*testing.T, goldencase.Case){
		"worker_outputs.json":           checkWorkerOutput,
		"bootstrap_peer_scenarios.json": checkScenario,
		"frontend_requests.json":        checkLegs,
	} {
		for _, c := range goldencase.Read(t, "disagg", file) {
			t.Run(file+"/"+c.Name, func(t *testing.T) { check(t, c) })
		}
	}
}

// roleRig is a prefill or decode worker. A prefill worker has a bootstrap server.
type roleRig struct {
	*rig
	server *bootstrap.Server
}

func startRole(t *testing.T, role engine.Role, change func(*setup), options ...func(*bootstrap.Options)) *roleRig {
	t.Helper()
	s := plain(20, 1)
	s.config.Role, s.quirks = role, true
	if change != nil {
		change(&s)
	}
	r := &roleRig{rig: start(t, s)}
	if role == engine.PrefillRole {
		o := bootstrap.Options{Address: "127.0.0.1:0", Engine: r.worker.Config(), Limit: 16, Timeout: time.Minute}
		for _, f := range options {
			f(&o)
		}
		var err error
		if r.server, err = bootstrap.Listen(o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.server.Close() })
		r.generator.Handoffs.Server = r.server
	}
	t.Cleanup(r.generator.Handoffs.Close)
	return r
}

// bootstrapInfo is how a request says where the source is.
func (r *roleRig) bootstrapInfo(id bootstrap.Identity) map[string]any {
	at := r.server.Addr().(*net.TCPAddr)
	return map[string]any{"bootstrap_host": at.IP.String(), "bootstrap_port": at.Port, "bootstrap_room": id.Room, "handoff_id": id.Handoff[:]}
}

// post sends a request with an id of the caller's.
func (r *roleRig) post(t *testing.T, id uuid.UUID, body map[string]any) *planetest.Answer {
	t.Helper()
	f, conn := planetest.New(t), planetest.Dial(t, r.rig.server.Addr())
	conn.Send(endpointOf(r.worker.Config().Role).Path(), nil, f.Control(id.String(), "msgpack"), marshal(t, body))
	if ack := conn.Ack(); ack != "" {
		t.Fatalf("acknowledged %q", ack)
	}
	return f.Answer()
}

// normal returns frames in the form of recorded ones: nothing that is absent, and the range in place of a token.
func normal(t *testing.T, raw any) any {
	t.Helper()
	data, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	data = []byte(strings.ReplaceAll(string(data), "<random ", "<"))
	data = []byte(strings.ReplaceAll(strings.ReplaceAll(string(data), `\u003c`, "<"), `\u003e`, ">"))
	data = []byte(strings.ReplaceAll(strings.ReplaceAll(string(data), `"<random 1000..1999>"`, `"R"`), `"<1000..1999>"`, `"R"`))
	var list []map[string]any
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for _, frame := range list {
		delete(frame, "output_type")
		for k, v := range frame {
			if v == nil {
				delete(frame, k)
			}
		}
	}
	return plainJSON(t, list)
}

func checkWorkerOutput(t *testing.T, c goldencase.Case) {
	var in struct {
		Prompt     int  `json:"prompt_tokens"`
		MaxTokens  int  `json:"max_tokens"`
		MaxAsked   int  `json:"max_tokens_in_request"`
		Bootstrap  *any `json:"bootstrap_info"`
		SourceGone bool
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		t.Fatal(err)
	}
	var fails struct {
		Text string `json:"pre_stream_error"`
	}
	if json.Unmarshal(c.Expect, &fails) == nil {
		body := request([]int{1, 2}, 1, map[string]any{"bootstrap_info": map[string]any{"bootstrap_host": "127.0.0.1",
			"bootstrap_port": closedPort(t), "bootstrap_room": 1, "handoff_id": make([]byte, 16)}})
		roles := []engine.Role{engine.DecodeRole}
		if in.Bootstrap != nil {
			body["bootstrap_info"].(map[string]any)["handoff_id"] = nil
			roles = append(roles, engine.PrefillRole)
		}
		for _, role := range roles {
			list := startRole(t, role, nil).post(t, uuid.New(), body).Rest()
			if !strings.Contains(string(list[0].Header), fmt.Sprintf(`"error":"Generate Error: %s"`, fails.Text)) {
				t.Errorf("%s: answered %q", role, list)
			}
		}
		return
	}
	role := engine.DecodeRole
	if strings.HasPrefix(c.Name, "prefill") {
		role = engine.PrefillRole
	}
	chunks, failure := chunksOf(t, startRole(t, role, nil).post(t, uuid.New(), request(make([]int, in.Prompt), max(in.MaxTokens, in.MaxAsked))).Rest())
	var want any
	if err := json.Unmarshal(c.Expect, &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(normal(t, want), any(chunks)); d != "" || failure != "" {
		t.Errorf("%s (-want +got)\n%s", failure, d)
	}
}

// closedPort is a port that nobody listens on.
func closedPort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// peerEvent is what a scripted decode worker sent or received.
type peerEvent struct {
	Peer  string
	Time  float64 `json:"t_s"`
	Frame *struct {
		Identity bootstrap.Identity
		Message  json.RawMessage
	}
	raw json.RawMessage
}

// UnmarshalJSON keeps the frame as it was recorded, too.
func (e *peerEvent) UnmarshalJSON(b []byte) error {
	type plain peerEvent
	var raw struct{ Frame json.RawMessage }
	err := errors.Join(json.Unmarshal(b, (*plain)(e)), json.Unmarshal(b, &raw))
	e.raw = raw.Frame
	return err
}

// openings are how a scripted peer begins, if not with a proper preface, by the reason of the case.
var openings = map[string]string{"wrong magic": "444d485801000000", "version 2": "444d484602000000", "zero-length frame": "444d48460100000000000000"}

func checkScenario(t *testing.T, c goldencase.Case) {
	var in struct {
		Mode string `json:"timing_mode"`
	}
	var want struct {
		Events []peerEvent            `json:"peer_events"`
		Stream []struct{ Output any } `json:"prefill_stream"`
	}
	if err := errors.Join(json.Unmarshal(c.Input, &in), json.Unmarshal(c.Expect, &want)); err != nil {
		t.Fatal(err)
	}
	rendezvous := func(o *bootstrap.Options) {
		if want.Stream == nil {
			o.Rendezvous = 50 * time.Millisecond // recorded with 30 s
		}
	}
	r := startRole(t, engine.PrefillRole, func(s *setup) {
		s.config.KVTransferBandwidth, s.config.KVTransferBytesPerToken, s.config.KVTransferTimingMode = 1, 131072, in.Mode
	}, rendezvous)
	prompt := make([]int, 100)
	r.post(t, uuid.New(), request(prompt, 1)).Rest() // the recorded worker had seen the prompt before
	peer := &scriptedPeer{t: t, r: r, sourceFirst: want.Stream != nil && len(want.Events) > 1 && want.Events[1].Time < 0.2}
	peer.post = func(id bootstrap.Identity) {
		if want.Stream != nil && peer.answer == nil {
			if peer.sourceFirst {
				id.Room = 7 // the recorded difference: another room
			}
			peer.answer = r.post(t, id.Request, request(prompt, 1, map[string]any{"bootstrap_info": r.bootstrapInfo(id)}))
		}
	}
	peer.play(want.Events, c)
	if want.Stream == nil {
		return
	}
	chunks, failure := chunksOf(t, peer.answer.Rest())
	var outputs []any
	for _, s := range want.Stream {
		outputs = append(outputs, s.Output)
	}
	expected := normal(t, outputs)
	if d := cmp.Diff(expected, any(chunks)); (d != "" || failure != "") && !raced(expected, chunks) {
		t.Errorf("%s (-want +got)\n%s", failure, d)
	}
}

// raced reports whether an answer differs only in which of two texts the reference happened to end it with.
func raced(want any, got []any) bool {
	list, _ := want.([]any)
	if len(list) != 1 || len(got) != 1 {
		return false
	}
	text := func(v any) any {
		finish, _ := v.(map[string]any)["finish_reason"].(map[string]any)
		return finish["error"]
	}
	return text(list[0]) == textGone && text(got[0]) == "handoff participant identity or backend mismatch"
}

// scriptedPeer is a decode worker that does again what a recorded one did.
type scriptedPeer struct {
	t           *testing.T
	r           *roleRig
	conn        net.Conn
	sourceFirst bool // the request is at the prefill worker before the peer connects
	post        func(bootstrap.Identity)
	answer      *planetest.Answer
}

func (p *scriptedPeer) play(events []peerEvent, c goldencase.Case) {
	opening, malformed := openings[c.Why]
	if !malformed {
		opening = "444d484601000000"
	}
	if first := events[0]; p.sourceFirst && first.Frame != nil {
		p.post(first.Frame.Identity)
		p.waitFor("the source waits", func() bool { n, _ := p.r.server.Counts(); return n == 1 })
	}
	var err error
	if p.conn, err = net.Dial("tcp", p.r.server.Addr().String()); err != nil {
		p.t.Fatal(err)
	}
	defer p.conn.Close()
	_ = p.conn.SetDeadline(time.Now().Add(planetest.Patience))
	raw, err := hex.DecodeString(opening)
	if err != nil {
		p.t.Fatal(err)
	}
	_, _ = p.conn.Write(raw)
	for i, e := range events {
		switch e.Peer {
		case "send":
			if i > 0 && string(events[i-1].Frame.Message) == `"Registered"` {
				p.waitForThePass()
			}
			_, _ = p.conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(e.raw))), e.raw...))
			if i == 0 && slices.ContainsFunc(events, func(e peerEvent) bool { return e.Peer == "recv" }) {
				p.post(e.Frame.Identity)
			}
		case "recv":
			p.receive(e)
		case "eof":
			if n, err := p.conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				p.t.Errorf("the connection goes on: %d, %v", n, err)
			}
		}
	}
}

// waitForThePass gives the prefill worker the time that the recorded peer had let it have.
func (p *scriptedPeer) waitForThePass() {
	p.waitFor("the prompt is computed", func() bool {
		var s engine.Snapshot
		return p.r.worker.Inspect(0, &s) == nil && s.Load.ActiveBlocks > 0
	})
}

func (p *scriptedPeer) receive(e peerEvent) {
	p.t.Helper()
	head := make([]byte, 4)
	if _, err := io.ReadFull(p.conn, head); err != nil {
		p.t.Fatalf("want %s: %v", e.raw, err)
	}
	payload := make([]byte, binary.LittleEndian.Uint32(head))
	if _, err := io.ReadFull(p.conn, payload); err != nil {
		p.t.Fatal(err)
	}
	if string(payload) != string(e.raw) {
		p.t.Errorf("got  %s\nwant %s", payload, e.raw)
	}
}

func (p *scriptedPeer) waitFor(what string, holds func() bool) {
	p.t.Helper()
	for end := time.Now().Add(planetest.Patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("not in time: %s", what)
		}
	}
}

// checkLegs sends both requests of the real frontend to workers of ours.
func checkLegs(t *testing.T, c goldencase.Case) {
	var in struct {
		MaxTokens int `json:"max_tokens"`
	}
	var legs []struct {
		Role    engine.Role
		Request map[string]any
	}
	if err := errors.Join(json.Unmarshal(c.Input, &in), json.Unmarshal(c.Expect, &legs)); err != nil {
		t.Fatal(err)
	}
	workers := map[engine.Role]*roleRig{engine.PrefillRole: startRole(t, engine.PrefillRole, nil), engine.DecodeRole: startRole(t, engine.DecodeRole, nil)}
	id := bootstrap.Identity{Handoff: uuid.New(), Room: 1 << 62, Request: uuid.New()}
	answers := map[engine.Role]*planetest.Answer{}
	for _, leg := range legs {
		body := leg.Request
		if _, ok := body["bootstrap_info"]; ok {
			body["bootstrap_info"] = workers[engine.PrefillRole].bootstrapInfo(id)
		}
		body["mdc_sum"] = strings.Repeat("0", 64)
		body["routing"].(map[string]any)["prefill_worker_id"] = 12345
		answers[leg.Role] = workers[leg.Role].post(t, id.Request, whole(body).(map[string]any))
	}
	for role, n := range map[engine.Role]int{engine.PrefillRole: 1, engine.DecodeRole: in.MaxTokens} {
		list := answers[role].Rest()
		if got := len(tokensOf(t, list)); got != n {
			t.Errorf("%s: %d tokens, want %d: %q", role, got, n, list)
		}
	}
}

// whole turns numbers that JSON has read into integers.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = whole(x)
		}
	case []any:
		for i, x := range v {
			v[i] = whole(x)
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}
