package engine

import (
	"errors"
	"math"
	"testing"
)

func TestDefaultsAreValid(t *testing.T) {
	for _, b := range []Backend{VLLM, SGLang, TRTLLM} {
		c := DefaultConfig(b)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name    string
		backend Backend
		change  func(*Config)
		setting string
		kind    Kind
	}{
		{"no backend", VLLM, func(c *Config) { c.Backend = "" }, "backend", KindUnknown},
		{"role", VLLM, func(c *Config) { c.Role = "agg" }, "worker_type", KindUnknown},
		{"fcfs", SGLang, func(c *Config) { c.SGLang.SchedulePolicy = "fcfs" }, "sglang.schedule_policy", KindUnknown},
		{"no blocks", VLLM, func(c *Config) { c.NumGPUBlocks = 0 }, "num_gpu_blocks", KindRange},
		{"too many blocks", VLLM, func(c *Config) { c.NumGPUBlocks = math.MaxInt }, "num_gpu_blocks", KindRange},
		{"block of one token", TRTLLM, func(c *Config) { c.BlockSize = 1 }, "block_size", KindRange},
		{"interval elsewhere", TRTLLM, func(c *Config) { c.PrefillScheduleInterval = 2 }, "prefill_schedule_interval", KindUnsupported},
		{"pause elsewhere", VLLM, func(c *Config) { c.PrefillDecodeInterval = 2 }, "prefill_decode_interval", KindUnsupported},
		{"whole prefills", SGLang, func(c *Config) { c.EnableChunkedPrefill = false }, "enable_chunked_prefill", KindUnsupported},
		{"chunk and page", SGLang, func(c *Config) { c.BlockSize = 48 }, "sglang.chunked_prefill_size", KindConflict},
		{"speed", VLLM, func(c *Config) { c.SpeedupRatio = math.NaN() }, "speedup_ratio", KindRange},
		{"decode speed", VLLM, func(c *Config) { c.DecodeSpeedupRatio = math.Inf(1) }, "decode_speedup_ratio", KindRange},
		{"too many drafts", VLLM, func(c *Config) { c.Nextn = 6 }, "aic_nextn", KindRange},
		{"rate", VLLM, func(c *Config) { c.Nextn, c.NextnAcceptRates = 1, "0.5,2" }, "aic_nextn_accept_rates", KindRange},
		{"rate text", VLLM, func(c *Config) { c.Nextn, c.NextnAcceptRates = 1, "0.5," }, "aic_nextn_accept_rates", KindType},
		{"rates alone", VLLM, func(c *Config) { c.NextnAcceptRates = "0.5" }, "aic_nextn_accept_rates", KindMissing},
		{"drafts and speed", VLLM, func(c *Config) { c.Nextn, c.DecodeSpeedupRatio = 1, 2 }, "decode_speedup_ratio", KindConflict},
		{"token ids alone", VLLM, func(c *Config) { c.EmitKVTokenIDs = true }, "emit_kv_token_ids", KindMissing},
		{"offload elsewhere", SGLang, func(c *Config) { c.HostOffload = DefaultHostOffload(4) }, "native_host_offload", KindUnsupported},
		{"offload without bytes", VLLM, func(c *Config) { c.HostOffload = DefaultHostOffload(4) }, "kv_cache_bytes_per_token", KindMissing},
		{"offload scope", VLLM, func(c *Config) {
			c.HostOffload = DefaultHostOffload(4)
			c.HostOffload.Scope = "worker_local"
		}, "native_host_offload.scope", KindUnknown},
		{"transfer", VLLM, func(c *Config) { c.KVTransferBandwidth = -1 }, "kv_transfer_bandwidth", KindRange},
		{"fixed time", VLLM, func(c *Config) { c.Timing = TimingConfig{Type: "fixed", DecodeMS: -1} }, "timing_model.decode_ms", KindRange},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := DefaultConfig(c.backend)
			c.change(&config)
			var wrong *SettingError
			if err := config.Validate(); !errors.As(err, &wrong) {
				t.Fatalf("got %v", err)
			}
			if wrong.Setting != "engine."+c.setting || wrong.Kind != c.kind {
				t.Errorf("got %s of %s, want %s of engine.%s", wrong.Kind, wrong.Setting, c.kind, c.setting)
			}
		})
	}
}

func TestAcceptRates(t *testing.T) {
	for _, c := range []struct {
		nextn int
		text  string
		want  []float64
	}{
		{4, "", []float64{0.85, 0.3, 0, 0}},
		{3, " 1 , 0.25 ,0", []float64{1, 0.25, 0}},
		{2, "0.9", []float64{0.9, 0}},
		{1, "0.9,0.8", []float64{0.9}},
	} {
		config := Config{Nextn: c.nextn, NextnAcceptRates: c.text}
		got, err := config.AcceptRates()
		if err != nil || len(got) != len(c.want) {
			t.Fatalf("%q: got %v, %v", c.text, got, err)
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%q: got %v, want %v", c.text, got, c.want)
			}
		}
	}
}
