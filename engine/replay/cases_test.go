package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/trace"
)

// rows makes a trace of requests that share nothing, all at time 0.
func rows(n, input, output, blockSize int) *trace.Trace {
	t := &trace.Trace{BlockSize: blockSize}
	for i := range n {
		u := trace.Turn{Input: input, Output: output}
		for range (input + blockSize - 1) / blockSize {
			u.IDs = append(u.IDs, uint32(t.IDs))
			t.IDs++
		}
		t.Sessions = append(t.Sessions, trace.Session{Name: fmt.Sprintf("request_%d", i+1), Turns: []trace.Turn{u}})
	}
	return t
}

// small is an engine with blocks of 16 tokens and passes of fixed length.
func small(role engine.Role, blocks int, prefill, decode float64) engine.Config {
	c := engine.DefaultConfig(engine.VLLM)
	c.Role, c.BlockSize, c.NumGPUBlocks, c.MaxNumBatchedTokens = role, 16, blocks, 512
	c.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: prefill, DecodeMS: decode}
	return c
}

func split(prefill, decode float64) Options {
	return Options{MaxTime: -1, Records: true, Prefill: Pool{Workers: 1, Engine: small(engine.PrefillRole, 256, prefill, decode)},
		Decode: Pool{Workers: 1, Engine: small(engine.DecodeRole, 256, prefill, decode)}}
}

func whole(workers int, c engine.Config) Options {
	return Options{MaxTime: -1, Records: true, Workers: Pool{Workers: workers, Engine: c}}
}

func replay(t *testing.T, o Options) (*Result, map[string]any) {
	t.Helper()
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return r, plain(t, r.Offline.Summary(r.Fleet)).(map[string]any)
}

// expect compares figures of a summary.
func expect(t *testing.T, summary map[string]any, want map[string]float64) {
	t.Helper()
	for key, w := range want {
		if g, ok := summary[key].(float64); !ok || math.Abs(g-w) > 1e-9*max(1, w) {
			t.Errorf("%s is %v, want %v", key, summary[key], w)
		}
	}
}

func TestReuseOfOwnBlocksIsNoHit(t *testing.T) {
	o := whole(1, small(engine.Aggregated, 16, 10, 2))
	o.Trace = rows(4, 112, 40, 16)
	_, s := replay(t, o)
	expect(t, s, map[string]float64{"completed_requests": 4, "duration_ms": 290, "first_admission_prefix_cache_reused_ratio": 0,
		"prefix_cache_reused_ratio": 0.6428571428571429, "committed_prefill_tokens": 530, "mean_ttft_ms": 69, "median_ttft_ms": 100, "max_ttft_ms": 156})
}

func TestLongPrefillShowsInTheMaximumOnly(t *testing.T) {
	c := small(engine.Aggregated, 512, 200, 5)
	c.MaxNumBatchedTokens = 8192
	o := whole(1, c)
	o.Trace = rows(2, 16, 100, 16)
	second := rows(1, 2048, 1, 16).Sessions[0]
	for i := range second.Turns[0].IDs {
		second.Turns[0].IDs[i] += 10
	}
	second.Arrival, second.Turns[0].Output = 50, 1
	o.Trace.Sessions[1], o.Trace.IDs = second, 200
	_, s := replay(t, o)
	expect(t, s, map[string]float64{"mean_itl_ms": 7.020202020202024, "p99_itl_ms": 4.997811098765266, "max_itl_ms": 205,
		"mean_tpot_ms": 7.02020202020202, "p99_tpot_ms": 7.02020202020202, "max_ttft_ms": 355, "num_tpot_samples": 1, "num_ttft_samples": 2, "duration_ms": 895})
}

func TestQueueCountsInTTFT(t *testing.T) {
	c := small(engine.Aggregated, 64, 10, 2)
	c.MaxNumSeqs = 1
	o := whole(1, c)
	o.Trace = rows(10, 32, 5, 16)
	_, s := replay(t, o)
	expect(t, s, map[string]float64{"mean_ttft_ms": 91, "median_ttft_ms": 100, "max_ttft_ms": 172, "mean_e2e_latency_ms": 99,
		"max_e2e_latency_ms": 180, "mean_itl_ms": 2, "duration_ms": 180})
	o.Trace, o.MaxTime = rows(10, 32, 5, 16), 50
	r, s := replay(t, o)
	expect(t, s, map[string]float64{"num_requests": 10, "completed_requests": 2, "max_ttft_ms": 28})
	if r.Unfinished != 8 || r.Offline.Kept() != 2 {
		t.Errorf("%d unfinished, %d records", r.Unfinished, r.Offline.Kept())
	}
}

