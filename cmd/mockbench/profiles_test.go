package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"mockbench/profiles"
)

// run is what a profile is run with to see whether it keeps its promise.
type run struct {
	profile string
	change  [2]string // a line of the profile and what takes its place; empty for the profile as it is
}

// Each shipped profile shows what its first lines promise, and what they say of the change to try is true as well. The
// runs go on some at a time, all for the same few seconds.
func TestProfilesShowWhatTheyPromise(t *testing.T) {
	runs := map[string]run{
		"tight":           {profile: "tight-memory"},
		"tight, doubled":  {"tight-memory", [2]string{"num_gpu_blocks = 288", "num_gpu_blocks = 576"}},
		"g2":              {profile: "g2-sizing"},
		"g2, too small":   {"g2-sizing", [2]string{"num_host_blocks = 1024", "num_host_blocks = 256"}},
		"kv":              {profile: "routing-ab"},
		"round robin":     {"routing-ab", [2]string{`routing = "kv"`, `routing = "round-robin"`}},
		"long":            {profile: "long-context"},
		"long, small":     {"long-context", [2]string{"tokens = 2048", "tokens = 512"}},
		"sglang":          {profile: "sglang-retraction"},
		"sglang, careful": {"sglang-retraction", [2]string{"conservativeness = 0.1", "conservativeness = 1.0"}},
		"trtllm":          {profile: "trtllm"},
		"trtllm as vllm":  {"trtllm", [2]string{`backend = "trtllm"`, `backend = "vllm"`}},
		"disagg":          {profile: "disagg"},
		"disagg, slow":    {"disagg", [2]string{"bandwidth = 12.5", "bandwidth = 1.0"}},
		"mtp":             {profile: "mtp"},
		"mtp, one":        {"mtp", [2]string{"aic_nextn = 3", "aic_nextn = 1"}},
		"agentic":         {profile: "agentic"},
		"agentic, small":  {"agentic", [2]string{"num_gpu_blocks = 4096", "num_gpu_blocks = 384"}},
		"agentic, wander": {"agentic", [2]string{`routing = "kv"`, `routing = "round-robin"`}},
		"demo":            {profile: "demo"},
	}
	f := figuresOf(t, runs)
	for promise, kept := range map[string]bool{
		"tight memory preempts, twice the blocks do not": f["tight"]["num_preemptions"] > 3 &&
			f["tight, doubled"]["num_preemptions"] == 0,
		"a preemption is a hole in the answer":   f["tight"]["max_itl_ms"] > 5*f["tight"]["p95_itl_ms"],
		"what was thrown away is computed again": f["tight"]["recomputed_tokens"] > 100,
		"blocks come back from the host":         f["g2"]["host_loaded_blocks"] > 100,
		"and raise the hit rate":                 hits(f["g2"]) > hits(f["g2, too small"])+0.1,
		"a small host tier keeps nothing long enough": f["g2, too small"]["host_loaded_blocks"] <
			f["g2"]["host_loaded_blocks"]/4,
		"KV routing keeps hits": hits(f["kv"]) > 1.5*hits(f["round robin"]),
		"prefill dominates": f["long"]["committed_prefill_tokens"] >
			5*f["long"]["emitted_output_tokens"],
		"chunks show as spikes of ITL":   f["long"]["p95_itl_ms"] > 2.5*f["long"]["median_itl_ms"],
		"smaller chunks, smaller spikes": f["long, small"]["p95_itl_ms"] < 0.8*f["long"]["p95_itl_ms"],
		"and documents that come later":  f["long, small"]["p99_ttft_ms"] > f["long"]["p99_ttft_ms"],
		"SGLang retracts":                f["sglang"]["num_retractions"] > 2,
		"unless it is careful": f["sglang, careful"]["num_retractions"] == 0 &&
			f["sglang, careful"]["p99_queue_time_ms"] > f["sglang"]["median_queue_time_ms"],
		"TensorRT-LLM never preempts": f["trtllm"]["num_preemptions"] == 0 &&
			f["trtllm"]["peak_block_occupancy"] < 1,
		"where vLLM does": f["trtllm as vllm"]["num_preemptions"] > 3,
		"its requests wait": f["trtllm"]["p99_queue_time_ms"] >
			3*f["trtllm as vllm"]["median_ttft_ms"],
		"KV moves from prefill to decode": f["disagg"]["num_transfer_time_samples"] > 10 &&
			f["disagg"]["mean_transfer_time_ms"] > 1,
		"on a slow link that is what TTFT is": f["disagg, slow"]["mean_transfer_time_ms"] >
			2*f["disagg, slow"]["mean_prefill_time_ms"],
		"a forward gives more than two tokens": f["mtp"]["mean_acceptance_length"] > 2 &&
			f["mtp"]["median_itl_ms"] == 0,
		"with one draft token fewer": f["mtp, one"]["mean_acceptance_length"] < 1.9 &&
			f["mtp, one"]["mean_tpot_ms"] > f["mtp"]["mean_tpot_ms"],
		"turns find their session in the cache": hits(f["agentic"]) > 0.55,
		"if there is room for all":              hits(f["agentic, small"]) < hits(f["agentic"])-0.05,
		"and if they come back to it":           hits(f["agentic, wander"]) < hits(f["agentic"])-0.03,
		"the demonstration reuses prefixes":     hits(f["demo"]) > 0.2 && f["demo"]["peak_block_occupancy"] > 0.6,
	} {
		if !kept {
			t.Errorf("not kept: %s", promise)
		}
	}
	if t.Failed() {
		for name, all := range f {
			maps.DeleteFunc(all, func(key string, x float64) bool {
				return x == 0 || regexp.MustCompile(`^(min|std|p75|p90|total)_|_samples$|e2e|tpot`).MatchString(key)
			})
			t.Logf("%s: %v", name, all)
		}
	}
	for _, name := range profiles.Names() {
		if !tried(runs, name) {
			t.Errorf("nothing checks what %s promises", name)
		}
	}
}

func tried(runs map[string]run, profile string) bool {
	for _, r := range runs {
		if r.profile == profile {
			return true
		}
	}
	return false
}

func hits(f map[string]float64) float64 { return f["first_admission_prefix_cache_reused_ratio"] }

// together is how many programs run at a time: more would wait for each other, and their clocks with them.
const together = 7

// figuresOf runs the program with each of the profiles and returns the summaries of the reports.
func figuresOf(t *testing.T, runs map[string]run) map[string]map[string]float64 {
	t.Helper()
	program, err := exec.LookPath("mockbench")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	figures := map[string]map[string]float64{}
	var group errgroup.Group
	group.SetLimit(together)
	dir := t.TempDir()
	for name, r := range runs {
		path := filepath.Join(dir, regexp.MustCompile(`\W`).ReplaceAllString(name, "_")+".toml")
		r.write(t, path)
		group.Go(func() error {
			cmd := exec.Command(program, "--no-tui", "--quiet", "--profile", path, "--duration", "4s", "--report", "-")
			cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			var report struct{ Summary map[string]float64 } // null leaves a figure out
			if err := json.Unmarshal(out, &report); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			figures[name] = report.Summary
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return figures
}

// write writes the profile with its change to a file.
func (r run) write(t *testing.T, path string) {
	t.Helper()
	data, _, err := profiles.Store{}.Read(r.profile)
	if err != nil {
		t.Fatal(err)
	}
	if r.change != [2]string{} {
		before := data
		if data = bytes.Replace(data, []byte(r.change[0]), []byte(r.change[1]), 1); bytes.Equal(before, data) {
			t.Fatalf("%s has no %q", r.profile, r.change[0])
		}
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
