package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"mockbench/engine"
)

const forever = engine.Time(1e9)

// figures compares keys of the summary, as JSON, with what they should be. nil stands for null.
func figures(t *testing.T, r Report, want map[string]any) {
	t.Helper()
	data, err := json.Marshal(r.Summary)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for key, w := range want {
		g, ok := got[key]
		wanted, isNumber := w.(float64)
		number, _ := g.(float64)
		if !ok || w == nil && g != nil || isNumber && (g == nil || math.Abs(number-wanted) > 1e-9*math.Abs(wanted)) {
			t.Errorf("%s is %v, want %v", key, g, w)
		}
	}
}

func text(t *testing.T, r Report, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteText(&b, r, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A preempted request that finds its own blocks again is no cache hit.
func TestHitRateLeavesOutReadmissions(t *testing.T) {
	r := drive(t, config(16, 512, 10, 2), batch(4, 112, 40), forever, Options{})
	figures(t, r, map[string]any{
		"completed_requests": 4.0, "duration_ms": 290.0, "first_admission_prefix_cache_reused_ratio": 0.0,
		"prefix_cache_reused_ratio": 0.6428571428571429, "committed_prefill_tokens": 530.0, "recomputed_tokens": 82.0,
		"mean_ttft_ms": 69.0, "median_ttft_ms": 100.0, "max_ttft_ms": 156.0, "num_preemptions": 3.0})
	if out := text(t, r, 80); !strings.Contains(out, "hit rate 0.0%, reused incl. re-admission 64.3%") ||
		!strings.Contains(out, "82 tokens recomputed") {
		t.Errorf("summary:\n%s", out)
	}
}

func TestNoSamplesAreNoFigures(t *testing.T) {
	cfg := config(512, 8192, 10, 2)
	cfg.MaxNumSeqs = 1
	r := drive(t, cfg, batch(10, 32, 5), 5, Options{Limits: Limits{TTFT: 1}})
	figures(t, r, map[string]any{
		"num_requests": 10.0, "completed_requests": 0.0, "unfinished_requests": 10.0, "num_ttft_samples": 0.0, "p99_ttft_ms": nil,
		"mean_itl_ms": nil, "goodput_completed_requests": 0.0, "slo_attainment": nil, "first_admission_prefix_cache_reused_ratio": nil})
	out := text(t, r, 80)
	if strings.Contains(out, "NaN") || strings.Contains(out, "Inf") || strings.Count(out, none) < 25 {
		t.Errorf("summary:\n%s", out)
	}
	if !strings.Contains(out, "of 0 of 10 requests") || !strings.Contains(out, "10 unfinished") {
		t.Errorf("the summary does not say that nothing completed:\n%s", out)
	}
}

// One long prefill that holds decoding up is one gap of a hundred: pooled percentiles miss it, the maximum and the
// average of the request do not.
func TestStallShowsInMaximumAndTPOT(t *testing.T) {
	requests := []*engine.Request{request(0, 0, 16, 100), request(1, 50, 2048, 1)}
	r := drive(t, config(512, 8192, 200, 5), requests, forever, Options{})
	figures(t, r, map[string]any{
		"mean_itl_ms": 7.020202020202024, "p99_itl_ms": 4.997811098765266, "max_itl_ms": 205.0, "num_itl_samples": 99.0,
		"mean_tpot_ms": 7.02020202020202, "p99_tpot_ms": 7.02020202020202, "max_tpot_ms": 7.02020202020202,
		"num_tpot_samples": 1.0, "num_ttft_samples": 2.0, "max_ttft_ms": 355.0, "duration_ms": 895.0})
	if out := text(t, r, 80); !strings.Contains(out, "ITL ms (gaps)") || !strings.Contains(out, "TPOT ms/request") {
		t.Errorf("summary:\n%s", out)
	}
}

func TestTTFTIncludesTheQueue(t *testing.T) {
	cfg := config(64, 8192, 10, 2)
	cfg.MaxNumSeqs = 1
	r := drive(t, cfg, batch(10, 32, 5), forever, Options{})
	figures(t, r, map[string]any{
		"mean_ttft_ms": 91.0, "median_ttft_ms": 100.0, "max_ttft_ms": 172.0, "min_ttft_ms": 10.0, "mean_e2e_latency_ms": 99.0,
		"max_e2e_latency_ms": 180.0, "mean_itl_ms": 2.0, "duration_ms": 180.0, "mean_queue_time_ms": 81.0, "max_queue_time_ms": 162.0})

	cut := drive(t, cfg, batch(10, 32, 5), 50, Options{})
	figures(t, cut, map[string]any{"num_requests": 10.0, "completed_requests": 2.0, "unfinished_requests": 8.0,
		"num_ttft_samples": 2.0, "min_ttft_ms": 10.0, "max_ttft_ms": 28.0})
	if out := text(t, cut, 80); !strings.Contains(out, "8 unfinished") || !strings.Contains(out, "of 2 of 10 requests") {
		t.Errorf("summary of the run that was cut short:\n%s", out)
	}
}

func TestGoodput(t *testing.T) {
	cfg := config(64, 8192, 10, 2)
	cfg.MaxNumSeqs = 1
	r := drive(t, cfg, batch(10, 32, 5), forever, Options{Limits: Limits{TTFT: 82, ITL: 2}})
	figures(t, r, map[string]any{"sla_ttft_ms": 82.0, "goodput_completed_requests": 5.0, "slo_attainment": 0.5,
		"slo_ttft_attainment": 0.5, "slo_itl_attainment": 1.0, "goodput_request_throughput_rps": 5 / 0.180,
		"goodput_output_throughput_tok_s": 25 / 0.180})
}

func TestOversizedRequestIsRejected(t *testing.T) {
	cfg := config(64, 8192, 10, 2)
	cfg.MaxModelLen = 100
	r := drive(t, cfg, []*engine.Request{request(0, 0, 200, 5), request(1, 0, 32, 5)}, forever, Options{})
	figures(t, r, map[string]any{"num_requests": 2.0, "rejected_requests": 1.0, "completed_requests": 1.0,
		"unfinished_requests": 0.0, "num_ttft_samples": 1.0})
}

func TestAcceptedDraftTokensShow(t *testing.T) {
	cfg := config(64, 8192, 10, 2)
	plain := drive(t, cfg, batch(4, 32, 9), forever, Options{})
	cfg.Nextn, cfg.NextnAcceptRates = 1, "1"
	drafts := drive(t, cfg, batch(4, 32, 9), forever, Options{})
	if got := plain.Summary.AcceptanceLength; got == nil || *got != 1 {
		t.Errorf("without draft tokens a forward gives %v tokens", got)
	}
	if got := drafts.Summary.AcceptanceLength; got == nil || *got != 2 {
		t.Errorf("with one draft token that is always accepted a forward gives %v tokens", got)
	}
}

func TestHostCopiesAreCounted(t *testing.T) {
	c := NewCollector(Options{Workers: []string{"w0"}})
	c.workers[0].Pass(&engine.Pass{Transfers: []engine.Transfer{
		{Kind: engine.StoreStarted, Blocks: []uint64{1, 2, 3}}, {Kind: engine.StoreDone, Blocks: []uint64{1, 2, 3}},
		{Kind: engine.LoadStarted, Blocks: []uint64{1, 2}}, {Kind: engine.LoadDone, Blocks: []uint64{1, 2}}}})
	if f := c.Report(Final{}).Summary; f.HostStored != 3 || f.HostLoaded != 2 {
		t.Errorf("%d blocks stored, %d loaded", f.HostStored, f.HostLoaded)
	}
}
