package dynamo

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
	"mockbench/engine/outputs"
	"mockbench/transport/goldencase"
	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
)

// primitives are the kinds of rule that this package implements.
var primitives = map[string]func(*testing.T, goldencase.Case){
	"packed-tokens":  checkPackedTokens,
	"sglang-logprob": checkLogprob,
	"output-length":  checkOutputLength,
}

func checkPackedTokens(t *testing.T, c goldencase.Case) {
	var in struct {
		Hex string `json:"msgpack_hex"`
	}
	var want struct {
		Tokens []uint32 `json:"token_ids"`
		Error  string
	}
	if err := errors.Join(json.Unmarshal(c.Input, &in), json.Unmarshal(c.Expect, &want)); err != nil {
		t.Fatal(err)
	}
	var got Tokens
	err := requestplane.MsgPack.Unmarshal(unhex(t, in.Hex), &got)
	if (err != nil) != (want.Error != "") || err == nil && fmt.Sprint(got) != fmt.Sprint(want.Tokens) {
		t.Errorf("got %v, %v, want %v, %q", got, err, want.Tokens, want.Error)
	}
}

func checkLogprob(t *testing.T, c goldencase.Case) {
	var in struct {
		Token uint32 `json:"token_id"`
		Top   int
	}
	var want struct {
		Logprob float64
		Top     [][3]*float64
	}
	if err := errors.Join(json.Unmarshal(c.Input, &in), json.Unmarshal(c.Expect, &want)); err != nil {
		t.Fatal(err)
	}
	const tolerance = 1e-12
	if got := logprob(in.Token); math.Abs(got-want.Logprob) > tolerance {
		t.Errorf("got %v, want %v", got, want.Logprob)
	}
	for k, alternative := range want.Top {
		if got := topLogprob(in.Token+uint32(k), k); math.Abs(got-*alternative[0]) > tolerance || in.Token+uint32(k) != uint32(*alternative[1]) {
			t.Errorf("alternative %d: got %v, want %v", k, got, *alternative[0])
		}
	}
}

func checkOutputLength(t *testing.T, c goldencase.Case) {
	var in struct {
		MaxLen    int `json:"max_len"`
		Prompt    int
		MaxTokens int `json:"max_tokens"`
	}
	var want struct{ Tokens int }
	if err := errors.Join(json.Unmarshal(c.Input, &in), json.Unmarshal(c.Expect, &want)); err != nil {
		t.Fatal(err)
	}
	s := plain(0, 0)
	s.config.MaxModelLen = in.MaxLen
	client := newClient(t, start(t, s))
	if got := len(tokensOf(t, client.ask(request(make([]int, in.Prompt), in.MaxTokens)).Rest())); got != want.Tokens {
		t.Errorf("got %d tokens, want %d", got, want.Tokens)
	}
}

type outputCase struct {
	Args        []string `json:"worker_args"`
	Prompt      []int    `json:"prompt_token_ids"`
	MaxTokens   *int     `json:"max_tokens"`
	Annotations []string
	Extra       map[string]any `json:"request_extra"`
	Trace       string         `json:"trace_jsonl"`
}

// TestGoldenOutputs replays what the reference worker answered. The cases of one group share a worker.
func TestGoldenOutputs(t *testing.T) {
	rigs := map[string]*rig{}
	for _, c := range goldencase.Read(t, "outputs", "worker-streams.jsonl") {
		t.Run(c.Name, func(t *testing.T) {
			var in outputCase
			if err := json.Unmarshal(c.Input, &in); err != nil {
				t.Fatal(err)
			}
			group := c.Name[:strings.LastIndexByte(c.Name, '-')]
			if rigs[group] == nil {
				rigs[group] = startArgs(t, in)
			}
			checkOutputs(t, rigs[group], in, c)
		})
	}
	for _, r := range rigs {
		r.worker.Close()
		r.server.Close()
	}
}

