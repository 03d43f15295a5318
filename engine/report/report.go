// Package report turns pass records into figures: latencies, throughput, cache use and occupancy, for the summary of a
// run, for its JSON report and for the screen.
//
// A [Collector] reads the records of every worker. [Collector.Report] gives the figures of the whole run,
// [Collector.Window] those of the last seconds.
package report

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"mockbench/engine/report/limits"
)

// SchemaVersion is the version of the JSON form of a Report, described in docs/report.schema.json.
const SchemaVersion = 1

// Report is the outcome of a run.
type Report struct {
	SchemaVersion int      `json:"schema_version"`
	Generator     string   `json:"generator"` // program and version
	Mode          string   `json:"mode"`      // "live" or "replay"
	Interrupted   bool     `json:"interrupted"`
	Notes         []string `json:"notes"` // what a reader of the figures must know of the model behind them
	Summary       Figures  `json:"summary"`
	Workers       []Worker `json:"workers"`

	Limits  []limits.Outcome `json:"limits,omitempty"`  // in the order of the command line
	Aborted string           `json:"aborted,omitempty"` // the limit that ended the run because it could not hold any more

	AB *Comparison `json:"ab,omitempty"` // nil unless a second fleet had the same traffic
}

// Worker is the figures of one worker.
type Worker struct {
	Name string
	Figures
}

// Figures are the figures of a fleet or of one worker. Where a key is one of the reference's replay report, so is its
// meaning: token sums, throughputs, ratios and latencies are those of completed requests. The exception is itl_ms,
// whose gaps count as they happen, so that a run that is cut short includes those of unfinished requests.
type Figures struct {
	Requests   int `json:"num_requests"` // submitted
	Completed  int `json:"completed_requests"`
	Rejected   int `json:"rejected_requests"` // refused by the engine for their size
	Cancelled  int `json:"cancelled_requests"`
	Unfinished int `json:"unfinished_requests"` // waiting or running at the end

	InputTokens  uint64 `json:"total_input_tokens"`
	OutputTokens uint64 `json:"total_output_tokens"`
	Emitted      uint64 `json:"emitted_output_tokens"` // those of unfinished and cancelled requests too

	DurationMS float64 `json:"duration_ms"` // simulated
	WallMS     float64 `json:"wall_time_ms"`

	RequestsPerSecond float64 `json:"request_throughput_rps"` // a simulated second, as all throughputs
	InputPerSecond    float64 `json:"input_throughput_tok_s"`
	OutputPerSecond   float64 `json:"output_throughput_tok_s"`
	TotalPerSecond    float64 `json:"total_throughput_tok_s"`

	HitRate          *float64 `json:"first_admission_prefix_cache_reused_ratio"` // nil without input tokens
	ReusedRatio      *float64 `json:"prefix_cache_reused_ratio"`                 // including re-admissions
	CommittedPrefill uint64   `json:"committed_prefill_tokens"`
	Recomputed       uint64   `json:"recomputed_tokens"` // computed by resumed requests before their next output

	Preemptions int    `json:"num_preemptions"`
	Retractions int    `json:"num_retractions"` // of those, retractions of an SGLang rank
	Passes      uint64 `json:"num_passes"`      // in which the rank did something

	HostStored       uint64   `json:"host_stored_blocks"`     // copied to the host tier
	HostLoaded       uint64   `json:"host_loaded_blocks"`     // copied back
	AcceptanceLength *float64 `json:"mean_acceptance_length"` // tokens a decode forward of a request gave, 1 without draft tokens; nil without decode

	Blocks        int      `json:"num_gpu_blocks"`
	MeanOccupancy *float64 `json:"mean_block_occupancy"` // active blocks / all blocks, over time; nil if unknown
	PeakOccupancy *float64 `json:"peak_block_occupancy"` // at ends of passes; of several workers, of the fullest
	Stalls        int      `json:"num_stalls"`
	ClockSlipMS   float64  `json:"clock_slip_ms"` // wall time passes were late and never caught up

	Goodput *Goodput `json:"-"` // nil without limits

	TTFT  Distribution `json:"-"` // ttft_ms: first token - arrival
	TPOT  Distribution `json:"-"` // tpot_ms: (last - first token) / (tokens - 1), one sample a request
	ITL   Distribution `json:"-"` // itl_ms: gaps between consecutive tokens, pooled over all requests
	E2E   Distribution `json:"-"` // e2e_latency_ms: last token - arrival
	Queue Distribution `json:"-"` // queue_time_ms: first admission - arrival

	Parts []Metric `json:"-"` // if requests visit two workers: what follows the queue time in TTFT; else nil
}