func TestNothingCompleted(t *testing.T) {
	c := small(engine.Aggregated, 64, 10, 2)
	c.MaxNumSeqs = 1
	o := whole(1, c)
	o.Trace, o.MaxTime, o.Bounds = rows(10, 32, 5, 16), 5, report.Bounds{TTFT: 1}
	_, s := replay(t, o)
	expect(t, s, map[string]float64{"num_requests": 10, "completed_requests": 0, "duration_ms": 0, "p99_ttft_ms": 0, "mean_itl_ms": 0,
		"num_ttft_samples": 0, "goodput_completed_requests": 0})
}

func TestPartsOfTTFT(t *testing.T) {
	type instants struct{ held, active, admitted, first, last float64 }
	for name, c := range map[string]struct {
		transfer bool
		requests int
		slots    uint64
		want     []instants
	}{
		"no transfer":  {false, 1, 256, []instants{{10, 10, 10, 12, 20}}},
		"transfer":     {true, 1, 256, []instants{{10, 14, 14, 16, 24}}},
		"waits a slot": {true, 2, 1, []instants{{10, 14, 14, 16, 24}, {10, 14, 24, 26, 34}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := split(10, 2)
			o.Trace, o.Decode.Engine.MaxNumSeqs = rows(c.requests, 64, 5, 16), c.slots
			if c.transfer {
				o.Prefill.Engine.KVTransferBandwidth, o.Prefill.Engine.KVTransferBytesPerToken = 1, 62500
			}
			r, s := replay(t, o)
			expect(t, s, map[string]float64{"mean_itl_ms": 2, "max_itl_ms": 2})
			for i, f := range r.Offline.Records() {
				m := plain(t, f).(map[string]any)
				got := instants{m["source_held_ms"].(float64), m["destination_activated_ms"].(float64), m["decode_admit_ms"].(float64),
					m["ttft_ms"].(float64), m["e2e_latency_ms"].(float64)}
				if got != c.want[i] || m["source_released_ms"] != m["destination_activated_ms"] {
					t.Errorf("request %d: %+v, released %v, want %+v", i, got, m["source_released_ms"], c.want[i])
				}
			}
		})
	}
	o := whole(1, small(engine.Aggregated, 256, 10, 2))
	o.Trace = rows(1, 64, 5, 16)
	_, s := replay(t, o)
	expect(t, s, map[string]float64{"mean_ttft_ms": 10, "mean_e2e_latency_ms": 18, "mean_itl_ms": 2})
}

func TestPassesOfLengthZeroAreProgress(t *testing.T) {
	chunked := small(engine.Aggregated, 256, 0, 0)
	chunked.MaxNumBatchedTokens = 16
	slow := split(10, 0)
	for name, c := range map[string]struct {
		o        Options
		duration float64
		passes   uint64
	}{
		"decode for nothing":     {slow, 10, 0},
		"everything for nothing": {split(0, 0), 0, 0},
		"aggregated":             {whole(1, small(engine.Aggregated, 256, 0, 0)), 0, 0},
		"aggregated in chunks":   {whole(1, chunked), 0, 13},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Trace = rows(2, 64, 5, 16)
			r, s := replay(t, c.o)
			expect(t, s, map[string]float64{"completed_requests": 2, "total_output_tokens": 10, "duration_ms": c.duration, "mean_ttft_ms": c.duration,
				"mean_e2e_latency_ms": c.duration, "mean_itl_ms": 0})
			for key, v := range s {
				if x, ok := v.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
					t.Errorf("%s is %v", key, x)
				}
			}
			if c.passes > 0 && r.Passes != c.passes {
				t.Errorf("%d passes, want %d", r.Passes, c.passes)
			}
		})
	}
}

// TestRefusedReservation pins what becomes of a request that no decode worker can ever hold: it fails, its session ends
// with it, everything else goes on.
func TestRefusedReservation(t *testing.T) {
	o := split(10, 2)
	o.Decode.Engine.NumGPUBlocks = 4
	o.Trace = rows(2, 64, 5, 16)
	tall := rows(2, 96, 5, 16)
	for i := range tall.Sessions {
		for k := range tall.Sessions[i].Turns[0].IDs {
			tall.Sessions[i].Turns[0].IDs[k] += 100
		}
	}
	o.Trace.IDs = 200
	o.Trace.Sessions = append(o.Trace.Sessions, trace.Session{Name: "tall", Named: true, Turns: []trace.Turn{tall.Sessions[0].Turns[0], tall.Sessions[1].Turns[0]}})
	o.Trace.Sessions[0].Turns[0].Output, o.Trace.Sessions[1].Turns[0].Output = 1, 1
	r, s := replay(t, o)
	expect(t, s, map[string]float64{"num_requests": 3, "completed_requests": 2})
	if r.Offline.Ended(report.Failed) != 1 || r.Unfinished != 0 {
		t.Errorf("%d failed, %d unfinished", r.Offline.Ended(report.Failed), r.Unfinished)
	}
}

