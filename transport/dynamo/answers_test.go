package dynamo

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
)

// client sends requests to one worker.
type client struct {
	t    *testing.T
	conn *planetest.Conn
	home *planetest.Frontend
}

func newClient(t *testing.T, r *rig) *client {
	return &client{t: t, conn: planetest.Dial(t, r.server.Addr()), home: planetest.New(t)}
}

// ask sends a body and returns the connection of its answer.
func (c *client) ask(body map[string]any) *planetest.Answer {
	c.t.Helper()
	c.conn.Send(generate.Path(), nil, c.home.Control(c.home.ID(), "msgpack"), marshal(c.t, body))
	if ack := c.conn.Ack(); ack != "" {
		c.t.Fatalf("acknowledged %q", ack)
	}
	return c.home.Answer()
}

func request(prompt []int, maxTokens any, more ...map[string]any) map[string]any {
	body := map[string]any{"token_ids": prompt, "stop_conditions": map[string]any{"max_tokens": maxTokens}}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	return body
}

// told returns the class and public text of an answer that is one in-stream error.
func told(t *testing.T, list []planetest.Message) (class, public string) {
	t.Helper()
	if len(list) != 4 || string(list[0].Header) != `{"error":null}` || string(list[3].Header) != `"sentinel"` {
		t.Fatalf("not one error in an orderly stream: %q", list)
	}
	var frame struct {
		Data struct {
			Event string `msgpack:"event"`
			Error struct {
				Class  string `msgpack:"class"`
				Public struct {
					Message string `msgpack:"message"`
				} `msgpack:"public"`
			} `msgpack:"error"`
		} `msgpack:"data"`
	}
	if err := requestplane.MsgPack.Unmarshal(list[1].Body, &frame); err != nil || frame.Data.Event != "error" {
		t.Fatalf("frame %q: %v", list[1].Body, err)
	}
	return frame.Data.Error.Class, frame.Data.Error.Public.Message
}

// TestClientMistakesAreToldInTheStream expects each mistake to reach its client, and the worker to stay in routing.
func TestClientMistakesAreToldInTheStream(t *testing.T) {
	s := plain(0, 0)
	s.config.MaxModelLen = 8
	c := newClient(t, start(t, s))
	long := make([]int, 8)
	handoff := map[string]any{"bootstrap_info": map[string]any{"bootstrap_host": "h", "bootstrap_port": 1, "bootstrap_room": 2,
		"handoff_id": make([]byte, 16)}}
	for text, body := range map[string]map[string]any{
		"is required by the mocker worker":             request([]int{1}, nil),
		"at least one output token":                    request([]int{1}, 0),
		"dp_rank 1 is out of bounds for dp_size 1":     request([]int{1}, 1, map[string]any{"routing": map[string]any{"dp_rank": 1}}),
		"cannot carry handoff metadata":                request([]int{1}, 1, handoff),
		"the prompt has 8 tokens, the model takes at ": request(long, 1),
	} {
		class, public := told(t, c.ask(body).Rest())
		if class != "InvalidRequest" || !strings.Contains(public, text) {
			t.Errorf("%s: the client is told %s %q", text, class, public)
		}
	}
	if list := c.ask(request([]int{1}, 2)).Rest(); len(list) != 6 {
		t.Errorf("the next request is answered with %q", list)
	}
}

func TestUndecodableBodiesAreRefused(t *testing.T) {
	c := newClient(t, start(t, plain(0, 0)))
	for name, body := range map[string]any{
		"no tokens":         map[string]any{"stop_conditions": map[string]any{"max_tokens": 1}},
		"negative token":    request([]int{-1}, 1),
		"wide token":        request([]int{1 << 33}, 1),
		"wide max_tokens":   request([]int{1}, 1<<32),
		"negative limit":    request([]int{1}, -1),
		"text as max":       request([]int{1}, "many"),
		"half packed token": map[string]any{"token_ids": []byte{1, 2, 3}},
		"text as handoff":   request([]int{1}, 1, map[string]any{"bootstrap_info": map[string]any{"handoff_id": "x"}}),
		"no map":            7,
	} {
		c.conn.Send(generate.Path(), nil, c.home.Control("r", "msgpack"), marshal(t, body))
		c.conn.Ack()
		list := c.home.Answer().Rest()
		if len(list) != 2 || !strings.Contains(string(list[0].Header), `"class":"InvalidRequest"`) {
			t.Errorf("%s: answered %q", name, list)
		}
	}
	for _, body := range []string{"\xdd\xff\xff\xff\xff", "\x81\xa9token_ids\xdd\xff\xff\xff\xff", strings.Repeat("\x91", 1<<20), ""} {
		c.conn.Send(generate.Path(), nil, c.home.Control("r", "msgpack"), []byte(body))
		c.conn.Ack()
		checkRefusal(t, c.home.Answer())
	}
}

