package bootstrap

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"mockbench/engine"
	"mockbench/transport/goldencase"
)

// TestGoldenDisagg replays what was recorded of the reference: decisions, prices of transfers, and conversations.
func TestGoldenDisagg(t *testing.T) {
	for file, check := range map[string]func(*testing.T, goldencase.Case){
		"coordinator.json":           checkCoordinator,
		"transfer_delay.json":        checkDelay,
		"bootstrap_transcripts.json": checkTranscript,
	} {
		for _, c := range goldencase.Read(t, "disagg", file) {
			t.Run(file+"/"+c.Name, func(t *testing.T) { check(t, c) })
		}
	}
}

const tolerance = 1e-12

func near(a, b float64) bool { return math.Abs(a-b) <= tolerance*math.Max(math.Abs(a), math.Abs(b)) }

func checkDelay(t *testing.T, c goldencase.Case) {
	var in struct {
		Timing  Timing
		Missing int `json:"destination_missing_tokens"`
	}
	var want struct {
		Delay *float64 `json:"delay_ms"`
		Full  *float64 `json:"full_prompt_delay_ms"`
		Valid bool
	}
	goldencase.Parse(t, c.Input, &in)
	goldencase.Parse(t, c.Expect, &want)
	compare := func(what string, want *float64, got float64, ok bool) {
		if (want != nil) != ok || ok && !near(*want, got) {
			t.Errorf("%s: got %v, %v", what, got, ok)
		}
	}
	ms, ok := in.Timing.Delay(in.Missing)
	compare("delay", want.Delay, ms, ok)
	ms, ok = in.Timing.Of(in.Timing.Tokens)
	compare("delay of the whole prompt", want.Full, ms, ok)
	if err := in.Timing.Check(); (err == nil) != want.Valid {
		t.Errorf("valid: got %v", err)
	}
}

// namedTiming reads texts such as "full_prompt,100 tok,131072 B,1 GB/s".
func namedTiming(t *testing.T, text string) Timing {
	t.Helper()
	parts := strings.Split(text, ",")
	number := func(i int) *float64 {
		v, err := strconv.ParseFloat(strings.Fields(parts[i])[0], 64)
		if err != nil {
			return nil
		}
		return &v
	}
	out := Timing{Mode: Mode(parts[0]), Tokens: int(*number(1))}
	if n := number(2); n != nil {
		bytes := uint64(*n)
		out.BytesPerToken = &bytes
	}
	out.BandwidthGBps = (*decimal)(number(3))
	return out
}

type coordinatorStep struct {
	Do         string
	Actions    []map[string]any
	Complete   bool
	Completion *string
	Error      string
}

func checkCoordinator(t *testing.T, c goldencase.Case) {
	var in struct {
		Order   Order
		Script  []string
		Timings map[string]string `json:"held_timings"`
	}
	var want struct{ Steps []json.RawMessage }
	goldencase.Parse(t, c.Input, &in)
	goldencase.Parse(t, c.Expect, &want)
	handoff := uuid.MustParse("aaaaaaaa-0000-4000-8000-000000000001")
	co := NewCoordinator(handoff, in.Order)
	for i, do := range in.Script {
		if i >= len(want.Steps) {
			break // the recording ends with an error
		}
		var step coordinatorStep
		goldencase.Parse(t, want.Steps[i], &step)
		word, rest, _ := strings.Cut(do, ":")
		var actions []Action
		var err error
		switch word {
		case "start":
			actions = co.Start()
		case "held":
			actions, err = co.Held(handoff, namedTiming(t, in.Timings[rest]))
		case "held_other":
			actions, err = co.Held(uuid.New(), Timing{Mode: FullPrompt})
		case "reserved":
			n, _ := strconv.Atoi(rest)
			actions, err = co.Reserved(handoff, n)
		case "xfer":
			actions, err = co.Transferred()
		case "failed", "timedout", "canceled":
			actions = co.Cleanup()
		case "ack":
			id, outcome, _ := strings.Cut(rest, ":")
			n, _ := strconv.ParseUint(id, 10, 64)
			actions, err = co.Ack(n, Outcome{Kind: outcome})
		default:
			t.Fatalf("unknown step %q", do)
		}
		compareStep(t, do, step, co, actions, err, handoff)
	}
}

func compareStep(t *testing.T, do string, want coordinatorStep, co *Coordinator, actions []Action, err error, handoff uuid.UUID) {
	t.Helper()
	got := coordinatorStep{Do: want.Do, Complete: co.Completion() != ""}
	if err != nil {
		got.Error = err.Error()
	} else {
		got.Actions = []map[string]any{}
	}
	if how := string(co.Completion()); how != "" {
		got.Completion = &how
	}
	for _, a := range actions {
		body := map[string]any{"handoff_id": handoff.String()}
		if a.Kind == StartTransfer {
			body["delay_ms"] = a.DelayMS
		}
		got.Actions = append(got.Actions, map[string]any{"id": float64(a.ID), "action": map[string]any{string(a.Kind): body}})
	}
	if d := cmp.Diff(want, got, cmp.Comparer(near)); d != "" {
		t.Errorf("%s (-want +got)\n%s", do, d)
	}
}

// checkTranscript lets a prefill and a decode worker of ours talk and compares every byte.
func checkTranscript(t *testing.T, c goldencase.Case) {
	var in struct {
		Engine    engine.Backend `json:"engine_type"`
		BlockSize int            `json:"block_size"`
		Bandwidth float64        `json:"kv_transfer_bandwidth"`
		Bytes     int            `json:"kv_bytes_per_token"`
		Prompt    int            `json:"prompt_tokens"`
		Mode      string         `json:"timing_mode"`
		Identity  Identity
	}
	var want struct {
		Wire []struct{ Dir, Hex string }
	}
	goldencase.Parse(t, c.Input, &in)
	goldencase.Parse(t, c.Expect, &want)
	cfg := engine.DefaultConfig(in.Engine)
	cfg.BlockSize, cfg.KVTransferBandwidth, cfg.KVTransferBytesPerToken, cfg.KVTransferTimingMode = in.BlockSize, in.Bandwidth, in.Bytes, in.Mode
	p := newPair(t, cfg)
	wire := p.record()
	p.transfer(t, in.Identity, in.Prompt, 3).succeed(t)
	expect := map[string][]byte{}
	for _, w := range want.Wire {
		b, err := hex.DecodeString(w.Hex)
		if err != nil {
			t.Fatal(err)
		}
		expect[w.Dir] = append(expect[w.Dir], b...)
	}
	for direction, got := range wire.bytes() {
		if !bytes.Equal(got, expect[direction]) {
			t.Errorf("%s:\ngot  %q\nwant %q", direction, got, expect[direction])
		}
	}
	if n := len(expect); n != 2 {
		t.Error(fmt.Sprint("recorded directions: ", n))
	}
}
