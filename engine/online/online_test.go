package online

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/engine/replay"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/trace"
)

// rows is a trace of single requests that share their first block, gap milliseconds apart.
func rows(n int, gap float64) *trace.Trace {
	t := &trace.Trace{BlockSize: 16, Planned: true, IDs: 1}
	for i := range n {
		u := trace.Turn{Input: 40, Output: 4, IDs: []uint32{0, uint32(t.IDs), uint32(t.IDs + 1)}}
		t.IDs += 2
		t.Sessions = append(t.Sessions, trace.Session{Name: fmt.Sprintf("request_%d", i+1), Arrival: gap * float64(i), Turns: []trace.Turn{u}})
	}
	return t
}

func options(workers int, t *trace.Trace) replay.Options {
	c := engine.DefaultConfig(engine.VLLM)
	c.BlockSize, c.NumGPUBlocks = 16, 256
	c.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: 10, DecodeMS: 2}
	return replay.Options{Trace: t, MaxTime: -1, Records: true, Workers: replay.Pool{Workers: workers, Engine: c}}
}

func summary(t *testing.T, r *replay.Result) map[string]any {
	t.Helper()
	data, err := json.Marshal(r.Offline.Summary(r.Fleet))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSameFiguresAsOffline compares what does not depend on the clock, and that times are not below the modelled ones.
func TestSameFiguresAsOffline(t *testing.T) {
	routed := router.DefaultConfig()
	conversation := func() *trace.Trace {
		x := rows(6, 20)
		x.Sessions[0].Turns = append(x.Sessions[0].Turns, x.Sessions[1].Turns...)
		x.Sessions[0].Turns[1].Delay, x.Sessions[0].Named = 10, true
		return x
	}
	for name, c := range map[string]struct {
		trace  func() *trace.Trace
		change func(*replay.Options)
	}{
		"round robin": {func() *trace.Trace { return rows(8, 20) }, func(*replay.Options) {}},
		"routed":      {func() *trace.Trace { return rows(8, 20) }, func(o *replay.Options) { o.Router = &routed }},
		"concurrency": {func() *trace.Trace { return rows(8, 20) }, func(o *replay.Options) { o.Concurrency = 3 }},
		"sped up":     {func() *trace.Trace { return rows(8, 200) }, func(o *replay.Options) { o.Speedup = 10 }},
		"sessions":    {conversation, func(*replay.Options) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(f func(replay.Options) (*replay.Result, error)) (*replay.Result, map[string]any) {
				o := options(2, c.trace())
				c.change(&o)
				r, err := f(o)
				if err != nil {
					t.Fatal(err)
				}
				return r, summary(t, r)
			}
			r, got := run(Run)
			_, want := run(replay.Run)
			for key := range want {
				if _, ok := got[key]; !ok {
					t.Errorf("%s is missing", key)
				}
			}
			for _, key := range []string{"num_requests", "completed_requests", "total_input_tokens", "total_output_tokens", "num_ttft_samples",
				"num_e2e_latency_samples"} {
				if got[key] != want[key] {
					t.Errorf("%s is %v, offline %v", key, got[key], want[key])
				}
			}
			if len(got) != len(want) || r.Interrupted || r.Unfinished != 0 || r.Offline.Kept() != r.Offline.Arrived() {
				t.Errorf("%d keys, offline %d; interrupted %v, %d unfinished, %d of %d kept", len(got), len(want), r.Interrupted, r.Unfinished,
					r.Offline.Kept(), r.Offline.Arrived())
			}
			if ttft := got["min_ttft_ms"].(float64); ttft < 9.9 {
				t.Errorf("a first token after %v ms, its prompt takes 10", ttft)
			}
			if seconds, ms := got["decode_worker_seconds"].(float64), got["duration_ms"].(float64); seconds < 2*ms/1000-0.001 {
				t.Errorf("%v worker seconds in %v ms of two workers", seconds, ms)
			}
			if got["committed_prefill_tokens"].(float64) != 0 {
				t.Error("committed prefill tokens are not known")
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := options(1, rows(1000, 1000))
	o.Context = ctx
	o.Progress = func(p replay.Progress) {
		if p.Ended > 0 {
			cancel()
		}
	}
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	done := r.Offline.Ended(report.Completed)
	if !r.Interrupted || done == 0 || done >= 1000 || r.Offline.Arrived() != done+r.Unfinished {
		t.Errorf("interrupted %v, %d of %d completed, %d unfinished", r.Interrupted, done, r.Offline.Arrived(), r.Unfinished)
	}
}

func TestTimeLimit(t *testing.T) {
	o := options(1, rows(3, 60000))
	o.MaxTime = 300
	start := time.Now()
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Interrupted || r.Offline.Arrived() != 1 || time.Since(start) > 50*time.Second {
		t.Errorf("interrupted %v, %d arrived", r.Interrupted, r.Offline.Arrived())
	}
}

func TestStuck(t *testing.T) {
	o := options(2, rows(2, 1))
	o.Workers.Engine.NumGPUBlocks = 3
	o.Trace.Sessions[0].Turns[0].Output = 40
	r, err := Run(o)
	var stuck *replay.StuckError
	if !errors.As(err, &stuck) || stuck.Remaining != 1 || stuck.Hint.Head == nil || stuck.Hint.Head.Label != "request_1" || stuck.Hint.Raise != 5 {
		t.Fatalf("got %v", err)
	}
	if r.Offline.Ended(report.Completed) != 1 || r.Unfinished != 1 {
		t.Errorf("%d completed, %d unfinished", r.Offline.Ended(report.Completed), r.Unfinished)
	}
}

func TestWrongOptions(t *testing.T) {
	for setting, change := range map[string]func(*replay.Options){
		"kv_event_lag_ms": func(o *replay.Options) { c := router.DefaultConfig(); o.Router, o.EventLag = &c, 5 },
		"telemetry":       func(o *replay.Options) { o.Telemetry = &replay.Telemetry{Interval: 1} },
		"num_workers":     func(o *replay.Options) { o.Workers.Workers = 0 },
		"prefill_engine_args": func(o *replay.Options) {
			o.Prefill, o.Decode = o.Workers, o.Workers
			o.Prefill.Engine.Role, o.Decode.Engine.Role = engine.PrefillRole, engine.DecodeRole
		},
	} {
		o := options(1, rows(1, 1))
		change(&o)
		_, err := Run(o)
		var wrong *engine.SettingError
		if !errors.As(err, &wrong) || wrong.Setting != setting {
			t.Errorf("%s: got %v", setting, err)
		}
	}
}

func TestRequestOfNoOutput(t *testing.T) {
	o := options(1, rows(1, 1))
	o.Trace.Sessions[0].Turns[0].Output = 0
	if _, err := Run(o); err == nil {
		t.Error("a live worker took a request of no output token")
	}
}
