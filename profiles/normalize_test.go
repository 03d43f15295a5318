package profiles_test

import (
	"errors"
	"fmt"
	"testing"

	"mockbench/engine"
	"mockbench/profiles"
)

func ExampleNormalize() {
	l, err := profiles.Normalize([]byte(`{"engine": {"backend": "sglang", "max_num_seqs": 8}, "dp_size": 2}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Engine.Backend, l.Engine.BlockSize, l.Engine.MaxNumSeqs, l.DPSize)
	size, _ := l.Canonical().Get("engine.num_gpu_blocks")
	fmt.Println(size)

	_, err = profiles.Normalize([]byte("engine.json"))
	fmt.Println(err != nil)
	_, err = profiles.Normalize([]byte(`{"engine": {"max_num_seqs": 0}}`))
	fmt.Println(err)
	// Output:
	// sglang 1 8 2
	// 16384
	// true
	// engine.max_num_seqs: got 0, must be positive
}

func ExampleLaunch_EngineLimit() {
	l, err := profiles.Normalize([]byte(`{"engine": {"max_num_batched_tokens": null}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"max_num_seqs", "max_num_batched_tokens", "max_model_len", "max_seqs", "backend"} {
		limit, bounded, err := l.EngineLimit(name)
		fmt.Println(name, limit, bounded, err)
	}
	// Output:
	// max_num_seqs 256 true <nil>
	// max_num_batched_tokens 0 false <nil>
	// max_model_len 0 false <nil>
	// max_seqs 0 false engine.max_seqs: no such setting
	// backend 0 false engine.backend: got "vllm", is no limit, which is a whole number or null
}

func TestEngineLimitKeepsAllBits(t *testing.T) {
	l, err := profiles.Normalize([]byte(`{"engine": {"aic_mtp_seed": 18446744073709551615}}`))
	if err != nil {
		t.Fatal(err)
	}
	if v, bounded, err := l.EngineLimit("aic_mtp_seed"); v != 1<<64-1 || !bounded || err != nil {
		t.Errorf("got %d, %t, %v", v, bounded, err)
	}
	_, _, err = l.EngineLimit("sglang")
	var wrong *engine.SettingError
	if !errors.As(err, &wrong) || wrong.Kind != engine.KindType {
		t.Errorf("a section as a limit: got %v", err)
	}
	if _, _, err = l.EngineLimit("sglang.max_prefill_tokens"); err == nil {
		t.Error("a dotted name was found")
	}
}

func ExampleLaunch_PerformanceConfig() {
	for _, timing := range []string{
		`{"type": "polynomial"}`,
		`{"type": "external", "provider": "ais", "config": {"model": "m", "system": "h200_sxm", "backend": "vllm", "worker_type": "aggregated"}}`,
	} {
		l, err := profiles.Normalize([]byte(`{"engine": {"timing_model": ` + timing + `}}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		descriptor, ok := l.PerformanceConfig()
		if !ok {
			fmt.Println("none")
			continue
		}
		system, _ := descriptor.Get("system")
		fmt.Println(system)
	}
	// Output:
	// none
	// h200_sxm
}
