package delta

import (
	"math"
	"slices"
	"strings"
)

// Verdict says what became of a figure.
type Verdict string

// Verdicts.
const (
	Same    Verdict = "same"
	Better  Verdict = "better"
	Worse   Verdict = "worse"
	Changed Verdict = "changed" // and neither is better by itself
	Missing Verdict = "missing" // in one of the runs, or without samples there
)

// Line is a figure in two runs.
type Line struct {
	Figure  string   `json:"figure"`
	A       *float64 `json:"a"` // nil if the run does not have it, or no samples
	B       *float64 `json:"b"`
	Change  *float64 `json:"change"`         // B - A
	Percent *float64 `json:"change_percent"` // of |A|; nil where A is 0
	// Noise is how far the values of two runs of the same kind lie apart in 19 of 20 cases, judged by their samples; nil
	// where nothing can be said. Requests that queue behind one another are not independent, so it is a lower bound.
	Noise   *float64 `json:"noise"`
	Within  bool     `json:"within_noise"`
	Verdict Verdict  `json:"verdict"`
	Reason  string   `json:"reason,omitempty"` // why it is missing

	Metric, Statistic string `json:"-"` // empty for a single figure
}

// statistics are those of a metric, in the order of a table.
var statistics = []string{"mean", "min", "median", "p75", "p90", "p95", "p99", "max", "std"}

// confidence is how many standard errors hold 95 % of a normal distribution.
const confidence = 1.96

// Compare returns a line for every figure of either run: single figures first, then the metrics.
func Compare(a, b *Run) (lines []Line) {
	names := Names(a, b)
	for _, f := range names.Figures {
		x, inA := a.Figure(f)
		y, inB := b.Figure(f)
		l := Line{Figure: f, A: only(x, inA), B: only(y, inB)}
		l.judge(Direction(f), nil)
		lines = append(lines, l)
	}
	for _, m := range names.Metrics {
		for _, s := range statistics {
			lines = append(lines, compareStatistic(a, b, m, s))
		}
	}
	return lines
}

func compareStatistic(a, b *Run, metric, statistic string) Line {
	l := Line{Figure: statistic + "_" + metric, Metric: metric, Statistic: statistic}
	x, n := a.Statistic(metric, statistic)
	y, m := b.Statistic(metric, statistic)
	l.A, l.B = only(x, n > 0), only(y, m > 0)
	has := func(r *Run) bool { return slices.Contains(r.Metrics, metric) }
	switch {
	case has(a) && n == 0 && has(b) && m == 0:
		l.Reason = "no samples"
	case has(a) && n == 0:
		l.Reason = "no samples in A"
	case has(b) && m == 0:
		l.Reason = "no samples in B"
	}
	var noise *float64
	if sa, ok := a.deviation(metric, statistic); ok {
		if sb, ok := b.deviation(metric, statistic); ok {
			d := confidence * math.Hypot(sa, sb)
			noise = &d
		}
	}
	l.judge(Direction(metric), noise)
	return l
}

func only(x float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &x
}

// judge fills in change and verdict; better is the sign of a change for the better, 0 if there is none.
func (l *Line) judge(better int, noise *float64) {
	if l.A == nil || l.B == nil {
		l.Verdict = Missing
		switch {
		case l.Reason != "":
		case l.A == nil && l.B == nil:
			l.Reason = "in neither run"
		case l.A == nil:
			l.Reason = "only in B"
		default:
			l.Reason = "only in A"
		}
		return
	}
	d := *l.B - *l.A
	l.Change, l.Noise = &d, noise
	if *l.A != 0 {
		p := 100 * d / math.Abs(*l.A)
		l.Percent = &p
	}
	l.Within = noise != nil && math.Abs(d) <= *noise
	switch sign := d * float64(better); {
	case d == 0:
		l.Verdict = Same
	case sign > 0:
		l.Verdict = Better
	case sign < 0:
		l.Verdict = Worse
	default:
		l.Verdict = Changed
	}
}

// Direction returns +1 for figures that are better when they are higher, -1 for those that are better when lower, 0 for
// those that say nothing by themselves. The reuse that counts re-admissions is one of these: preemptions raise it.
func Direction(figure string) int {
	switch figure {
	case "completed_requests", "completed_trajectories", "first_admission_prefix_cache_reused_ratio", "mean_acceptance_length":
		return 1
	case "rejected_requests", "cancelled_requests", "unfinished_requests", "incomplete_trajectories", "num_preemptions",
		"num_retractions", "recomputed_tokens", "num_stalls", "gpu_hours", "prefill_worker_seconds", "decode_worker_seconds":
		return -1
	case "wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s", "clock_slip_ms", "sla_ttft_ms", "sla_itl_ms":
		return 0 // of this machine, or settings
	}
	switch {
	case strings.Contains(figure, "throughput"), strings.HasPrefix(figure, "goodput_"), strings.HasPrefix(figure, "slo_"):
		return 1
	case strings.HasSuffix(figure, "_ms"):
		return -1
	}
	return 0
}
