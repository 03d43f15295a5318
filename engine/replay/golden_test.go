package replay

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/engine/goldentest"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/trace"
)

// recorded is a recorded run.
type recorded struct {
	Name  string
	Input struct {
		Trace     string
		BlockSize *int              `json:"trace_block_size"`
		Rows      []json.RawMessage `json:"rows"`
		Raw       string            `json:"raw"`
		Seed      uint64            `json:"seed"`
		Interval  float64           `json:"interval_ms"`
		Input     int               `json:"input_tokens"`
		Output    int               `json:"output_tokens"`
		Requests  int               `json:"request_count"`
		Args      arguments         `json:"args"`
		Engine    json.RawMessage   `json:"-"`
	}
	Expect struct {
		Error   string
		Summary map[string]any
		Per     json.RawMessage `json:"per_request"`
		Records []map[string]any
		Samples []map[string]any
	}
	telemetry *Telemetry
}

// arguments are those of the recorded call that a case uses.
type arguments struct {
	Format      string          `json:"trace_format"`
	BlockSize   int             `json:"trace_block_size"`
	Workers     *int            `json:"num_workers"`
	Prefills    *int            `json:"num_prefill_workers"`
	Decodes     *int            `json:"num_decode_workers"`
	Concurrency int             `json:"replay_concurrency"`
	Mode        string          `json:"router_mode"`
	Router      json.RawMessage `json:"router_config"`
	Speedup     *float64        `json:"arrival_speedup_ratio"`
	Engine      json.RawMessage `json:"extra_engine_args"`
	Prefill     json.RawMessage `json:"prefill_engine_args"`
	Decode      json.RawMessage `json:"decode_engine_args"`
	TTFT        float64         `json:"sla_ttft_ms"`
	ITL         float64         `json:"sla_itl_ms"`
	E2E         float64         `json:"sla_e2e_ms"`
	MaxTime     *float64        `json:"max_sim_time_ms"`
	Lag         float64         `json:"kv_event_lag_ms"`
	Lanes       int             `json:"agentic_lanes"`
	Model       string          `json:"execution_model"`
	PrefixRatio float64         `json:"trace_shared_prefix_ratio"`
	Groups      int             `json:"trace_num_prefix_groups"`
	Rate        *float64        `json:"request_rate"`
	Interval    *float64        `json:"arrival_interval_ms"`
	ArrivalSeed *uint64         `json:"arrival_seed"`
	Turns       int             `json:"turns_per_session"`
	Ratio       float64         `json:"shared_prefix_ratio"`
	NumGroups   int             `json:"num_prefix_groups"`
	Delay       float64         `json:"inter_turn_delay_ms"`
}

