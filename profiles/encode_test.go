package profiles_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/workload"
	"mockbench/profiles"
)

// drawn puts settings into an object, each only at times.
type drawn struct {
	t *rapid.T
	o *profiles.Object
}

func (d drawn) maybe(setting string, value func() any) {
	if rapid.IntRange(0, 3).Draw(d.t, setting+"?") == 0 {
		d.o.Set(setting, value())
	}
}

func (d drawn) whole(setting string, low, high uint64) {
	d.maybe(setting, func() any { return integer(rapid.Uint64Range(low, high).Draw(d.t, setting)) })
}

func (d drawn) real(setting string, low, high float64) {
	d.maybe(setting, func() any { return decimal(rapid.Float64Range(low, high).Draw(d.t, setting)) })
}

func (d drawn) words(setting string, words ...any) {
	d.maybe(setting, func() any { return rapid.SampledFrom(words).Draw(d.t, setting) })
}

func (d drawn) text(setting string) {
	d.maybe(setting, func() any { return rapid.String().Draw(d.t, setting) })
}

func integer(n uint64) json.Number { b, _ := json.Marshal(n); return json.Number(b) }

func decimal(x float64) json.Number { b, _ := json.Marshal(x); return json.Number(b) }

// configuration draws an engine object; many are accepted.
func configuration(t *rapid.T) *profiles.Object {
	d := drawn{t, profiles.NewObject()}
	backend := rapid.SampledFrom([]string{"vllm", "sglang", "trtllm"}).Draw(t, "backend")
	if rapid.Bool().Draw(t, "backend?") || backend != "vllm" {
		d.o.Set("engine.backend", backend)
	}
	const most = math.MaxUint64
	d.whole("dp_size", 1, 8)
	d.whole("tensor_parallel_size", 1, 8)
	d.real("startup_time", 0, 1e9)
	d.words("num_gpu_blocks_is_explicit", true, false)
	d.real("gpu_memory_utilization", 0, 1)
	d.real("mem_fraction_static", 0, 1)
	d.real("free_gpu_memory_fraction", 0, 1)
	d.whole("cuda_graph_reserved_bytes", 0, most)
	d.whole("engine.num_gpu_blocks", 1, 40000)
	d.words("engine.block_size", nil, integer(2), integer(16), integer(64))
	d.whole("engine.max_model_len", 1, 1<<40)
	d.whole("engine.max_num_seqs", 1, most)
	d.whole("engine.max_num_batched_tokens", 1, most)
	d.words("engine.max_num_batched_tokens", nil)
	d.words("engine.enable_prefix_caching", true, false)
	d.words("engine.enable_chunked_prefill", true)
	d.real("engine.speedup_ratio", 0, math.MaxFloat64)
	d.whole("engine.aic_mtp_seed", 0, most)
	d.words("engine.worker_type", "aggregated", "prefill", "decode")
	d.words("engine.preemption_mode", "lifo", "fifo")
	d.words("engine.emit_kv_events", true, false)
	d.whole("engine.kv_transfer_bytes_per_token", 1, 1<<20)
	d.words("engine.kv_transfer_bandwidth", nil, decimal(0), decimal(12.5))
	d.words("engine.kv_transfer_timing_mode", "full_prompt", "destination_missing")
	d.whole("engine.sglang.max_prefill_tokens", 1, 1<<40)
	d.real("engine.sglang.schedule_conservativeness", 0, 2)
	d.whole("dynamo.handoff_session_timeout_ms", 1, most)
	d.words("dynamo.enable_local_indexer", true, false)
	d.words("dynamo.router_queue_policy", nil, "fcfs", "lcfs", "wspt")
	d.whole("dynamo.bootstrap_port", 0, 65535)
	d.text("dynamo.response_replay_trace_path")
	blocks(d)
	return d.o
}

// blocks draws settings that come together.
func blocks(d drawn) {
	switch rapid.IntRange(0, 4).Draw(d.t, "block") {
	case 0:
		d.o.Set("engine.native_host_offload.num_host_blocks", integer(rapid.Uint64Range(1, 1<<20).Draw(d.t, "host")))
		d.o.Set("engine.kv_cache_bytes_per_token", integer(1<<17))
		d.real("engine.native_host_offload.d2h_bandwidth_gbps", 0, 1000)
		d.real("engine.native_host_offload.latency_to_first_byte_ms", 0, 1000)
		d.words("engine.native_host_offload.scope", "dp_rank_local", "cluster_shared")
		d.text("engine.native_host_offload.kv_layout_id")
	case 1:
		d.o.Set("engine.aic_nextn", integer(rapid.Uint64Range(1, 5).Draw(d.t, "nextn")))
		d.words("engine.aic_nextn_accept_rates", nil, "", " 1, 0.25", "0.8,0.6,0.4,0.2,1e-3")
	case 2:
		d.o.Set("engine.timing_model.type", "fixed")
		d.o.Set("engine.timing_model.prefill_ms", decimal(rapid.Float64Range(0, 1e6).Draw(d.t, "prefill")))
		d.o.Set("engine.timing_model.decode_ms", decimal(rapid.Float64Range(0, 1e6).Draw(d.t, "decode")))
	case 3:
		d.o.Set("dynamo.reasoning.start_thinking_token_id", integer(3))
		d.o.Set("dynamo.reasoning.end_thinking_token_id", integer(4))
		d.o.Set("dynamo.reasoning.thinking_ratio", decimal(rapid.Float64Range(0, 1).Draw(d.t, "ratio")))
	}
}