// tokensOf returns the token ids of an answer.
func tokensOf(t *testing.T, list []planetest.Message) (tokens []uint32) {
	t.Helper()
	for _, m := range list {
		var frame struct {
			Data struct {
				Data struct {
					Tokens []uint32 `msgpack:"token_ids"`
				} `msgpack:"data"`
			} `msgpack:"data"`
		}
		if len(m.Body) == 0 {
			continue
		}
		if err := requestplane.MsgPack.Unmarshal(m.Body, &frame); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, frame.Data.Data.Tokens...)
	}
	return tokens
}

func TestTokensFollowSeedAndCounter(t *testing.T) {
	answers := func(seed uint64) (list [][]uint32) {
		r := start(t, plain(0, 0))
		r.generator.Seed = seed
		c := newClient(t, r)
		for range 2 {
			list = append(list, tokensOf(t, c.ask(request([]int{1, 2}, 50)).Rest()))
		}
		return list
	}
	first, again, other := answers(1), answers(1), answers(2)
	if !slices.Equal(first[0], again[0]) || !slices.Equal(first[1], again[1]) {
		t.Error("the same seed gives other tokens")
	}
	if slices.Equal(first[0], first[1]) || slices.Equal(first[0], other[0]) {
		t.Error("two answers have the same tokens")
	}
	for _, id := range slices.Concat(first[0], first[1], other[0]) {
		if id < 1000 || id > 1999 {
			t.Fatalf("token %d is outside 1000..1999", id)
		}
	}
	if len(first[0]) != 50 {
		t.Errorf("%d tokens, want 50", len(first[0]))
	}
}

// TestClientThatLeavesFreesItsBlocks looks at the pool after the frontend has dropped an answer.
func TestClientThatLeavesFreesItsBlocks(t *testing.T) {
	r := start(t, plain(1, 20))
	c := newClient(t, r)
	a := c.ask(request(make([]int, 500), 10_000))
	for range 3 {
		a.Next()
	}
	if l := r.worker.Load()[0]; l.ActiveBlocks == 0 || r.worker.InFlight() != 1 {
		t.Fatalf("a running request holds no blocks: %+v", l)
	}
	a.Send(`"kill"`)
	for end := time.Now().Add(planetest.Patience); r.worker.InFlight() > 0 || r.worker.Load()[0].ActiveBlocks > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("blocks are still held: %+v", r.worker.Load())
		}
	}
}

func TestPrefilledIsToldOnceForPlacedRequests(t *testing.T) {
	s := plain(0, 0)
	s.ranks = 2
	r := start(t, s)
	var mu sync.Mutex
	var told []int
	r.generator.Prefilled = func(_ string, rank int) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, rank)
	}
	c := newClient(t, r)
	c.ask(request([]int{1}, 5, map[string]any{"routing": map[string]any{"dp_rank": 1}})).Rest()
	c.ask(request([]int{1}, 5)).Rest()
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(told, []int{1}) {
		t.Errorf("told of ranks %v, want 1 alone", told)
	}
}

func TestClosedWorkerSendsRequestsElsewhere(t *testing.T) {
	r := start(t, plain(0, 0))
	r.worker.Close()
	c := newClient(t, r)
	list := c.ask(request([]int{1}, 1)).Rest()
	var prologue struct {
		Typed struct{ Reason string } `json:"typed_error"`
	}
	if err := json.Unmarshal(list[0].Header, &prologue); err != nil || prologue.Typed.Reason != "backend.engine_shutdown" {
		t.Errorf("answered %q: %v", list, err)
	}
}

// TestShortAnswersEndInOrder has an engine that gives fewer tokens than were asked for.
func TestShortAnswersEndInOrder(t *testing.T) {
	for quirks, want := range map[bool]string{false: `"length"`, true: `{"error":"` + textEarly + `"}`} {
		server, err := requestplane.Listen(requestplane.Options{Host: "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, plain(0, 0))
		g := &Generator{Worker: short{}, Quirks: quirks, Log: r.generator.Log}
		if _, err := server.Handle(generate, g); err != nil {
			t.Fatal(err)
		}
		c := newClient(t, &rig{server: server})
		list := c.ask(request([]int{1}, 5)).Rest()
		var last struct {
			Data struct {
				Data struct {
					Finish any `msgpack:"finish_reason"`
				} `msgpack:"data"`
			} `msgpack:"data"`
		}
		if err := requestplane.MsgPack.Unmarshal(list[len(list)-3].Body, &last); err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(last.Data.Data.Finish); string(text) != want {
			t.Errorf("quirks %v: finished with %s, want %s", quirks, text, want)
		}
		if n := len(tokensOf(t, list)); n != 2 && !quirks || n != 1 && quirks {
			t.Errorf("quirks %v: %d tokens", quirks, n)
		}
		server.Close()
	}
}

// short answers every request with two tokens.
type short struct{}

func (short) Ranks() int            { return 1 }
func (short) Config() engine.Config { return engine.DefaultConfig(engine.TRTLLM) }
func (short) Submit(live.Request) (*live.Stream, error) {
	s := live.NewStream(0, func() {})
	s.Push(live.Token{ID: 1, Cached: 0})
	s.Push(live.Token{ID: 2, Cached: -1})
	s.Close(live.Finished, nil)
	return s, nil
}
