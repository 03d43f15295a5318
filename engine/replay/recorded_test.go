package replay

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"mockbench/engine"
	"mockbench/engine/goldentest"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/trace"
)

// recorded is a recorded run of the reference.
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
	return fileOf(t, filepath.Join(goldentest.Dir(t, area), name))
}

// fileOf reads a file, compressed or not.
func fileOf(t testing.TB, path string) []byte {
	t.Helper()
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
