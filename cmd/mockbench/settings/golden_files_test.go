package settings_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/engine/outputs"
	"mockbench/engine/timing"
	"mockbench/profiles/profiledata"
	"mockbench/transport/modelcard"
)

// reasoningTokens compares the length of the reasoning span.
func reasoningTokens(t *testing.T, c goldenCase) {
	n := toInt(c.Input["max_output_tokens"])
	r := outputs.Reasoning{Ratio: toFloat(c.Input["thinking_ratio"])}
	span := r.Span(n)
	if span != toInt(c.Expect["thinking_tokens"]) || n-span != toInt(c.Expect["response_tokens"]) {
		t.Errorf("%d tokens of reasoning and %d of answer, want %v and %v", span, n-span, c.Expect["thinking_tokens"], c.Expect["response_tokens"])
	}
}

// runtimeConfig takes an engine file the whole way to the model card.
func runtimeConfig(t *testing.T, c goldenCase) {
	file := filepath.Join(t.TempDir(), "engine.json")
	text, err := json.Marshal(c.Input["config"])
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := flags.Read([]string{"--extra-engine-args", file}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	s, err := settings.Resolve(v, noEnv, settings.NoDemo)
	if rejected(t, c, err) {
		return
	}
	model, err := modelcard.Builtin(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	host := "192.0.2.10"
	if env, ok := c.Input["env"].(map[string]any); ok {
		host = env["DYN_HTTP_RPC_HOST"].(string)
	}
	o := modelcard.Options{Model: model, Engine: s.Launch.Engine, Ranks: int(s.Launch.DPSize), LocalIndexer: s.Launch.Dynamo.EnableLocalIndexer}
	if port := s.Launch.Dynamo.BootstrapPort; port != nil {
		o.Bootstrap = &modelcard.Bootstrap{Host: host, Port: int(*port)}
	}
	card, err := modelcard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "kv_cache_block_size", card.BlockSize, c.Expect["kv_cache_block_size"])
	want := c.Expect["runtime_config"].(map[string]any)
	got := plain(t, card.Runtime).(map[string]any)
	endpoint, _ := got["disaggregated_endpoint"].(map[string]any)
	got["bootstrap_host"], got["bootstrap_port"] = endpoint["bootstrap_host"], endpoint["bootstrap_port"]
	if got["topology_domains"] == nil {
		got["topology_domains"] = map[string]any{}
	}
	data := want["runtime_data"].(map[string]any)
	for name, text := range data { // recorded as text
		data[name] = text == "true"
	}
	for name := range want {
		same(t, name, got[name], want[name])
	}
}

// TestGoldenCliDescriptor compares the AIS descriptor that flags build, before anything checks it.
func TestGoldenCliDescriptor(t *testing.T) {
	for _, c := range golden(t, "ais_config.jsonl") {
		t.Run(c.Name, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, c.text)
			var args []string
			for _, a := range c.Input["argv"].([]any) {
				args = append(args, replaceDir(a, dir).(string))
			}
			v, err := flags.Read(args, noEnv)
			if err != nil {
				t.Fatal(err)
			}
			built, err := settings.TimingModel(v, noEnv)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "timing model", built, replaceDir(c.Expect["built_timing_model"], dir))
		})
	}
}

// profileConvert fits the results of a profiler.
func profileConvert(t *testing.T, c goldenCase) {
	table, err := profileTable(t, c)
	if err == nil && c.Expect["class"] != "config_error" {
		compareTable(t, c, table)
		return
	}
	if (err != nil) != (c.Expect["class"] == "config_error") {
		t.Errorf("got %v, want %v", err, c.Expect["class"])
	}
}

func profileTable(t *testing.T, c goldenCase) (*timing.Table, error) {
	t.Helper()
	dir := t.TempDir()
	for part, file := range map[string]string{"prefill": "prefill_raw_data.json", "decode": "decode_raw_data.json"} {
		text, err := json.Marshal(c.Input[part])
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := profiledata.ReadResults(dir) // the arrays of the NPZ form are the same
	if err != nil {
		return nil, err
	}
	return r.Table()
}

func compareTable(t *testing.T, c goldenCase, got *timing.Table) {
	t.Helper()
	near := func(name string, got float64, want any) {
		if w := toFloat(want); math.Abs(got-w) > 1e-9*math.Max(math.Abs(w), 1e-6) {
			t.Errorf("%s: got %v, want %v", name, got, w)
		}
	}
	index := c.Expect["index"].([]any)
	for name, list := range map[string][]float64{"prefill_isl": got.PrefillTokens, "prefill_ttft_ms": got.PrefillMS,
		"decode_active_kv_tokens": got.ActiveTokens, "decode_context_length": got.Context} {
		for i, want := range c.Expect[name].([]any) {
			near(name, list[toInt(index[i])], want)
		}
	}
	for i, row := range c.Expect["decode_itl"].([]any) {
		for j, want := range row.([]any) {
			near("decode_itl", got.DecodeMS[toInt(index[i])*len(got.Context)+toInt(index[j])], want)
		}
	}
	shape := c.Expect["shapes"].(map[string]any)["decode_itl"].([]any)
	if got.DecodeShape != [2]int{toInt(shape[0]), toInt(shape[1])} {
		t.Errorf("shape %v, want %v", got.DecodeShape, shape)
	}
}
