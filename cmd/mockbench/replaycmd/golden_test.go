package replaycmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"mockbench/engine/goldentest"
)

// refusals pairs a part of the reference's texts with a part of ours.
var refusals = [][2]string{
	{"as the agentic Mooncake v2 header", "not the header of an agentic trace"},
	{"failed to parse line 1 ", "trace.jsonl:1: "}, {"failed to parse line 2 ", "trace.jsonl:2: "},
	{"did not contain any requests", "holds no requests"},
	{"is missing hash_ids", ":1: hash_ids is missing"}, {"is missing output_length", ":1: output_length is missing"},
	{"exceeds hash_ids capacity", "exceeds the "}, {"does not match output_token_ids", "differs from the "},
	{"must have a positive input_length", "input_length must be positive"},
	{"requires first_arrival_timestamp_ms", "has no timestamp"}, {"sets delay on the first turn", "delay of the first turn"},
	{"cannot infer delay", "gives no delay"}, {"has invalid delay", "delay must be finite and not negative"},
	{"trace_block_size must be greater", "--trace-block-size: got 0"}, {"agentic Mooncake block_size must", "block_size of the trace must be positive"},
	{"ratio must be a finite positive number", "--arrival-speedup-ratio: got "}, {"replay_concurrency must be at least 1", "--replay-concurrency: got "},
	{"router_mode must be either", `--router-mode: got "foo"`}, {"replay_mode must be either", `--replay-mode: got "foo"`},
	{"trace_format must be", `trace_format: got "foo"`}, {"aggregated pool must start", "--num-workers: got 0"},
	{"decode pool must start", "--num-decode-workers: got 0"}, {"only used for disagg replay", "for disaggregated fleets"},
	{"must be provided together", "must be given together"}, {"cannot be combined with prefill", "cannot be combined"},
	{"requires prefill_engine_args.worker_type", "--prefill-engine-args: got aggregated"},
	{"requires decode_engine_args.worker_type", "--decode-engine-args: got prefill"},
	{"only supports aggregated workers", "--extra-engine-args: got decode"}, {"matching prefill/decode block_size", "block_size: got 64"},
	{"matching backend engine types", "backend: got sglang"}, {"num_workers is only used for aggregated", "--num-workers: got 2"},
	{"disagg replay only supports replay_mode", "--replay-mode: got online"},
	{"sla_itl_ms must be a finite", "--sla-itl-ms: got -1"}, {"sla.itl_ms must be finite and positive", "--sla-itl-ms: got 0"},
	{"mutually exclusive with", "--sla-e2e-ms: got 1, stands alone"}, {"max_sim_time_ms must be", "--max-sim-time-ms: got -1"},
	{"kv_event_lag_ms only supports", "needs --router-mode kv_router"}, {"kv_event_lag_ms must be finite", "--kv-event-lag-ms: got -1"},
	{"agentic_lanes requires", "--agentic-lanes: got 2"}, {"agentic_lanes must be at least 1", "--agentic-lanes: got 0"},
	{"requires replay_concurrency because", "needs --replay-concurrency"}, {"telemetry_sample_interval_ms must", "--telemetry-interval-ms: got 0"},
	{"model_name must be non-empty", "--model-name: got \"\""}, {"weka_nested_timestamp_basis requires", "weka-nested-timestamp-basis"},
	{"unknown field `nope`", "engine.nope: "}, {"unknown field `block_size`", "block_size: "}, {"unknown variant `foo`", "engine.backend: got "},
	{"requires a configured target model", "--execution-model: is needed"}, {"cycle detected among 2", "2 requests wait for one another in a circle: a, b"},
	{"references unknown request_id z", "depends on request z, which does not exist"}, {"duplicates request_id a", ":3: request_id a was used before"},
	{"cannot depend on itself", "request a depends on itself"}, {"unsupported agentic Mooncake version", "version 1 of agentic traces"},
	{"in play q depends on", "request b of play q depends on request a of play p"}, {"requires exactly 1 hash_ids", "needs 1 hash_ids of 64 tokens, got 2"},
	{"has an empty model", ":2: model must not be blank"}, {"invalid Sequence dependency", ":3: relation sequence goes with trigger completion"},
	{"not supported with replay_concurrency", "has no concurrency"},
}

type refused struct {
	Name  string
	Input struct {
		Text, File string
		Args       map[string]json.RawMessage
	}
	Expect map[string]any
}

// commandLine writes the arguments of a recorded call as flags.
func commandLine(args map[string]json.RawMessage) (line []string) {
	for name, value := range args {
		text := string(value)
		var word string
		if json.Unmarshal(value, &word) == nil {
			text = word
		}
		switch name {
		case "capture_per_request":
			line = append(line, "--report-jsonl=records.jsonl")
			continue
		case "capture_telemetry":
			line = append(line, "--telemetry-jsonl=telemetry.jsonl")
			continue
		case "telemetry_sample_interval_ms":
			name = "telemetry_interval_ms"
		}
		line = append(line, "--"+strings.ReplaceAll(name, "_", "-")+"="+text)
	}
	sort.Strings(line)
	return line
}

// TestGoldenReplay runs what the reference accepts and refuses, as command lines.
func TestGoldenReplay(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(goldentest.Dir(t, "replay"), "errors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []refused
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { checkLine(t, &c) })
	}
}

func checkLine(t *testing.T, c *refused) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(c.Input.File, []byte(c.Input.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	line := append([]string{c.Input.File, "--report-json=-", "--quiet"}, commandLine(c.Input.Args)...)
	status := Main(line, &stdout, &stderr)
	if _, records := c.Input.Args["capture_per_request"]; records && string(c.Input.Args["replay_mode"]) == `"online"` {
		if status != exitOK { // the reference has another way for records of online runs; we have one for both
			t.Fatalf("status %d: %s", status, &stderr)
		}
		return
	}
	if c.Expect["ok"] == true {
		checkAccepted(t, c, status, &stdout, &stderr)
		return
	}
	if status == exitOK || status == exitLimits {
		t.Fatalf("%v: status %d", line, status)
	}
	want := c.Expect["error"].(string)
	for _, r := range refusals {
		if strings.Contains(want, r[0]) {
			if !strings.Contains(stderr.String(), r[1]) {
				t.Errorf("%v: got %s, want %q for %q", line, stderr.String(), r[1], want)
			}
			return
		}
	}
	t.Fatalf("nothing is known of %q, got %s", want, stderr.String())
}

func checkAccepted(t *testing.T, c *refused, status int, stdout, stderr *bytes.Buffer) {
	t.Helper()
	if status != exitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var got struct{ Summary map[string]any }
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range c.Expect {
		w, number := want.(float64)
		if !number {
			continue
		}
		if g, ok := got.Summary[key].(float64); !ok || math.Abs(g-w) > 1e-9*max(1, w) {
			t.Errorf("%s is %v, want %v", key, got.Summary[key], fmt.Sprint(w))
		}
	}
}
