package goldentest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"mockbench/engine"
)

// timeTolerance is the allowed difference of times in milliseconds.
const timeTolerance = 2e-6

// refusals maps the reference's messages to the setting and the kind of error they identify.
var refusals = []struct {
	text, setting string
	kind          engine.Kind
}{
	{"block_size must be at least two", "block_size", engine.KindRange},
	{"max_num_seqs must be positive", "max_num_seqs", engine.KindRange},
	{"num_gpu_blocks must be positive", "num_gpu_blocks", engine.KindRange},
	{"decode_speedup_ratio must be finite", "decode_speedup_ratio", engine.KindRange},
	{"speedup_ratio must be finite", "speedup_ratio", engine.KindRange},
	{"emit_kv_token_ids requires", "emit_kv_token_ids", engine.KindMissing},
	{"prefill_schedule_interval must be positive", "prefill_schedule_interval", engine.KindRange},
	{"prefill_schedule_interval is supported only", "prefill_schedule_interval", engine.KindUnsupported},
	{"aic_nextn must be in", "aic_nextn", engine.KindRange},
	{"aic_nextn_accept_rates requires", "aic_nextn_accept_rates", engine.KindMissing},
	{"expected `lifo` or `fifo`", "preemption_mode", engine.KindUnknown},
	{"expected `guaranteed_no_evict`", "trtllm.capacity_scheduler_policy", engine.KindUnknown},
	{"expected `capacity_scheduler_policy`", "", engine.KindUnknown},
	{"expected `fifo` or `lpm`", "sglang.schedule_policy", engine.KindUnknown},
	{"reduces chunked_prefill_size", "sglang.chunked_prefill_size", engine.KindRange},
	{"chunked_prefill_size must be divisible", "sglang.chunked_prefill_size", engine.KindConflict},
	{"chunked_prefill_size must be positive", "sglang.chunked_prefill_size", engine.KindRange},
	{"max_prefill_tokens must be positive", "sglang.max_prefill_tokens", engine.KindRange},
	{"enable_chunked_prefill=false", "enable_chunked_prefill", engine.KindUnsupported},
	{"schedule_conservativeness must be", "sglang.schedule_conservativeness", engine.KindRange},
	{"aic_nextn requires decode_speedup_ratio", "decode_speedup_ratio", engine.KindConflict},
	{"native_host_offload is supported only", "native_host_offload", engine.KindUnsupported},
	{"native_host_offload.num_host_blocks must be positive", "native_host_offload.num_host_blocks", engine.KindRange},
	{"missing field `num_host_blocks`", "native_host_offload.num_host_blocks", engine.KindRange},
	{"latency_to_first_byte_ms must be finite", "native_host_offload.latency_to_first_byte_ms", engine.KindRange},
	{"requires a nonempty kv_layout_id", "native_host_offload.kv_layout_id", engine.KindMissing},
	{"host_offload.scope", "native_host_offload.scope", engine.KindUnknown},
	{"requires kv_cache_bytes_per_token", "kv_cache_bytes_per_token", engine.KindMissing},
	{"does not support aic_nextn", "native_host_offload", engine.KindUnsupported},
	{"requires enable_prefix_caching", "native_host_offload", engine.KindConflict},
	{"capacity in bytes overflowed", "native_host_offload.num_host_blocks", engine.KindRange},
	{"d2h_bandwidth_gbps produces an unrepresentable", "native_host_offload.d2h_bandwidth_gbps", engine.KindRange},
	{"requires a shared G2 pool", "native_host_offload.scope", engine.KindMissing},
	{"state_cache is supported only", "state_cache", engine.KindUnsupported},
	{"kv_cache_groups currently require", "kv_cache_capacity_bytes", engine.KindUnsupported},
	{"kv_cache_capacity_bytes", "kv_cache_capacity_bytes", engine.KindUnsupported},
}

// CheckRefusal compares the error of a refused configuration with a recorded message, by setting and kind.
func CheckRefusal(t *testing.T, err error, message string) {
	t.Helper()
	var got *engine.SettingError
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want a refusal like %q", err, message)
	}
	for _, r := range refusals {
		if strings.Contains(message, r.text) {
			want := strings.TrimSuffix("engine."+r.setting, ".")
			if got.Setting != want || got.Kind != r.kind {
				t.Errorf("got %s of %s, want %s of %s", got.Kind, got.Setting, r.kind, want)
			}
			return
		}
	}
	t.Fatalf("no setting is known for the refusal %q", message)
}

// commandErrors maps our errors of commands to a part of the reference's message.
var commandErrors = map[string]string{
	"active": "already active", "engine.max_model_len": "max_model_len", "engine.num_gpu_blocks": "KV pool capacity",
}