// figures returns everything that a run reports, without what depends on the machine.
func figures(t *testing.T, o Options) string {
	t.Helper()
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	all, err := json.Marshal([]any{r.Offline.Summary(r.Fleet), r.Offline.Records(), r.Passes})
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func TestSameResultOnAnyNumberOfCores(t *testing.T) {
	load := trace.Synthetic{Input: 300, Output: 40, Requests: 300, Turns: 1, BlockSize: 16, Arrivals: trace.Arrivals{Given: true, Rate: 300, Seed: 7}}
	routed := router.DefaultConfig()
	for name, change := range map[string]func(*Options){
		"round robin": func(*Options) {},
		"cut":         func(o *Options) { o.MaxTime = 400 },
		"routed":      func(o *Options) { o.Router = &routed },
	} {
		t.Run(name, func(t *testing.T) {
			run := func(cores int) string {
				o := whole(5, small(engine.Aggregated, 90, 6, 3))
				o.Workers.Ranks = 2
				o.Trace, o.Cores = load.Generate(), cores
				change(&o)
				return figures(t, o)
			}
			one := run(1)
			for range 3 {
				if run(2) != one || run(8) != one {
					t.Fatal("the result depends on the number of cores")
				}
			}
		})
	}
}

// TestApartEqualsTogether compares workers that are simulated one by one with the same workers in one simulation.
func TestApartEqualsTogether(t *testing.T) {
	for _, backend := range []engine.Backend{engine.VLLM, engine.SGLang, engine.TRTLLM} {
		load := trace.Synthetic{Input: 200, Output: 60, Requests: 200, BlockSize: 16, Arrivals: trace.Arrivals{Given: true, Rate: 200, Seed: 3}}
		cfg := small(engine.Aggregated, 120, 6, 3)
		cfg.Backend = backend
		run := func(telemetry *Telemetry) []map[string]any {
			o := whole(3, cfg)
			o.Trace, o.Telemetry = load.Generate(), telemetry
			r, err := Run(o)
			if err != nil {
				t.Fatal(err)
			}
			var out []map[string]any
			for _, f := range r.Offline.Records() {
				out = append(out, plain(t, f).(map[string]any))
			}
			return append(out, plain(t, r.Offline.Summary(r.Fleet)).(map[string]any))
		}
		apart := run(nil)
		together := run(&Telemetry{Interval: 1e6, Write: func(report.Fields) error { return nil }})
		if len(apart) != 201 || !slices.EqualFunc(apart, together, func(a, b map[string]any) bool { return same(a, b) }) {
			t.Errorf("%s: results differ", backend)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := whole(2, small(engine.Aggregated, 256, 6, 3))
	o.Trace = rows(3000, 32, 20, 16)
	for i := range o.Trace.Sessions {
		o.Trace.Sessions[i].Arrival = float64(i) * 10
	}
	routed := router.DefaultConfig()
	o.Router, o.Context = &routed, ctx
	o.Progress = func(p Progress) {
		if p.Ended > 500 {
			cancel()
		}
	}
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	done := r.Offline.Ended(report.Completed)
	if !r.Interrupted || done < 500 || done >= 3000 || r.Offline.Arrived() != done+r.Unfinished {
		t.Errorf("interrupted %v, %d of %d completed, %d unfinished", r.Interrupted, done, r.Offline.Arrived(), r.Unfinished)
	}
}

func TestStuckWorkerBesideABusyOne(t *testing.T) {
	o := whole(2, small(engine.Aggregated, 8, 10, 2))
	o.Trace = rows(2, 64, 40, 16)
	tall := rows(1, 112, 40, 16)
	o.Trace.Sessions[0], o.Trace.IDs = tall.Sessions[0], 100
	_, err := Run(o)
	stuck, ok := err.(*StuckError)
	if !ok || stuck.Kind != NoEffect || stuck.Remaining != 1 || stuck.At != 88 || stuck.Hint.Head == nil {
		t.Fatalf("got %v", err)
	}
}