func load(t *rapid.T) *profiles.Load {
	l := profiles.DefaultLoad()
	n := rapid.IntRange(0, 9_999_999) // lengths are bounded
	share := rapid.Float64Range(0, 1)
	l.Options = workload.Options{
		Rate: rapid.Float64Range(0, 1e6).Draw(t, "rate"), Burst: n.Draw(t, "burst"), Sessions: n.Draw(t, "sessions"),
		Concurrency: n.Draw(t, "concurrency") + 1, MaxInFlight: n.Draw(t, "in flight"),
		PromptMean: n.Draw(t, "prompt") + 1, PromptSpread: n.Draw(t, "spread"),
		OutputMean:  rapid.SampledFrom([]int{128, 1, 77}).Draw(t, "output"),
		PrefixCount: n.Draw(t, "prefixes"), PrefixLength: n.Draw(t, "length"), PrefixShare: share.Draw(t, "share"),
		Turns: n.Draw(t, "turns"), ThinkTime: 1e9 * share.Draw(t, "think"), MaxPrompt: n.Draw(t, "most"),
	}
	l.Routing = rapid.SampledFrom(router.Policies()).Draw(t, "routing")
	l.Router.OverlapCredit, l.Router.HostWeight = 1e6*share.Draw(t, "credit"), share.Draw(t, "host")
	l.Router.TrackPrefill = rapid.Bool().Draw(t, "track")
	return &l
}

// Whatever is accepted survives being saved, read and resolved.
func TestSavedProfilesAreReadUnchanged(t *testing.T) {
	accepted := 0
	schema := compiled(t, profiles.EngineSchema())
	rapid.Check(t, func(t *rapid.T) {
		o := configuration(t)
		l, err := profiles.Resolve(o)
		if err != nil {
			t.Skip(err)
		}
		accepted++
		if err := schema.Validate(plain(t, l.Canonical())); err != nil {
			t.Errorf("the schema refuses what is accepted: %v", err)
		}
		p := profiles.New(l, nil)
		p.Description, p.Workers = rapid.String().Draw(t, "description"), rapid.Uint32Range(1, 100).Draw(t, "workers")
		if l.Engine.Role == engine.Aggregated && rapid.Bool().Draw(t, "split?") {
			p.Workers, p.PrefillWorkers, p.DecodeWorkers = 1, p.Workers, 3
		}
		if rapid.Bool().Draw(t, "load?") {
			p.Load = load(t)
		}
		if rapid.Bool().Draw(t, "slo?") {
			limit := rapid.Float64Range(0, 1e6)
			p.SLO = report.Limits{TTFT: limit.Draw(t, "ttft"), ITL: limit.Draw(t, "itl"), E2E: limit.Draw(t, "e2e")}
		}
		data, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := profiles.Parse("again", data)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		back, err := again.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		l.Warnings, back.Warnings = nil, nil
		if d := cmp.Diff(l, back); d != "" {
			t.Errorf("%s\n%s", d, data)
		}
		ignore := cmpopts.IgnoreFields(profiles.Profile{}, "Name", "Launch", "text")
		if d := cmp.Diff(p, again, ignore); d != "" {
			t.Errorf("%s\n%s", d, data)
		}
		again.Launch = profiles.New(back, nil).Launch
		second, err := again.Encode()
		if err != nil || !slices.Equal(data, second) {
			t.Errorf("the second text differs: %v\n%s\n%s", err, data, second)
		}
	})
	if accepted == 0 {
		t.Error("no configuration was accepted")
	}
}

func TestOnlyWhatDiffersIsSaved(t *testing.T) {
	c := engine.DefaultConfig(engine.SGLang)
	o := profiles.NewObject()
	o.Set("engine.backend", "sglang")
	o.Set("engine.num_gpu_blocks", integer(uint64(c.NumGPUBlocks)))
	o.Set("engine.max_num_seqs", integer(16))
	o.Set("dynamo.enable_local_indexer", true)
	l, err := profiles.Resolve(o)
	if err != nil {
		t.Fatal(err)
	}
	data, err := profiles.New(l, nil).Encode()
	const want = "version = 1\nworkers = 1\n\n[engine]\nbackend = \"sglang\"\nnum_gpu_blocks = 16384\nmax_num_seqs = 16\n"
	if err != nil || string(data) != want {
		t.Errorf("%v, %s", err, data)
	}
}

// A new option of a load must find its way into profiles.
func TestProfilesHaveEveryOptionOfALoad(t *testing.T) {
	const seedAndRequests, routing = 2, 2 // of the command line, and of the load alone
	options := reflect.TypeFor[workload.Options]().NumField() - seedAndRequests + routing
	if n := len(profiles.ProfileSchema().Properties["load"].Properties); n != options {
		t.Errorf("profiles have %d settings of a load, there are %d", n, options)
	}
	weights := reflect.TypeFor[router.Model]().NumField()
	if n := len(profiles.ProfileSchema().Properties["load"].Properties["router"].Properties); n != weights {
		t.Errorf("profiles have %d weights of a router, there are %d", n, weights)
	}
}
