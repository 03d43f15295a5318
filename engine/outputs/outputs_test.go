package outputs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/engine/spec"
)

func golden(t *testing.T, name string) []byte {
	t.Helper()
	dir := filepath.Join("..", "..", "testdata", "golden")
	if root := os.Getenv("MOCKBENCH_GOLDEN"); root != "" {
		dir = root
	}
	data, err := os.ReadFile(filepath.Join(dir, "outputs", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGoldenOutputsReasoning(t *testing.T) {
	var c struct {
		Expect struct{ Rows [][3]float64 }
	}
	if err := json.Unmarshal(golden(t, "reasoning-counts.json"), &c); err != nil || len(c.Expect.Rows) == 0 {
		t.Fatalf("no rows: %v", err)
	}
	for _, row := range c.Expect.Rows {
		r := &Reasoning{Start: 5, End: 6, Ratio: row[0]}
		if got := r.Span(int(row[1])); got != int(row[2]) {
			t.Errorf("ratio %v of %v tokens: span %d, want %v", row[0], row[1], got, row[2])
		}
	}
}

func TestGoldenOutputsSampler(t *testing.T) {
	for line := range bytes.Lines(golden(t, "sampler.jsonl")) {
		var c struct {
			Name  string
			Input struct {
				Nextn int
				Rates *string
				Seed  json.Number
			}
			Expect struct {
				Normalized []float64
				Accepted   []int
				Error      string
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if c.Input.Nextn == 0 {
			continue // 0 is off in a Config; an explicit 0 is refused where flags and JSON are read
		}
		t.Run(c.Name, func(t *testing.T) {
			cfg := engine.DefaultConfig(engine.VLLM)
			cfg.Nextn = c.Input.Nextn
			if c.Input.Rates != nil {
				cfg.NextnAcceptRates = *c.Input.Rates
			}
			rates, err := cfg.AcceptRates()
			if err == nil {
				err = cfg.Validate()
			}
			if c.Expect.Error != "" {
				var wrong *engine.SettingError
				if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Setting, "engine.aic_nextn") {
					t.Fatalf("got %v, want a refusal like %q", err, c.Expect.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Expect.Normalized != nil && fmt.Sprint(rates) != fmt.Sprint(c.Expect.Normalized) {
				t.Errorf("rates %v, want %v", rates, c.Expect.Normalized)
			}
			var seed uint64
			fmt.Sscan(c.Input.Seed.String(), &seed)
			s := spec.NewSampler(rates, seed)
			for i, want := range c.Expect.Accepted {
				if got := s.Accept(); got != want {
					t.Fatalf("forward %d accepts %d, want %d", i, got, want)
				}
			}
		})
	}
}

func TestGoldenOutputsTrace(t *testing.T) {
	for line := range bytes.Lines(golden(t, "trace-load.jsonl")) {
		var c struct {
			Name  string
			Input struct {
				Trace *string `json:"trace_jsonl"`
			}
			Expect struct {
				Rows  *int
				Fatal string
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trace.jsonl")
			if c.Input.Trace != nil {
				if err := os.WriteFile(path, []byte(*c.Input.Trace), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			table, err := LoadTable(path)
			if c.Expect.Rows != nil {
				if err != nil || table.Rows != *c.Expect.Rows {
					t.Fatalf("got %v, %v, want %d rows", table, err, *c.Expect.Rows)
				}
				return
			}
			var wrong *engine.SettingError
			if !errors.As(err, &wrong) || wrong.Setting != "response_replay_trace_path" {
				t.Fatalf("got %v, want a refusal like %q", err, c.Expect.Fatal)
			}
			if want := traceKind(c.Expect.Fatal); wrong.Kind != want {
				t.Errorf("got kind %s (%v), want %s", wrong.Kind, wrong, want)
			}
		})
	}
}

// traceKind says which check a recorded message belongs to.
func traceKind(message string) engine.Kind {
	switch {
	case strings.Contains(message, "failed to parse"):
		return engine.KindType
	case strings.Contains(message, "does not match"), strings.Contains(message, "duplicates"):
		return engine.KindConflict
	}
	return engine.KindMissing
}

func TestTableKeys(t *testing.T) {
	trace := strings.Join([]string{
		`{"request_id":" a ","output_length":1,"output_token_ids":[1]}`,
		``,
		`{"session_id":"s","input_length":4}`,
		`{"session_id":"s","output_tokens":2,"output_token_ids":[2,3],"hash_ids":[1]}`,
		`{"request_id":"","session_id":"","output_length":0,"output_token_ids":[]}`,
	}, "\r\n")
	table, err := ReadTable(strings.NewReader(trace))
	if err != nil || table.Rows != 3 || table.Ignored != 1 {
		t.Fatalf("got %+v, %v", table, err)
	}
	for key, want := range map[string]string{"a": "[1]", "s:1": "[2 3]", "line:4": "[]"} {
		if ids, ok := table.Lookup(key); !ok || fmt.Sprint(ids) != want {
			t.Errorf("%s: got %v %v, want %s", key, ids, ok, want)
		}
	}
	if _, ok := table.Lookup(" a "); ok {
		t.Error("a lookup does not trim its key")
	}
}

func TestParseReasoning(t *testing.T) {
	r, unknown, err := ParseReasoning(`{"start_thinking_token_id":5,"end_thinking_token_id":6,"thinking_ratio":0.5,"ratoi":1}`)
	if err != nil || *r != (Reasoning{5, 6, 0.5}) || fmt.Sprint(unknown) != "[ratoi]" {
		t.Fatalf("got %v %v %v", r, unknown, err)
	}
	if r, _, err := ParseReasoning("null"); r != nil || err != nil {
		t.Fatalf("null: got %v %v", r, err)
	}
	for text, kind := range map[string]engine.Kind{
		`{`: engine.KindType, `[]`: engine.KindType,
		`{"start_thinking_token_id":5,"end_thinking_token_id":6}`:                       engine.KindMissing,
		`{"start_thinking_token_id":5,"end_thinking_token_id":6,"thinking_ratio":1.5}`:  engine.KindRange,
		`{"start_thinking_token_id":-1,"end_thinking_token_id":6,"thinking_ratio":0.5}`: engine.KindType,
		`{"start_thinking_token_id":5,"end_thinking_token_id":null,"thinking_ratio":0}`: engine.KindType,
	} {
		var wrong *engine.SettingError
		if _, _, err := ParseReasoning(text); !errors.As(err, &wrong) || wrong.Kind != kind {
			t.Errorf("%s: got %v, want kind %s", text, err, kind)
		}
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add([]byte(`{"request_id":"a","output_length":1,"output_token_ids":[1]}`))
	f.Add([]byte("\n{\"session_id\":\"s\",\"output_tokens\":0,\"output_token_ids\":[]}\r\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := ReadTable(bytes.NewReader(data))
		if err == nil && len(table.answers) != table.Rows {
			t.Fatalf("%d answers of %d rows", len(table.answers), table.Rows)
		}
	})
}
