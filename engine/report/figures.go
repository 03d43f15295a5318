package report

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mockbench/engine/report/limits"
)

// ShortMetrics returns other names of the metrics, without units.
func ShortMetrics() map[string]string { return maps.Clone(shortMetrics) }

var shortMetrics = map[string]string{"ttft": "ttft_ms", "ttst": "ttst_ms", "tpot": "tpot_ms", "itl": "itl_ms", "e2e": "e2e_latency_ms",
	"e2e_latency": "e2e_latency_ms", "queue": "queue_time_ms", "queue_time": "queue_time_ms"}

// OfflineNames returns the figures that a summary of an offline run has, for limits.
func OfflineNames() limits.Names {
	c := NewOffline(OfflineOptions{Bounds: Bounds{TTFT: 1}})
	n := limits.Names{Short: shortMetrics}
	for _, m := range c.Metrics() {
		n.Metrics = append(n.Metrics, m.Name)
	}
	for _, f := range c.Summary(Fleet{}) {
		if _, ok := asFloat(f.Value); ok && !ofMetric(f.Key, n.Metrics) {
			n.Figures = append(n.Figures, f.Key)
		}
	}
	n.Figures = append(n.Figures, "rejected_requests", "unfinished_requests")
	for _, f := range c.counters() {
		n.Rising = append(n.Rising, f.Name)
	}
	return n
}

// LiveNames returns the figures that a Report has, for limits; split is whether requests visit two workers, slo whether
// there are limits of latencies.
func LiveNames(split, slo bool) limits.Names {
	n := limits.Names{Short: shortMetrics, Rising: liveCounters}
	var f Figures
	optional := optionalFigures
	if slo {
		f.Goodput = &Goodput{}
		optional = slices.Concat(optional, []string{"slo_attainment", "slo_ttft_attainment", "slo_itl_attainment"})
		n.Rising = slices.Concat(n.Rising, []string{"goodput_completed_requests"})
	}
	for _, name := range partNames {
		if split {
			f.Parts = append(f.Parts, Metric{Name: name})
		}
	}
	for _, m := range f.Metrics() {
		n.Metrics = append(n.Metrics, m.Name)
	}
	n.Figures = slices.Concat(slices.Collect(maps.Keys(f.single())), optional)
	slices.Sort(n.Figures)
	n.Figures = slices.Compact(n.Figures)
	return n
}

// liveCounters are the figures of a Report that never fall in the course of a run.
var liveCounters = []string{"num_requests", "completed_requests", "rejected_requests", "cancelled_requests", "total_input_tokens",
	"total_output_tokens", "emitted_output_tokens", "duration_ms", "wall_time_ms", "committed_prefill_tokens", "recomputed_tokens",
	"num_preemptions", "num_retractions", "num_passes", "host_stored_blocks", "host_loaded_blocks", "peak_block_occupancy",
	"num_stalls"}

func ofMetric(key string, metrics []string) bool {
	for _, m := range metrics {
		if strings.HasSuffix(key, "_"+m) {
			return true
		}
	}
	return false
}

// single returns the figures that are no statistics, by key.
func (f *Figures) single() map[string]float64 {
	var metrics []string
	for _, m := range f.Metrics() {
		metrics = append(metrics, m.Name)
	}
	var all map[string]any
	data, err := json.Marshal(*f)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		panic(err) // figures are always valid JSON
	}
	out := map[string]float64{}
	for key, v := range all {
		if x, ok := asFloat(v); ok && !ofMetric(key, metrics) {
			out[key] = x
		}
	}
	return out
}

// optionalFigures are figures that a Report has only at times.
var optionalFigures = []string{"first_admission_prefix_cache_reused_ratio", "prefix_cache_reused_ratio", "mean_acceptance_length",
	"mean_block_occupancy", "peak_block_occupancy"}

// Source gives limits the figures of a report.
func (r *Report) Source() limits.Source { return liveSource{&r.Summary, r.Summary.single()} }

type liveSource struct {
	f      *Figures
	single map[string]float64
}

func (s liveSource) Statistic(metric, statistic string) (float64, uint64) {
	return statisticOf(s.f.Metrics(), metric, statistic)
}

func (s liveSource) Figure(name string) (float64, bool) {
	x, ok := s.single[name]
	return x, ok
}

func (s liveSource) Requests() (completed, all int) { return s.f.Completed, s.f.Requests }

func statisticOf(metrics []Metric, metric, statistic string) (float64, uint64) {
	for _, m := range metrics {
		if m.Name == metric {
			x, _ := m.Clamped().Statistic(statistic)
			return x, m.Samples
		}
	}
	return 0, 0
}

// Source gives limits the figures of an offline run; summary is its own, unfinished the requests that had not ended.
func (c *Offline) Source(summary Fields, unfinished int) limits.Source {
	return offlineSource{c, summary, unfinished, c.Metrics()}
}

type offlineSource struct {
	c          *Offline
	summary    Fields
	unfinished int
	metrics    []Metric
}

func (s offlineSource) Statistic(metric, statistic string) (float64, uint64) {
	return statisticOf(s.metrics, metric, statistic)
}

func (s offlineSource) Figure(name string) (float64, bool) {
	switch name {
	case "rejected_requests":
		return float64(s.c.ended[Rejected]), true
	case "unfinished_requests":
		return float64(s.unfinished), true
	}
	return s.summary.number(name)
}

func (s offlineSource) Requests() (completed, all int) { return s.c.ended[Completed], s.c.arrived }
