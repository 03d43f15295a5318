package knobs

import (
	"errors"
	"slices"
	"testing"

	"mockbench/engine"
	"mockbench/engine/router"
	"mockbench/engine/workload"
)

func setup(b engine.Backend) Setup {
	return Setup{Engine: engine.DefaultConfig(b), Load: workload.Demo(4), Policy: router.KV, Model: router.DefaultModel(),
		HasLoad: true, HasRouter: true, HasSLO: true}
}

func find(t *testing.T, s Setup, name string) *Knob {
	t.Helper()
	list := List(s)
	i := slices.IndexFunc(list, func(k *Knob) bool { return k.Name == name })
	if i < 0 {
		t.Fatalf("no knob %s", name)
	}
	return list[i]
}

// Every knob takes its own text back, and a step changes it to a text that it reads.
func TestTextsAndSteps(t *testing.T) {
	for _, b := range []engine.Backend{engine.VLLM, engine.SGLang, engine.TRTLLM} {
		s := setup(b)
		s.Engine.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: 10, DecodeMS: 2}
		if b == engine.VLLM {
			s.Engine.KVCacheBytesPerToken, s.Engine.HostOffload = 1000, engine.DefaultHostOffload(64)
		}
		for _, k := range List(s) {
			text := k.Text(s)
			same, err := k.Set(s, text)
			if err != nil || k.Text(same) != text {
				t.Errorf("%s %s: %q becomes %q, %v", b, k.Setting, text, k.Text(same), err)
			}
			if k.Name == "aic_nextn_accept_rates" {
				continue
			}
			up := k.Step(s, true)
			if k.Text(s) != text {
				t.Errorf("%s %s: a step changed the setup it began with", b, k.Setting)
			}
			next, err := k.Set(s, up)
			var wrong *engine.SettingError
			if up == text && text != "1" || err != nil && (!errors.As(err, &wrong) || wrong.Kind == engine.KindType) || k.Text(next) != up {
				t.Errorf("%s %s: %q steps to %q, then %q, %v", b, k.Setting, text, up, k.Text(next), err)
			}
		}
	}
}

func TestSteps(t *testing.T) {
	s := setup(engine.VLLM)
	for _, c := range []struct{ name, from, up, down string }{
		{"num_gpu_blocks", "512", "576", "480"}, {"num_gpu_blocks", "16384", "18432", "15360"}, {"num_gpu_blocks", "1000", "1024", "960"},
		{"max_num_seqs", "5", "6", "4"}, {"max_num_seqs", "1", "2", "0"}, {"max_num_seqs", "unlimited", "unlimited", "unlimited"},
		{"block_size", "64", "128", "32"}, {"speedup_ratio", "1", "1.1", "0.9"}, {"rate", "12", "13", "11"}, {"rate", "0", "0.01", "none"},
		{"prefix_share", "0.6", "0.65", "0.55"}, {"prefix_share", "1", "1", "0.95"}, {"enable_chunked_prefill", "true", "false", "false"},
		{"policy", "kv", "round-robin", "least-loaded"},
	} {
		k := find(t, s, c.name)
		at, err := k.Set(s, c.from)
		if err != nil && c.from != "0" {
			t.Fatal(err)
		}
		if up, down := k.Step(at, true), k.Step(at, false); up != c.up || down != c.down {
			t.Errorf("%s: from %s up to %s, down to %s, want %s and %s", c.name, c.from, up, down, c.up, c.down)
		}
	}
}

// Wrong values are refused as the settings of a profile or command line are.
// A word tells what 0 means; both are read.
func TestWordsForZero(t *testing.T) {
	s := setup(engine.VLLM)
	s.Engine.KVCacheBytesPerToken, s.Engine.HostOffload = 1000, engine.DefaultHostOffload(64)
	for name, word := range map[string]string{"max_model_len": "unlimited", "aic_nextn": "none", "h2d_bandwidth_gbps": "unlimited",
		"ttft_ms": "none", "concurrency": "none", "max_in_flight": "4096", "num_host_blocks": "none"} {
		k := find(t, s, name)
		for _, text := range []string{"0", word} {
			if next, err := k.Set(s, text); err != nil || k.Text(next) != word {
				t.Errorf("%s %s becomes %s, %v", name, text, k.Text(next), err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	s := setup(engine.VLLM)
	for _, c := range []struct {
		name, text, setting string
		kind                engine.Kind
	}{
		{"max_num_seqs", "0", "engine.max_num_seqs", engine.KindRange},
		{"max_num_seqs", "many", "engine.max_num_seqs", engine.KindType},
		{"num_gpu_blocks", "-3", "engine.num_gpu_blocks", engine.KindRange},
		{"num_gpu_blocks", "", "engine.num_gpu_blocks", engine.KindType},
		{"block_size", "1", "engine.block_size", engine.KindRange},
		{"preemption_mode", "lafo", "engine.preemption_mode", engine.KindType},
		{"speedup_ratio", "NaN", "engine.speedup_ratio", engine.KindRange},
		{"num_host_blocks", "64", "engine.kv_cache_bytes_per_token", engine.KindMissing},
		{"prefix_share", "1.5", "workload.prefix_share", engine.KindRange},
		{"router_temperature", "-1", "router.router_temperature", engine.KindRange},
		{"ttft_ms", "-1", "slo.ttft_ms", engine.KindRange},
		{"aic_nextn", "9", "engine.aic_nextn", engine.KindRange},
	} {
		_, err := find(t, s, c.name).Set(s, c.text)
		var wrong *engine.SettingError
		if !errors.As(err, &wrong) || wrong.Setting != c.setting || wrong.Kind != c.kind {
			t.Errorf("%s = %q: got %v", c.name, c.text, err)
		}
	}
}

// What a list holds depends on the run.
func TestList(t *testing.T) {
	s := Setup{Engine: engine.DefaultConfig(engine.SGLang)}
	for _, k := range List(s) {
		if k.Group == Load || k.Group == Router || k.Group == Limits || k.Name == "max_num_batched_tokens" {
			t.Errorf("%s is listed", k.Setting)
		}
	}
	find(t, s, "sglang.schedule_policy")
	v := setup(engine.VLLM)
	v.Engine.KVCacheBytesPerToken = 1000
	on, err := find(t, v, "num_host_blocks").Set(v, "2,048")
	if err != nil || on.Engine.HostOffload == nil || v.Engine.HostOffload != nil {
		t.Fatalf("host tier %+v, %v", on.Engine.HostOffload, err)
	}
	faster, err := find(t, on, "d2h_bandwidth_gbps").Set(on, "64")
	if err != nil || faster.Engine.HostOffload.D2HBandwidthGBps != 64 || on.Engine.HostOffload.D2HBandwidthGBps != 32 {
		t.Errorf("bandwidth %+v of %+v, %v", faster.Engine.HostOffload, on.Engine.HostOffload, err)
	}
}
