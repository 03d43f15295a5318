package metrics

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mockbench/engine"
)

// expect compares series with values.
func expect(t *testing.T, r prometheus.Gatherer, want map[string]float64, labels ...string) {
	t.Helper()
	for name, v := range want {
		if got := value(t, r, name, labels...); math.Abs(got-v) > 1e-9 {
			t.Errorf("%s %v is %v, want %v", name, labels, got, v)
		}
	}
}

func token(r *engine.Request) engine.Output { return engine.Output{Request: r, HasToken: true} }

func last(r *engine.Request) engine.Output {
	return engine.Output{Request: r, HasToken: true, Completed: true}
}

func TestLatencies(t *testing.T) {
	registry, workers := newWorker(t, engine.VLLM, 1, 2)
	w := workers[0]
	a, b, refused, gone := &engine.Request{Arrival: 100}, &engine.Request{Arrival: 200}, &engine.Request{}, &engine.Request{}
	pass := func(rank int, end engine.Time, outputs ...engine.Output) {
		w.Pass(&engine.Pass{Rank: rank, End: end, Outputs: outputs})
	}
	pass(1, 300, token(a), engine.Output{Request: refused, Completed: true, Rejected: true}, token(gone))
	w.Cancelled(1, gone, 310)
	pass(1, 400, token(a), token(b), token(a), token(a)) // three tokens of a at once
	pass(1, 500, last(a), token(b))
	expect(t, registry, map[string]float64{
		"vllm:time_to_first_token_seconds": 3, "vllm:inter_token_latency_seconds": 5, "vllm:e2e_request_latency_seconds": 1,
	}, "engine=1", "model_name=m")
	expect(t, registry, map[string]float64{"vllm:time_to_first_token_seconds": 0}, "engine=0")
	if len(w.requests) != 1 {
		t.Errorf("%d requests are remembered, want that of b", len(w.requests))
	}
	sums := map[string]float64{"vllm:time_to_first_token_seconds": .2 + .3 + .2, "vllm:inter_token_latency_seconds": 3*(.1/3) + .1 + .1,
		"vllm:e2e_request_latency_seconds": .4}
	list, _ := registry.Gather()
	for _, f := range list {
		if want, ok := sums[f.GetName()]; ok && math.Abs(f.Metric[1].Histogram.GetSampleSum()-want) > 1e-9 {
			t.Errorf("%s adds up to %v, want %v", f.GetName(), f.Metric[1].Histogram.GetSampleSum(), want)
		}
	}
}

func TestLoadOfRanks(t *testing.T) {
	registry, workers := newWorker(t, engine.TRTLLM, 1, 2)
	workers[0].Load(1, 0, engine.Load{ActiveBlocks: 3, TotalBlocks: 12, Running: 2, Waiting: 5})
	expect(t, registry, map[string]float64{"trtllm:num_requests_running": 2, "trtllm:num_requests_waiting": 5,
		"trtllm:kv_cache_usage_perc": .25, "trtllm:gpu_cache_usage_perc": .25}, "engine=1")
	expect(t, registry, map[string]float64{"trtllm:num_requests_running": 0, "trtllm:kv_cache_usage_perc": 0}, "engine=0")
}

func TestSGLangSumsItsRanks(t *testing.T) {
	registry, workers := newWorker(t, engine.SGLang, 1, 2)
	w := workers[0]
	w.Load(0, 0, engine.Load{Running: 2, Waiting: 1})
	w.Load(1, 0, engine.Load{Running: 3, Waiting: 4})
	w.Load(0, 0, engine.Load{Running: 1, Waiting: 1})
	w.Pass(&engine.Pass{Rank: 1, Prefix: engine.PrefixHit{Reused: 10, Total: 40}})
	w.Pass(&engine.Pass{Rank: 0, Prefix: engine.PrefixHit{Reused: 20, Total: 20}})
	w.Pass(&engine.Pass{Rank: 0, Outputs: []engine.Output{last(&engine.Request{})},
		Preemptions: []engine.Preemption{{Retraction: true}, {Retraction: true}}})
	expect(t, registry, map[string]float64{"sglang:num_running_reqs": 4, "sglang:num_queue_reqs": 5, "sglang:cache_hit_rate": .5},
		"engine_type=sglang", "tp_rank=0", "pp_rank=0", "moe_ep_rank=0")
	expect(t, registry, map[string]float64{"sglang:num_requests_total": 1, "mockbench_retractions_total": 2})
}

func TestSeveralWorkersAreToldApart(t *testing.T) {
	registry, workers := newWorker(t, engine.VLLM, 2, 1)
	workers[1].Pass(&engine.Pass{Preemptions: []engine.Preemption{{}}})
	workers[1].Stalled()
	workers[1].Slip(func() time.Duration { return 1500 * time.Millisecond })
	for id, n := range map[string]float64{"worker_id=a": 0, "worker_id=b": 1} {
		expect(t, registry, map[string]float64{"vllm:num_preemptions_total": n, "mockbench_stalls_total": n,
			"mockbench_retractions_total": 0}, id)
		if up := value(t, registry, "dynamo_component_uptime_seconds", id); up < 0 || up > 3600 {
			t.Errorf("uptime %v", up)
		}
	}
	expect(t, registry, map[string]float64{"mockbench_clock_slip_seconds_total": 1.5}, "worker_id=b")
}

func TestPrefillWorkersShowNoLatencies(t *testing.T) {
	registry := prometheus.NewRegistry()
	f, err := New(Options{Registerer: registry, Backend: engine.VLLM, Model: "m", Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	f.Worker(WorkerOptions{ID: "a", Ranks: 1, Role: engine.PrefillRole}).Pass(&engine.Pass{End: 5, Outputs: []engine.Output{last(&engine.Request{})}})
	expect(t, registry, map[string]float64{"vllm:time_to_first_token_seconds": 0, "vllm:e2e_request_latency_seconds": 0})
}

// BenchmarkPass is the cost of a decode pass of 64 requests.
func BenchmarkPass(b *testing.B) {
	f, err := New(Options{Registerer: prometheus.NewRegistry(), Backend: engine.VLLM, Model: "m", Workers: 1})
	if err != nil {
		b.Fatal(err)
	}
	w := f.Worker(WorkerOptions{ID: "a", Ranks: 1})
	var p engine.Pass
	for range 64 {
		p.Outputs = append(p.Outputs, token(&engine.Request{}))
	}
	for b.Loop() {
		p.End += 10
		w.Pass(&p)
		w.Load(0, p.End, p.Load)
	}
}
