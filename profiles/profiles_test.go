package profiles_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
	"mockbench/profiles"
)

func resolve(t *testing.T, text string) (*profiles.Launch, error) {
	t.Helper()
	o, err := profiles.ParseJSON("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return profiles.Resolve(o)
}

func TestCanonicalIsStable(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"engine":{"backend":"sglang","block_size":16,"max_num_seqs":18446744073709551615}}`,
		`{"engine":{"kv_cache_bytes_per_token":128,"native_host_offload":{"num_host_blocks":4,"latency_to_first_byte_ms":0.5}},"dp_size":4}`,
		`{"engine":{"aic_nextn":3,"aic_nextn_accept_rates":"0.10, 1e-1,1"},"dynamo":{"bootstrap_port":0}}`,
		`{"engine":{"timing_model":{"type":"fixed","prefill_ms":1,"decode_ms":0}},"startup_time":2}`,
	} {
		first, err := resolve(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		second, err := profiles.Resolve(first.Canonical())
		if err != nil {
			t.Errorf("%s: canonical form: %v", text, err)
			continue
		}
		a, _ := json.Marshal(first.Canonical())
		b, _ := json.Marshal(second.Canonical())
		if diff := cmp.Diff(string(a), string(b)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	for _, c := range []struct {
		text, setting string
		kind          engine.Kind
	}{
		{`{"engine":{"block-size":4}}`, "engine.block-size", engine.KindUnknown},
		{`{"num_gpu_blocks":5}`, "num_gpu_blocks", engine.KindUnknown},
		{`{"engine":{"num_gpu_blocks":10.0}}`, "engine.num_gpu_blocks", engine.KindType},
		{`{"engine":{"num_gpu_blocks":18446744073709551616}}`, "engine.num_gpu_blocks", engine.KindRange},
		{`{"engine":{"backend":"vLLM"}}`, "engine.backend", engine.KindUnknown},
		{`{"engine":{"kv_bytes_per_token":1,"kv_transfer_bytes_per_token":1}}`, "engine.kv_transfer_bytes_per_token", engine.KindConflict},
		{`{"engine":{"state_cache":{"bytes_per_request":1}}}`, "engine.state_cache", engine.KindUnsupported},
		{`{"engine":{"timing_model":{"type":"fixed","prefill_ms":1}}}`, "engine.timing_model.decode_ms", engine.KindMissing},
		{`{"dynamo":{"bootstrap_port":65536}}`, "dynamo.bootstrap_port", engine.KindRange},
		{`{"engine":{"native_host_offload":{}}}`, "engine.native_host_offload.num_host_blocks", engine.KindMissing},
		{`{"startup_time":-1}`, "startup_time", engine.KindRange},
	} {
		_, err := resolve(t, c.text)
		var s *engine.SettingError
		if !errors.As(err, &s) || s.Setting != c.setting || s.Kind != c.kind {
			t.Errorf("%s: got %v, want %s of kind %s", c.text, err, c.setting, c.kind)
		}
	}
}

func TestHints(t *testing.T) {
	for text, hint := range map[string]string{
		`{"num_gpu_blocks":5}`:        "belongs under engine",
		`{"engine_type":"vllm"}`:      "use engine.backend",
		`{"engine":{"block-size":4}}`: "did you mean block_size?",
	} {
		if _, err := resolve(t, text); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v does not say %q", text, err, hint)
		}
	}
}

func TestLastOfEqualKeysCounts(t *testing.T) {
	l, err := resolve(t, `{"engine":{"block_size":8},"engine":{"num_gpu_blocks":5}}`)
	if err != nil {
		t.Fatal(err)
	}
	if l.Engine.BlockSize != 64 || l.Engine.NumGPUBlocks != 5 {
		t.Errorf("block size %d, blocks %d: the later object replaces the earlier one", l.Engine.BlockSize, l.Engine.NumGPUBlocks)
	}
}

func TestBadJSON(t *testing.T) {
	for _, text := range []string{"", " ", "{", `{"a":1,}`, "{} x", "{'a':1}", `{"a":NaN}`, "\xef\xbb\xbf{}", "{\"a\":\"\xff\"}", "null", "3"} {
		if _, err := profiles.ParseJSON("file.json", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "file.json: ") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestShippedProfiles(t *testing.T) {
	for _, name := range profiles.Names() {
		data, _, err := profiles.Store{}.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := profiles.Parse(name, data)
		if err != nil {
			t.Error(err)
			continue
		}
		if a := profiles.Notes(data); p.Description != a.Title || a.Title == "" || a.LookAt == "" || a.Change == "" || p.Load == nil {
			t.Errorf("%s: a shipped profile has a load, and a comment that says what to look at and what to change: %+v", name, a)
		}
	}
}

func TestProfileErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"workers = 2\n[engine]\nblock_size = 0\n":   "profile x: line 3: engine.block_size: got 0",
		"workers = 2\n\n[engine]\nblocksize = 16\n": "profile x: line 4: engine.blocksize",
		"workers = \n":          "profile x: line 1:",
		"workers = 0\n":         "profile x: line 1: workers: got 0",
		"[load]\nrate = -1.0\n": "profile x: line 2: load.rate: got -1",
		"[engine.sglang]\nschedule_policy = \"none\"\n":                    "profile x: line 2: engine.sglang.schedule_policy",
		"engine.speedup_ratio = nan\n":                                     "profile x: line 1: engine.speedup_ratio: got NaN, must be finite",
		"version = 2\nnew_setting = 1\n":                                   "profile x: line 1: version: got 2, this program reads profiles of version 1",
		"[load]\nrate = 1.0\n[load.router]\nhost_cache_hit_weight = 2.0\n": "profile x: line 4: load.router.host_cache_hit_weight: got 2, must be between 0 and 1",
		"[slo]\nttft_ms = -1.0\n":                                          "profile x: line 2: slo.ttft_ms: got -1, must be finite and not negative",
		"[slo]\nttft = 1.0\n":                                              "profile x: line 2: slo.ttft: no such setting",
		"[load]\nruting = 1\n":                                             "profile x: line 2: load.ruting: no such setting, did you mean routing?",
		"[load]\nmax_num_seqs = 1\n":                                       "profile x: line 2: load.max_num_seqs: no such setting, it belongs under engine",
		"concurrency = 1\n":                                                "profile x: line 1: concurrency: no such setting, it belongs under load",
		"prefill_workers = 1\n":                                            "profile x: line 1: prefill_workers: needs decode_workers",
		"decode_workers = 1\n":                                             "profile x: line 1: decode_workers: needs prefill_workers",
		"workers = 2\nprefill_workers = 1\ndecode_workers = 1\n":           "profile x: line 1: workers: cannot be combined",
		"[[engine]]\nblock_size = 1\n":                                     "profile x: line ",
		"engine.x = 1979-05-27\n":                                          "profile x: line 1: engine.x: values of this type",
		"engine = { num_gpu_blocks = 0 }\n":                                "profile x: line 1: engine.num_gpu_blocks: got 0",
	} {
		if _, err := profiles.Parse("x", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
