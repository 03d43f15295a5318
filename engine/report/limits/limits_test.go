package limits

import (
	"strings"
	"testing"
)

var names = Names{Metrics: []string{"ttft_ms", "itl_ms"}, Figures: []string{"completed_requests", "prefix_cache_reused_ratio"},
	Short: map[string]string{"ttft": "ttft_ms", "itl": "itl_ms"}}

func TestParse(t *testing.T) {
	for text, want := range map[string]Limit{
		"p99(ttft_ms) < 300":           {Metric: "ttft_ms", Statistic: "p99", Operator: "<", Bound: 300},
		"p99( ttft )<=300":             {Metric: "ttft_ms", Statistic: "p99", Operator: "<=", Bound: 300},
		"itl.max  !=  205.5":           {Metric: "itl_ms", Statistic: "max", Operator: "!=", Bound: 205.5, Rising: true},
		"avg(itl_ms) >= 1e3 optional":  {Metric: "itl_ms", Statistic: "mean", Operator: ">=", Bound: 1000, Optional: true},
		"p50(itl_ms) > -1":             {Metric: "itl_ms", Statistic: "median", Operator: ">", Bound: -1},
		"mean_ttft_ms < 2":             {Metric: "ttft_ms", Statistic: "mean", Operator: "<", Bound: 2},
		"count(ttft) == 10":            {Metric: "ttft_ms", Statistic: "count", Operator: "==", Bound: 10, Rising: true},
		"completed_requests >= 1":      {Figure: "completed_requests", Operator: ">=", Bound: 1},
		"p99(ttft_ms) < 300ms":         {Metric: "ttft_ms", Statistic: "p99", Operator: "<", Bound: 300},
		"ttft_p99<0.5 s":               {Metric: "ttft_ms", Statistic: "p99", Operator: "<", Bound: 500},
		"itl_ms_max <= 30":             {Metric: "itl_ms", Statistic: "max", Operator: "<=", Bound: 30, Rising: true},
		"prefix_cache_reused_ratio>.5": {Figure: "prefix_cache_reused_ratio", Operator: ">", Bound: 0.5},
	} {
		got, err := Parse(text, names)
		want.Text = strings.Join(strings.Fields(text), " ")
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, reason := range map[string]string{
		"p99(ttft_ms)":             "operator",
		"p99(ttft_ms) < 300 min":   "not a number",
		"count(ttft_ms) < 3ms":     "units belong to the name",
		"completed_requests < 3s":  "units belong to the name",
		"p99(ttft_ms) < NaN":       "not a number",
		"p99(ttft_ms) <":           "not a number",
		"p99(ttfb_ms) < 300":       "no metric",
		"p98(ttft_ms) < 300":       "no statistic",
		"p99(ttft_ms < 300":        "bracket",
		"completed_request >= 1":   "did you mean completed_requests",
		"nonsense == 1":            "no figure",
		"":                         "operator",
		"itl.maximum < 3":          "no statistic",
		"p99(ttft_ms) < 3 < 4":     "not a number",
		"completed_requests.max>0": "no metric",
	} {
		if l, err := Parse(text, names); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %+v, %v, want a refusal about %s", text, l, err, reason)
		}
	}
}

type run struct {
	value   float64
	samples uint64
}

func (r run) Statistic(string, string) (float64, uint64) { return r.value, r.samples }
func (r run) Figure(name string) (float64, bool)         { return r.value, name == "completed_requests" }
func (r run) Requests() (int, int)                       { return 0, 10 }

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		text string
		run  run
		ok   bool
		says string
	}{
		{"p99(ttft_ms) < 300", run{299, 4}, true, "299 (4 samples)"},
		{"p99(ttft_ms) < 300", run{300, 4}, false, "300"},
		{"p99(ttft_ms) <= 300", run{300, 4}, true, "300"},
		{"p99(ttft_ms) != 300", run{300, 4}, false, "300"},
		{"p99(ttft_ms) == 300", run{300, 4}, true, "300"},
		{"p99(ttft_ms) > 300", run{300, 4}, false, "300"},
		{"p99(ttft_ms) < 300", run{0, 0}, false, "no samples (0 of 10 requests completed)"},
		{"p99(ttft_ms) < 300 optional", run{0, 0}, true, "no samples"},
		{"count(ttft_ms) >= 1", run{0, 0}, false, "0"},
		{"completed_requests >= 1", run{0, 0}, false, "completed_requests >= 1: 0"},
		{"prefix_cache_reused_ratio >= 0", run{0, 0}, false, "no such figure"},
	} {
		l, err := Parse(c.text, names)
		if err != nil {
			t.Fatal(err)
		}
		outcomes, ok := CheckAll([]Limit{l}, c.run)
		if ok != c.ok || outcomes[0].OK != c.ok || !strings.Contains(outcomes[0].String(), c.says) {
			t.Errorf("%s of %+v: got %v, %s", c.text, c.run, ok, outcomes[0])
		}
	}
}
