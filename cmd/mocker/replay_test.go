package mocker_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mockbench/cmd/mocker"
)

const mooncake = `{"timestamp": 0, "input_length": 600, "output_length": 4, "hash_ids": [1, 2]}
{"timestamp": 5, "input_length": 700, "output_length": 4, "hash_ids": [1, 3]}
`

func writeTrace(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(mooncake), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What the reference's function refuses is refused, with the setting in the error.
func TestTraceReplayRefuses(t *testing.T) {
	file := writeTrace(t)
	for _, c := range []struct {
		names string
		files []string
		o     mocker.ReplayOptions
	}{
		{"trace", nil, mocker.ReplayOptions{}},
		{"no-such-file", []string{"no-such-file"}, mocker.ReplayOptions{}},
		{"--router-mode", []string{file}, mocker.ReplayOptions{RouterMode: "least-loaded"}},
		{"--arrival-speedup-ratio", []string{file}, mocker.ReplayOptions{ArrivalSpeedupRatio: -1}},
		{"--arrival-speedup-ratio", []string{file}, mocker.ReplayOptions{ArrivalSpeedupRatio: math.Inf(1)}},
		{"--arrival-speedup-ratio", []string{file}, mocker.ReplayOptions{ArrivalSpeedupRatio: math.NaN()}},
		{"--trace-block-size", []string{file}, mocker.ReplayOptions{TraceBlockSize: -1}},
		{"--replay-concurrency", []string{file}, mocker.ReplayOptions{ReplayConcurrency: -1}},
		{"--num-workers", []string{file}, mocker.ReplayOptions{NumWorkers: -1}},
		{"trace_format", []string{file}, mocker.ReplayOptions{TraceFormat: "csv"}},
		{"engine.nope", []string{file}, mocker.ReplayOptions{ExtraEngineArgs: `{"engine": {"nope": 1}}`}},
		{"--extra-engine-args", []string{file}, mocker.ReplayOptions{ExtraEngineArgs: "engine.json"}},
		{"--extra-engine-args", []string{file}, mocker.ReplayOptions{ExtraEngineArgs: "@engine.json"}},
		{"--router-config", []string{file}, mocker.ReplayOptions{RouterMode: "kv_router", RouterConfig: "@router.json"}},
		{"--agentic-lanes", []string{file}, mocker.ReplayOptions{AgenticLanes: 2}},
		{"--execution-model", []string{file}, mocker.ReplayOptions{ExecutionModel: " "}},
		{"--execution-model", []string{file}, mocker.ReplayOptions{TraceFormat: "weka"}},
		{"--sla-e2e-ms", []string{file}, mocker.ReplayOptions{SLAE2EMS: 1, SLATTFTMS: 1}},
	} {
		r, err := mocker.RunTraceReplay(t.Context(), c.files, c.o)
		if err == nil || r != nil {
			t.Errorf("%+v is accepted", c.o)
			continue
		}
		if !strings.Contains(err.Error(), c.names) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: got %v, want one line with %s", c.o, err, c.names)
		}
	}
}

// The options reach the run, and the report is the one of the command.
func TestTraceReplayReports(t *testing.T) {
	file := writeTrace(t)
	r, err := mocker.RunTraceReplay(t.Context(), []string{file}, mocker.ReplayOptions{NumWorkers: 2, RouterMode: "kv_router",
		ReplayConcurrency: 1, TraceSharedPrefixRatio: 0.5, SLATTFTMS: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	if r.PerRequest != nil || len(r.Warnings) != 1 || r.Interrupted || r.Stuck != nil {
		t.Errorf("records %v, warnings %q, interrupted %t, stuck %v", r.PerRequest, r.Warnings, r.Interrupted, r.Stuck)
	}
	if n, ok := r.Summary.Get("goodput_completed_requests"); !ok {
		t.Errorf("no goodput, got %v in %v", n, r.Summary)
	}
	var text bytes.Buffer
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Mode    string
		Summary map[string]any
	}
	if err := json.Unmarshal(text.Bytes(), &whole); err != nil || whole.Mode != "replay" || whole.Summary["completed_requests"] != 2.0 {
		t.Errorf("%v: %s", err, text.Bytes())
	}
}