// goldenFile reads a file of an area, compressed or not.
func goldenFile(t testing.TB, area, name string) []byte {
	t.Helper()
	path := filepath.Join(goldentest.Dir(t, area), name)
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		var f *os.File
		if f, err = os.Open(path + ".gz"); err == nil {
			defer f.Close()
			var z *gzip.Reader
			if z, err = gzip.NewReader(f); err == nil {
				data, err = io.ReadAll(z)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode(t testing.TB, data []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// pool reads an engine object.
func poolOf(t testing.TB, raw json.RawMessage, workers *int) Pool {
	t.Helper()
	p := Pool{Workers: 1, Engine: engine.DefaultConfig(engine.VLLM)}
	if workers != nil {
		p.Workers = *workers
	}
	if len(raw) == 0 {
		return p
	}
	var o struct {
		Engine         json.RawMessage
		Ranks          int     `json:"dp_size"`
		TensorParallel int     `json:"tensor_parallel_size"`
		Startup        float64 `json:"startup_time"`
	}
	decode(t, raw, &o)
	p.Ranks, p.TensorParallel = o.Ranks, o.TensorParallel
	var head struct {
		Backend engine.Backend
		Host    *struct{} `json:"native_host_offload"`
	}
	if len(o.Engine) == 0 {
		return p
	}
	decode(t, o.Engine, &head)
	if head.Backend != "" {
		p.Engine = engine.DefaultConfig(head.Backend)
	}
	if head.Host != nil {
		p.Engine.HostOffload = engine.DefaultHostOffload(0)
	}
	decode(t, o.Engine, &p.Engine)
	return p
}

// options turns the arguments of a case into options without trace.
func (a *arguments) options(t testing.TB) Options {
	t.Helper()
	o := Options{Concurrency: a.Concurrency, MaxTime: -1, Records: true, Lanes: a.Lanes, EventLag: engine.Time(a.Lag),
		Bounds: report.Bounds{TTFT: a.TTFT, ITL: a.ITL, E2E: a.E2E}}
	if a.Speedup != nil {
		o.Speedup = *a.Speedup
	}
	if a.MaxTime != nil {
		o.MaxTime = engine.Time(*a.MaxTime)
	}
	if a.Mode == "kv_router" {
		c := router.DefaultConfig()
		if len(a.Router) > 0 {
			var err error
			if c, err = router.ParseConfig(a.Router); err != nil {
				t.Fatal(err)
			}
		}
		o.Router = &c
	}
	if len(a.Prefill) > 0 {
		o.Prefill, o.Decode = poolOf(t, a.Prefill, a.Prefills), poolOf(t, a.Decode, a.Decodes)
	} else {
		o.Workers = poolOf(t, a.Engine, a.Workers)
	}
	return o
}

// run replays a case of a trace file.
func (c *recorded) run(t testing.TB, path string) (*Result, error) {
	t.Helper()
	o := c.Input.Args.options(t)
	o.Seed, o.Telemetry = c.Input.Seed, c.telemetry
	name := c.Input.Args.Format
	if name == "" {
		name = "mooncake"
	}
	format, err := trace.ParseFormat(name)
	if err != nil {
		return nil, err
	}
	size := c.Input.Args.BlockSize
	if c.Input.BlockSize != nil {
		size = *c.Input.BlockSize
	}
	o.Trace, err = trace.Read([]string{path}, trace.Options{Format: format, BlockSize: size,
		PrefixRatio: c.Input.Args.PrefixRatio, PrefixGroups: c.Input.Args.Groups})
	if err != nil {
		t.Fatal(err)
	}
	return Run(o)
}

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
			path := filepath.Join(t.TempDir(), "trace.jsonl")
			if c.Input.Args.Format == string(trace.Weka) {
				path = filepath.Join(t.TempDir(), "f.json") // the ids of Weka requests derive from the name
			}
			text := []byte(c.Input.Raw)
			for _, row := range c.Input.Rows {
				text = append(append(text, row...), '\n')
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := c.run(t, path)
			if err != nil {
				t.Fatal(err)
			}
			compareRun(t, &c, r, nil)
		})
	}
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

// plain returns a value as JSON gives it back.
func plain(t testing.TB, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	decode(t, data, &out)
	return out
}

// same compares values; numbers with the tolerance of the recordings.
func same(got, want any) bool {
	switch w := want.(type) {
	case float64:
		g, ok := got.(float64)
		return ok && math.Abs(g-w) <= 1e-9*max(1, math.Abs(w))
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !same(g[i], w[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for k := range w {
			if x, has := g[k]; !has || !same(x, w[k]) {
				return false
			}
		}
		return true
	}
	return got == want
}

// realTime are figures that depend on the machine.
var realTime = []string{"wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s"}

func compareRun(t *testing.T, c *recorded, r *Result, byRow []int) {
	t.Helper()
	compareSummary(t, c, r)
	records := make([]map[string]any, 0)
	for _, f := range r.Offline.Records() {
		records = append(records, plain(t, f).(map[string]any))
	}
	if len(c.Expect.Per) > 0 {
		if c.Expect.Per[0] == '[' {
			compareRows(t, c, records)
		} else {
			compareColumns(t, c, records, byRow)
		}
	}
	compareRecords(t, c, records)
}

func compareSummary(t *testing.T, c *recorded, r *Result) {
	t.Helper()
	got := plain(t, r.Offline.Summary(r.Fleet)).(map[string]any)
	for _, key := range realTime {
		delete(got, key)
	}
	for key, want := range c.Expect.Summary {
		if key == "agentic_model_projection" {
			continue // a label of the caller
		}
		value, ok := got[key]
		if key == "agentic_graph" && c.Input.Args.Format == string(trace.Weka) {
			withoutWekaDigests(value)
			withoutWekaDigests(want)
		}
		if !ok {
			t.Errorf("summary: %s is missing", key)
		} else if !same(value, want) {
			t.Errorf("summary: %s is %v, want %v", key, value, want)
		}
		delete(got, key)
	}
	for key := range got {
		t.Errorf("summary: %s is too much", key)
	}
}

// withoutWekaDigests takes out the digests of a graph that was read from a Weka trace. How the reference makes them, and
// the block ids that go into the second one, is not known; ours tell traces apart all the same.
func withoutWekaDigests(graph any) {
	g := graph.(map[string]any)
	delete(g, "graph_digest")
	delete(g["source"].(map[string]any), "digest")
}

// number returns the number of a record's request, from 0.
func number(t *testing.T, record map[string]any) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscanf(record["uuid"].(string)[24:], "%x", &n); err != nil {
		t.Fatal(err)
	}
	return n - 1
}

// rowsOf returns the row of each request in its file.
func rowsOf(t *testing.T, path string) []int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var sessions [][]int
	index := map[string]int{}
	for row, line := range slices.Collect(bytes.Lines(bytes.TrimSpace(data))) {
		var r struct {
			Session *string `json:"session_id"`
		}
		decode(t, line, &r)
		at, known := 0, false
		if r.Session != nil {
			at, known = index[*r.Session], true
			if _, seen := index[*r.Session]; !seen {
				index[*r.Session], known = len(sessions), false
			}
		}
		if known {
			sessions[at] = append(sessions[at], row)
		} else {
			sessions = append(sessions, []int{row})
		}
	}
	return slices.Concat(sessions...)
}

// compareColumns compares columns of values, one a request in the order of the trace, or of the rows of its file.
func compareColumns(t *testing.T, c *recorded, records []map[string]any, byRow []int) {
	t.Helper()
	var columns map[string]any
	decode(t, c.Expect.Per, &columns)
	place := func(r map[string]any) int { return number(t, r) }
	if byRow != nil {
		place = func(r map[string]any) int { return byRow[number(t, r)] }
	}
	slices.SortFunc(records, func(a, b map[string]any) int { return place(a) - place(b) })
	if rows, ok := columns["row"].([]any); ok {
		for i := range rows {
			if i >= len(records) || place(records[i]) != int(rows[i].(float64)) {
				t.Fatalf("records are of other requests than those of rows %v", rows)
			}
		}
		delete(columns, "row")
	}
	for key, want := range columns {
		all, constant := want.(map[string]any)
		switch {
		case key == "first_route":
			compareRoutes(t, all["rows"].([]any), records)
			continue
		case !constant && len(want.([]any)) != len(records):
			t.Errorf("%d records, want %d", len(records), len(want.([]any)))
			return
		}
		wrong := 0
		for i, r := range records {
			w := all["all"]
			if !constant {
				w = want.([]any)[i]
			}
			value := r[key]
			if key == "first_route_queue_wait_ms" {
				value = r["routing_history"].([]any)[0].(map[string]any)["queue_wait_ms"]
			}
			if !same(value, w) {
				if wrong++; wrong <= 3 {
					t.Errorf("%s of request %d is %v, want %v", key, number(t, r), value, w)
				}
			}
		}
	}
}

func compareRoutes(t *testing.T, rows []any, records []map[string]any) {
	t.Helper()
	wrong := 0
	for i, r := range records {
		first := r["routing_history"].([]any)[0].(map[string]any)
		queued := 0.0
		if first["outcome"] == "queued" {
			queued = 1
		}
		got := []any{first["scheduler_id"], first["selected_overlap_blocks"], first["best_available_overlap_blocks"], queued}
		if !same(got, rows[i]) {
			if wrong++; wrong <= 3 {
				t.Errorf("first route of request %d is %v, want %v", i, got, rows[i])
			}
		}
	}
}

// compareRows compares parts of records in the order of the report.
func compareRows(t *testing.T, c *recorded, records []map[string]any) {
	t.Helper()
	var rows []map[string]any
	decode(t, c.Expect.Per, &rows)
	if len(rows) != len(records) {
		t.Fatalf("%d records, want %d", len(records), len(rows))
	}
	order := func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["session_id"], a["request_id"], a["turn_index"]), fmt.Sprint(b["session_id"], b["request_id"], b["turn_index"]))
	}
	slices.SortStableFunc(rows, order)
	slices.SortStableFunc(records, order)
	for i, row := range rows {
		for key, want := range row {
			if !same(records[i][key], want) {
				t.Errorf("record %d: %s is %v, want %v", i, key, records[i][key], want)
			}
		}
	}
}

// compareRecords compares whole records.
func compareRecords(t *testing.T, c *recorded, records []map[string]any) {
	t.Helper()
	if c.Expect.Records == nil {
		return
	}
	slices.SortStableFunc(records, func(a, b map[string]any) int {
		x, y := a["arrival_time_ms"].(float64), b["arrival_time_ms"].(float64)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return strings.Compare(fmt.Sprint(a["session_id"]), fmt.Sprint(b["session_id"]))
	})
	for i, want := range c.Expect.Records {
		records[i]["uuid"] = "*"
		if !same(records[i], want) {
			t.Errorf("record %d:\n got %v\nwant %v", i, records[i], want)
		}
	}
}
