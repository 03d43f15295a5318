package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/engine/goldentest"
	"mockbench/engine/report"
	"mockbench/engine/trace"
)

func TestGoldenReplay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(goldentest.Dir(t, "replay"), "cases", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded cases: %v", err)
	}
	for _, file := range files {
		var c recorded
		decode(t, goldenFile(t, "replay", filepath.Join("cases", filepath.Base(file))), &c)
		t.Run("cases/"+c.Name, func(t *testing.T) {
			path := filepath.Join(goldentest.Dir(t, "replay"), c.Input.Trace)
			r, err := c.run(t, path)
			if c.Expect.Error != "" {
				checkStuck(t, err, c.Expect.Error)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			compareRun(t, &c, r, rowsOf(t, path))
		})
	}
}

func TestGoldenReplayFormats(t *testing.T) {
	var cases []recorded
	decode(t, goldenFile(t, "replay", "formats.json"), &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			name := "trace.jsonl"
			if c.Input.Args.Format == string(trace.Weka) {
				name = "f.json" // the ids of Weka requests derive from the name
			}
			r, err := c.run(t, c.file(t, name))
			if err != nil {
				t.Fatal(err)
			}
			compareRun(t, &c, r, nil)
		})
	}
}

// TestRecordedHandoffs compares disaggregated runs in which something is short: decode blocks, slots or batch tokens.
func TestRecordedHandoffs(t *testing.T) {
	var cases []recorded
	decode(t, fileOf(t, filepath.Join("..", "..", "testdata", "golden", "replay", "handoffs.json")), &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			r, err := c.run(t, c.file(t, "trace.jsonl"))
			if c.Expect.Error != "" {
				checkStuck(t, err, c.Expect.Error)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			compareRun(t, &c, r, nil)
		})
	}
}

// file writes the trace of a case that holds it.
func (c *recorded) file(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	text := []byte(c.Input.Raw)
	for _, row := range c.Input.Rows {
		text = append(append(text, row...), '\n')
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGoldenReplaySynthetic(t *testing.T) {
	var cases []recorded
	decode(t, goldenFile(t, "replay", "synthetic_runs.json"), &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			a := &c.Input.Args
			o := a.options(t)
			s := trace.Synthetic{Input: c.Input.Input, Output: c.Input.Output, Requests: c.Input.Requests, Turns: a.Turns,
				PrefixRatio: a.Ratio, PrefixGroups: a.NumGroups, Delay: a.Delay, BlockSize: o.blockSize(),
				Arrivals: trace.Arrivals{Given: a.Concurrency == 0, Seed: 42}}
			if a.Rate != nil {
				s.Arrivals.Rate = *a.Rate
			}
			if a.Interval != nil {
				s.Arrivals.Interval = *a.Interval
			}
			if a.ArrivalSeed != nil {
				s.Arrivals.Seed = *a.ArrivalSeed
			}
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			o.Trace = s.Generate()
			r, err := Run(o)
			if err != nil {
				t.Fatal(err)
			}
			compareRun(t, &c, r, nil)
		})
	}
}

func TestGoldenReplayTelemetry(t *testing.T) {
	var cases []recorded
	decode(t, goldenFile(t, "replay", "telemetry.json"), &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			var samples []any
			c.telemetry = &Telemetry{Interval: engine.Time(c.Input.Interval), Write: func(f report.Fields) error {
				samples = append(samples, plain(t, f))
				return nil
			}}
			if _, err := c.run(t, filepath.Join(goldentest.Dir(t, "replay"), c.Input.Trace)); err != nil {
				t.Fatal(err)
			}
			if len(samples) != len(c.Expect.Samples) {
				t.Errorf("%d samples, want %d", len(samples), len(c.Expect.Samples))
			}
			for i, want := range c.Expect.Samples {
				if i < len(samples) && !same(samples[i], want) {
					t.Errorf("sample %d:\n got %v\nwant %v", i, samples[i], want)
				}
			}
		})
	}
}

func TestGoldenRouterReplay(t *testing.T) {
	var cases []recorded
	decode(t, goldenFile(t, "router", "kv_replay.json"), &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			r, err := c.run(t, filepath.Join(goldentest.Dir(t, "replay"), strings.TrimPrefix(c.Input.Trace, "replay/")))
			if err != nil {
				t.Fatal(err)
			}
			compareRun(t, &c, r, nil)
		})
	}
}

// checkStuck compares the kind of a refusal and the number of requests in flight.
func checkStuck(t *testing.T, err error, text string) {
	t.Helper()
	stuck, ok := err.(*StuckError)
	if !ok || stuck.Kind != NoEffect || !strings.Contains(text, "effect-free") ||
		!strings.Contains(text, fmt.Sprintf(" with %d in-flight", stuck.Remaining)) {
		t.Fatalf("got %v, want %s", err, text)
	}
	t.Log(err)
}
