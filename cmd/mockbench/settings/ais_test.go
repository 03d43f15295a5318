package settings_test

import (
	"strings"
	"testing"

	"mockbench/profiles"
)

// describe resolves the least descriptor with some more settings in it.
func describe(more string) (*profiles.Launch, error) {
	return profiles.Normalize([]byte(`{"engine": {"timing_model": {"type": "external", "provider": "ais", "config":
		{"model": "m", "system": "h200_sxm", "backend": "vllm", "worker_type": "aggregated"` + more + `}}}}`))
}

// Words of an AIS descriptor are checked when it is read, and stay in it as they were given.
func TestEstimationModes(t *testing.T) {
	for setting, words := range map[string][2][]string{
		"estimation_mode": {{"auto", "op_level", "fpm_interpolation", "fpm", "fpm_regression"}, {"", "Auto", "fast"}},
		"forward_model":   {{"auto", "fpm"}, {"fast"}},
		"fallback_policy": {{"deny", "error", "allow", "regression"}, {"", "maybe"}},
		"database_mode":   {{"SILICON", "HYBRID", "EMPIRICAL", "SOL"}, {"silicon"}},
	} {
		for _, word := range words[0] {
			l, err := describe(`, "` + setting + `": "` + word + `"`)
			if err != nil {
				t.Errorf("%s %s: %v", setting, word, err)
				continue
			}
			d, _ := l.PerformanceConfig()
			if got, _ := d.Get(setting); got != word {
				t.Errorf("%s: got %v, want %s", setting, got, word)
			}
		}
		for _, word := range words[1] {
			if _, err := describe(`, "` + setting + `": "` + word + `"`); err == nil || !strings.Contains(err.Error(), setting) {
				t.Errorf("%s %q: got %v", setting, word, err)
			}
		}
	}
}

// Any version is passed through; what it stands for is known with the data alone.
func TestBackendVersions(t *testing.T) {
	for _, version := range []string{"current", "previous", "next", "0.14.0"} {
		s, _, err := resolve("--ais-perf-model --model-path org/model --ais-backend-version " + version)
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		d, ok := s.Launch.PerformanceConfig()
		if got, _ := d.Get("backend_version"); !ok || got != version {
			t.Errorf("got %v, want %s", got, version)
		}
	}
}

// The two sizes of expert parallelism go together, and fill the width of tensor and attention parallelism, which in turn
// become settings of the worker.
func TestExpertSizes(t *testing.T) {
	for flags, want := range map[string]string{
		"--ais-tp-size 4":                                                                   "",
		"--ais-tp-size 4 --ais-moe-tp-size 4":                                               "moe_ep_size must be given together",
		"--ais-tp-size 4 --ais-moe-ep-size 4":                                               "moe_ep_size must be given together",
		"--ais-tp-size 4 --ais-moe-tp-size 2 --ais-moe-ep-size 1":                           "tp x attention_dp x cp_size = 4",
		"--ais-tp-size 2 --ais-attention-dp-size 4 --ais-moe-tp-size 2 --ais-moe-ep-size 4": "",
		"--ais-attention-dp-size 4 --data-parallel-size 2":                                  "dp_size",
		"--ais-tp-size 2 --ais-attention-dp-size 4 --data-parallel-size 4":                  "",
	} {
		s, _, err := resolve("--ais-perf-model --model-path org/model " + flags)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", flags, err, want)
		case err == nil && strings.Contains(flags, "attention-dp") && (s.Launch.DPSize != 4 || s.Launch.TensorParallelSize != 2):
			t.Errorf("%s: %d ranks of %d", flags, s.Launch.DPSize, s.Launch.TensorParallelSize)
		}
	}
}
