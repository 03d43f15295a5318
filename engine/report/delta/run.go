// Package delta puts two reports side by side: which figures got better or worse, by how much, and whether so few samples
// can tell.
package delta

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"mockbench/engine/report"
	"mockbench/engine/report/limits"
)

// Run is the figures of a report that was written as JSON.
type Run struct {
	Mode        string // "live", "replay" or empty
	Interrupted bool
	Figures     []string // single figures, sorted
	Metrics     []string // distributions, sorted

	values map[string]float64
}

// Read reads a report of a live run or of a replay, ours or the reference's.
func Read(data []byte) (*Run, error) {
	var file struct {
		Mode        string                     `json:"mode"`
		Interrupted bool                       `json:"interrupted"`
		Summary     map[string]json.RawMessage `json:"summary"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("is no report: %w", err)
	}
	if file.Summary == nil { // the reference's report of an online replay is the summary alone
		if err := json.Unmarshal(data, &file.Summary); err != nil {
			return nil, err
		}
	}
	if _, ok := file.Summary["num_requests"]; !ok {
		return nil, errors.New("is no report: it has no summary with num_requests")
	}
	r := &Run{Mode: file.Mode, Interrupted: file.Interrupted, values: map[string]float64{}}
	for key, raw := range file.Summary {
		var x *float64
		if json.Unmarshal(raw, &x) == nil && x != nil {
			r.values[key] = *x
		}
	}
	for key := range file.Summary {
		if metric, ok := strings.CutPrefix(key, "p99_"); ok {
			r.Metrics = append(r.Metrics, metric)
		}
	}
	for key := range r.values {
		if !r.ofMetric(key) {
			r.Figures = append(r.Figures, key)
		}
	}
	slices.Sort(r.Metrics)
	slices.Sort(r.Figures)
	return r, nil
}

func (r *Run) ofMetric(key string) bool {
	return slices.ContainsFunc(r.Metrics, func(m string) bool { return strings.HasSuffix(key, "_"+m) }) ||
		strings.HasPrefix(key, "num_") && strings.HasSuffix(key, "_samples")
}

// Samples returns how many samples a metric has. Where the reference's report does not say it, the number follows from
// others.
func (r *Run) Samples(metric string) uint64 {
	if n, ok := r.values["num_"+strings.TrimSuffix(metric, "_ms")+"_samples"]; ok {
		return uint64(n)
	}
	switch metric {
	case "ttst_ms":
		return uint64(r.values["num_tpot_samples"])
	case "itl_ms", "output_token_throughput_per_user": // a gap fewer than tokens for each request that has any
		return uint64(max(0, r.values["total_output_tokens"]-r.values["num_ttft_samples"]))
	case "trajectory_e2e_latency_ms":
		return uint64(r.values["completed_trajectories"])
	}
	return 0
}

// Statistic is that of limits.Source.
func (r *Run) Statistic(metric, statistic string) (value float64, samples uint64) {
	x, ok := r.values[statistic+"_"+metric]
	if !ok {
		return 0, 0
	}
	switch statistic {
	case "median", "p75", "p90", "p95", "p99":
		x = min(max(x, r.values["min_"+metric]), r.values["max_"+metric])
	}
	return x, r.Samples(metric)
}

// Figure is that of limits.Source.
func (r *Run) Figure(name string) (float64, bool) {
	x, ok := r.values[name]
	return x, ok
}

// Requests is that of limits.Source.
func (r *Run) Requests() (completed, all int) {
	return int(r.values["completed_requests"]), int(r.values["num_requests"])
}

// Names returns the figures of either of two runs, for limits.
func Names(a, b *Run) limits.Names {
	union := func(x, y []string) []string {
		all := slices.Concat(x, y)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return limits.Names{Metrics: union(a.Metrics, b.Metrics), Figures: union(a.Figures, b.Figures), Short: report.ShortMetrics()}
}

// quantiles are the statistics that are points of the distribution function, with their place in it.
var quantiles = []struct {
	name  string
	share float64
}{{"min", 0}, {"median", 0.5}, {"p75", 0.75}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"max", 1}}

// deviation returns the standard error of a statistic over the choice of as many samples: that of the mean and of the
// standard deviation from the spread, that of a percentile from the percentiles around it. ok is false where there is
// none, as for minimum and maximum.
func (r *Run) deviation(metric, statistic string) (se float64, ok bool) {
	n := float64(r.Samples(metric))
	if n < 2 {
		return 0, false
	}
	std, _ := r.Statistic(metric, "std")
	switch statistic {
	case "mean":
		return std / math.Sqrt(n), true
	case "std":
		return std / math.Sqrt(2*(n-1)), true
	}
	for _, q := range quantiles[1 : len(quantiles)-1] {
		if q.name == statistic {
			d := math.Sqrt(q.share * (1 - q.share) / n)
			return (r.quantile(metric, q.share+d) - r.quantile(metric, q.share-d)) / 2, true
		}
	}
	return 0, false
}

// quantile returns a point of the distribution function, read off between the ones that are known.
func (r *Run) quantile(metric string, share float64) float64 {
	at := func(i int) float64 { x, _ := r.Statistic(metric, quantiles[i].name); return x }
	for i := 1; i < len(quantiles); i++ {
		if low, high := quantiles[i-1].share, quantiles[i].share; share <= high {
			return at(i-1) + (at(i)-at(i-1))*max(0, share-low)/(high-low)
		}
	}
	return at(len(quantiles) - 1)
}