// Goodput counts the completed requests that kept all limits; the ITL limit is compared with the request's TPOT.
type Goodput struct {
	LimitTTFT         float64  `json:"sla_ttft_ms,omitempty"`
	LimitITL          float64  `json:"sla_itl_ms,omitempty"`
	LimitE2E          float64  `json:"sla_e2e_ms,omitempty"`
	Completed         int      `json:"goodput_completed_requests"`
	RequestsPerSecond float64  `json:"goodput_request_throughput_rps"`
	OutputPerSecond   float64  `json:"goodput_output_throughput_tok_s"`
	Attainment        *float64 `json:"slo_attainment"`      // share of completed requests; nil without any
	AttainmentTTFT    *float64 `json:"slo_ttft_attainment"` // share of completed requests with a token
	AttainmentITL     *float64 `json:"slo_itl_attainment"`  // share of gaps
}

// Distribution is the figures of the samples of one metric. Without samples the other fields mean nothing.
type Distribution struct {
	Samples                                         uint64
	Mean, Min, Max, Median, P75, P90, P95, P99, Std float64
}

// Metric is a named distribution.
type Metric struct {
	Name string // in JSON keys such as p99_ttft_ms
	Distribution
}

// Metrics returns the distributions with their names.
func (f *Figures) Metrics() []Metric {
	return append([]Metric{{"ttft_ms", f.TTFT}, {"tpot_ms", f.TPOT}, {"itl_ms", f.ITL}, {"e2e_latency_ms", f.E2E},
		{"queue_time_ms", f.Queue}}, f.Parts...)
}

// Statistic is one named figure of a distribution.
type Statistic struct {
	Name  string
	Value float64
}

// Statistics returns the figures of a distribution with their names.
func (d Distribution) Statistics() []Statistic {
	return []Statistic{{"mean", d.Mean}, {"min", d.Min}, {"max", d.Max}, {"median", d.Median}, {"p75", d.P75}, {"p90", d.P90},
		{"p95", d.P95}, {"p99", d.P99}, {"std", d.Std}}
}

// MarshalJSON writes the figures as one flat object; statistics without samples are null.
func (f Figures) MarshalJSON() ([]byte, error) { return f.appendTo(nil) }

// MarshalJSON writes the name beside the figures.
func (w Worker) MarshalJSON() ([]byte, error) {
	name, err := json.Marshal(w.Name)
	if err != nil {
		return nil, err
	}
	return w.appendTo(append([]byte(`"name":`), name...))
}

// appendTo returns a JSON object of first, which are members in JSON, and the figures.
func (f Figures) appendTo(first []byte) ([]byte, error) {
	type plain Figures
	parts := []any{plain(f)}
	if f.Goodput != nil {
		parts = append(parts, f.Goodput)
	}
	members := [][]byte{first}
	for _, part := range parts {
		b, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		members = append(members, b[1:len(b)-1])
	}
	for _, m := range f.Metrics() {
		members = append(members, m.members())
	}
	out := []byte{'{'}
	for _, m := range members {
		if len(m) == 0 {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, m...)
	}
	return append(out, '}'), nil
}

// members returns the metric as members of a JSON object.
func (m Metric) members() []byte {
	b := append([]byte(`"num_`), strings.TrimSuffix(m.Name, "_ms")...)
	b = append(b, `_samples":`...)
	b = strconv.AppendUint(b, m.Samples, 10)
	for _, s := range m.Statistics() {
		b = append(b, `,"`...)
		b = append(b, s.Name...)
		b = append(b, '_')
		b = append(b, m.Name...)
		b = append(b, `":`...)
		if m.Samples == 0 || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, s.Value, 'g', -1, 64)
		}
	}
	return b
}