// startArgs starts the worker of a group. It outlives the case that starts it.
func startArgs(t *testing.T, in outputCase) *rig {
	t.Helper()
	s := setup{ranks: 1, quirks: true, config: engine.DefaultConfig(engine.VLLM)}
	value := func(flag string) string {
		for i, a := range in.Args {
			if a == flag {
				return in.Args[i+1]
			}
		}
		return ""
	}
	number := func(flag string, to *int) {
		if v := value(flag); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil {
				t.Fatal(err)
			}
			*to = n
		}
	}
	if v := value("--engine-type"); v != "" {
		s.config = engine.DefaultConfig(engine.Backend(v))
	}
	if v := value("--disaggregation-mode"); v != "" {
		s.config.Role = engine.Role(v)
	}
	number("--block-size", &s.config.BlockSize)
	number("--num-gpu-blocks-override", &s.config.NumGPUBlocks)
	number("--max-model-len", &s.config.MaxModelLen)
	number("--ais-nextn", &s.config.Nextn)
	number("--data-parallel-size", &s.ranks)
	s.config.NextnAcceptRates = value("--ais-nextn-accept-rates")
	s.config.SpeedupRatio = 1000
	if s.config.Nextn > 0 {
		s.config.DecodeSpeedupRatio = 1
	}
	if v := value("--reasoning"); v != "" {
		r, _, err := outputs.ParseReasoning(v)
		if err != nil {
			t.Fatal(err)
		}
		s.reasoning = r
	}
	if value("--response-replay-trace-path") != "" {
		s.replay = in.Trace
	}
	return startKept(t, s)
}

func checkOutputs(t *testing.T, r *rig, in outputCase, c goldencase.Case) {
	var want struct {
		Chunks []any
		Error  string
	}
	if err := json.Unmarshal(c.Expect, &want); err != nil {
		t.Fatal(err)
	}
	body := map[string]any{"token_ids": in.Prompt, "annotations": in.Annotations, "stop_conditions": map[string]any{"max_tokens": in.MaxTokens}}
	for k, v := range in.Extra {
		body[k] = restore(t, v)
	}
	name := endpointOf(r.worker.Config().Role)
	f, conn := planetest.New(t), planetest.Dial(t, r.server.Addr())
	conn.Send(name.Path(), nil, f.Control("11111111-2222-4333-8444-555555555555", "msgpack"), marshal(t, body))
	if ack := conn.Ack(); ack != "" {
		t.Fatalf("acknowledged %q", ack)
	}
	chunks, failure := chunksOf(t, f.Answer().Rest())
	if d := cmp.Diff(want.Chunks, chunks); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if named, _, ok := strings.Cut(failure, ": "); ok && strings.HasPrefix(failure, "invalid extra_args") {
		failure = named
	}
	if (want.Error == "") != (failure == "") || !strings.Contains(want.Error, failure) {
		t.Errorf("failed with %q, want %q", failure, want.Error)
	}
}

// chunksOf returns an answer in the form of the recorded ones: without what is absent, and with random tokens as "R".
func chunksOf(t *testing.T, list []planetest.Message) (chunks []any, failure string) {
	t.Helper()
	chunks = []any{}
	for _, m := range list {
		if len(m.Body) == 0 {
			var prologue struct {
				Typed struct{ Message string } `json:"typed_error"`
			}
			_ = json.Unmarshal(m.Header, &prologue) // the sentinel is no object
			failure += prologue.Typed.Message
			continue
		}
		var frame any
		if err := requestplane.MsgPack.Unmarshal(m.Body, &frame); err != nil {
			t.Fatal(err)
		}
		annotated, _ := plainJSON(t, frame).(map[string]any)["data"].(map[string]any)
		if e, ok := annotated["error"].(map[string]any); ok {
			text := e["message"]
			if public, ok := e["public"].(map[string]any); ok {
				text = public["message"]
			}
			failure += text.(string)
		}
		data, ok := annotated["data"].(map[string]any)
		if !ok {
			continue
		}
		delete(data, "output_type")
		for k, v := range data {
			if v == nil {
				delete(data, k)
			}
		}
		for i, id := range data["token_ids"].([]any) {
			if n := id.(float64); n >= 1000 && n < 2000 {
				data["token_ids"].([]any)[i] = "R"
			}
		}
		chunks = append(chunks, any(data))
	}
	return chunks, failure
}

func plainJSON(t *testing.T, v any) (plain any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}
