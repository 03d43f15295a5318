package delta

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// file is a report with one metric, its spread and figures.
func file(n int, factor float64, more string) *Run {
	text := fmt.Sprintf(`{"mode":"replay","summary":{"num_requests":%d,"completed_requests":%d,"num_ttft_samples":%d`, n, n, n)
	for name, x := range map[string]float64{"mean": 100, "min": 10, "median": 90, "p75": 120, "p90": 180, "p95": 200, "p99": 300, "max": 400, "std": 60} {
		text += fmt.Sprintf(`,"%s_ttft_ms":%g`, name, x*factor)
	}
	r, err := Read([]byte(text + more + "}}"))
	if err != nil {
		panic(err)
	}
	return r
}

func find(t *testing.T, lines []Line, figure string) Line {
	t.Helper()
	for _, l := range lines {
		if l.Figure == figure {
			return l
		}
	}
	t.Fatalf("no line for %s", figure)
	return Line{}
}

func TestCompare(t *testing.T) {
	a := file(10000, 1, `,"output_throughput_tok_s":50,"prefix_cache_reused_ratio":0,"num_preemptions":3,"old":1`)
	b := file(10000, 1.2, `,"output_throughput_tok_s":60,"prefix_cache_reused_ratio":0.6,"num_preemptions":4,"power_w":null,"new":1`)
	lines := Compare(a, b)
	for figure, want := range map[string]Verdict{"p99_ttft_ms": Worse, "output_throughput_tok_s": Better, "num_requests": Same,
		"prefix_cache_reused_ratio": Changed, "num_preemptions": Worse, "old": Missing, "new": Missing} {
		if got := find(t, lines, figure); got.Verdict != want {
			t.Errorf("%s: %s, want %s", figure, got.Verdict, want)
		}
	}
	if l := find(t, lines, "old"); l.Reason != "only in A" || l.Change != nil {
		t.Errorf("%+v", l)
	}
	if l := find(t, lines, "mean_ttft_ms"); l.Within || math.Abs(*l.Percent-20) > 1e-9 || math.Abs(*l.Change-20) > 1e-9 {
		t.Errorf("%+v", l)
	}
	// sqrt(0.6^2 + 0.72^2) * 1.96
	if l := find(t, lines, "mean_ttft_ms"); math.Abs(*l.Noise-1.8369) > 1e-3 {
		t.Errorf("noise of the mean: %g", *l.Noise)
	}
	if l := find(t, lines, "max_ttft_ms"); l.Noise != nil {
		t.Errorf("a maximum has no noise that could be known, got %g", *l.Noise)
	}
}

// The same difference is told from chance by many samples and not by few.
func TestNoiseDependsOnSamples(t *testing.T) {
	for _, c := range []struct {
		n      int
		within bool
	}{{20, true}, {10000, false}} {
		for _, figure := range []string{"mean_ttft_ms", "median_ttft_ms", "p90_ttft_ms"} {
			if l := find(t, Compare(file(c.n, 1, ""), file(c.n, 1.1, "")), figure); l.Within != c.within {
				t.Errorf("%s of %d samples: %+v, noise %g", figure, c.n, l, *l.Noise)
			}
		}
	}
}

// Figures that are 0 for want of samples are missing, not equal.
func TestNoSamples(t *testing.T) {
	l := find(t, Compare(file(0, 0, ""), file(5, 1, "")), "p99_ttft_ms")
	if l.Verdict != Missing || l.Reason != "no samples in A" || l.A != nil {
		t.Errorf("%+v", l)
	}
}

func TestSamplesThatAreNotTold(t *testing.T) {
	r := file(10, 1, `,"p99_itl_ms":3,"total_output_tokens":100,"num_tpot_samples":9,"p99_ttst_ms":1`)
	if r.Samples("itl_ms") != 90 || r.Samples("ttst_ms") != 9 {
		t.Errorf("%d gaps, %d second tokens", r.Samples("itl_ms"), r.Samples("ttst_ms"))
	}
}

func TestReadRefuses(t *testing.T) {
	for text, reason := range map[string]string{"": "is no report", "[]": "is no report", "{}": "no summary", `{"summary":{}}`: "no summary"} {
		if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %v, want %s", text, err, reason)
		}
	}
}