// omitted are the fields that recordings without full detail leave out.
var omitted = map[string]bool{"perf": true, "q": true, "fpm": true, "da": true, "req": true,
	"ratio": true, "pool": true, "tree": true, "defer": true}

func (r *run) compare() {
	want := &r.c.Expect
	raw, err := json.Marshal(r.steps)
	if err != nil {
		r.t.Fatal(err)
	}
	var got []any
	if err := json.Unmarshal(raw, &got); err != nil {
		r.t.Fatal(err)
	}
	for i, w := range want.Steps {
		if i == len(got) {
			r.t.Fatalf("%d steps, want %d", len(got), len(want.Steps))
		}
		if diff := Difference(got[i], w, r.c.Input.Detail == "full"); diff != "" {
			r.t.Fatalf("step %d: %s\n got %s\nwant %s", i, diff, text(got[i]), text(w))
		}
	}
	stalled := want.Stalled || want.PassLimitHit
	if len(got) != len(want.Steps) || r.passes != want.Passes || r.stalled != stalled || r.group.Drained() != want.Drained ||
		math.Abs(r.now-want.EndMS) > timeTolerance {
		r.t.Errorf("%d steps, %d passes, end %v, stalled %v, drained %v, want %d, %d, %v, %v, %v", len(got), r.passes, r.now,
			r.stalled, r.group.Drained(), len(want.Steps), want.Passes, want.EndMS, stalled, want.Drained)
	}
	r.compareContents()
	r.compareOccupancy()
}

// compareContents compares what the KV events of every rank add up to with the contents of its pool.
func (r *run) compareContents() {
	if !r.cfg.EmitKVEvents {
		return
	}
	for i, index := range r.indexes {
		held := map[uint64]bool{}
		for n := range int32(r.cfg.NumGPUBlocks) {
			if b := r.group.Rank(i).Block(n); b.Hash != 0 {
				held[b.Hash] = true
			}
		}
		for h, stored := range index {
			if stored != held[h] {
				r.t.Errorf("rank %d: block %s: events say %v, the pool says %v", i, r.label(h), stored, held[h])
			}
		}
		for h := range held {
			if !index[h] {
				r.t.Errorf("rank %d: block %s was never announced", i, r.label(h))
			}
		}
	}
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// Difference returns the path of the first difference between an own and a recorded step, or "". Without full detail a
// recording leaves fields out. Both sides have been through JSON.
func Difference(got, want any, full bool) string { return comparison{full}.difference("", got, want) }

type comparison struct{ full bool }

func (r comparison) difference(path string, got, want any) string {
	switch w := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			return path
		}
		return r.compareFields(path, m, w)
	case []any:
		l, ok := got.([]any)
		if strings.HasSuffix(path, ".q.w") {
			w = firstOccurrences(w)
		}
		if !ok || len(l) != len(w) {
			return path
		}
		for i := range w {
			if d := r.difference(fmt.Sprintf("%s[%d]", path, i), l[i], w[i]); d != "" {
				return d
			}
		}
	case float64:
		n, ok := got.(float64)
		if !ok || math.Abs(n-w) > tolerance(path, w) {
			return path
		}
	case string:
		if n, ok := got.(string); !ok || n != w && !(strings.HasSuffix(path, ".error") && strings.Contains(w, commandErrors[n]) && commandErrors[n] != "") {
			return path
		}
	default:
		if got != want {
			return path
		}
	}
	return ""
}

func (r comparison) compareFields(path string, got, want map[string]any) string {
	for k := range want {
		if _, ok := got[k]; !ok {
			return path + "." + k + " is missing"
		}
		if d := r.difference(path+"."+k, got[k], want[k]); d != "" {
			return d
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok && (r.full || !omitted[k]) {
			return path + "." + k + " is too much"
		}
	}
	return ""
}

// tolerance returns how far a number may be off: times a little, modelled lengths and variances in the last places,
// everything else not at all.
func tolerance(path string, want float64) float64 {
	last := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case last == "t" || last == "end" || last == "rank_end" || last == "compute_start" || last == "internal" ||
		last == "at" || last == "retract[6]" || last == "done" || last == "not_before" || last == "fpm[13]":
		return timeTolerance
	case strings.HasPrefix(last, "perf") || last == "ratio" || last == "fpm[2]" || last == "fpm[6]" || last == "fpm[9]" || last == "fpm[12]":
		return 1e-9 * math.Abs(want)
	}
	return 0
}

// firstOccurrences drops the dead entries of a recorded queue: ids that stand further in front already.
func firstOccurrences(list []any) []any {
	seen := map[any]bool{}
	kept := []any{}
	for _, v := range list {
		if !seen[v] {
			kept = append(kept, v)
		}
		seen[v] = true
	}
	return kept
}
