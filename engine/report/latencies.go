package report

import (
	"bytes"
	"fmt"
	"strings"
)

// labels name the metrics for people: pooled gaps and averages of a request must not be taken for one another.
var labels = map[string]string{"ttft_ms": "TTFT ms", "ttst_ms": "TTST ms", "tpot_ms": "TPOT ms/request", "itl_ms": "ITL ms (gaps)",
	"e2e_latency_ms": "E2E ms", "queue_time_ms": "queue ms", "prefill_time_ms": "prefill ms", "transfer_time_ms": "transfer ms",
	"decode_queue_time_ms": "decode queue ms", "first_decode_time_ms": "first decode ms",
	"output_token_throughput_per_user": "tokens/s/user"}

// Label returns what people call a metric, its unit included.
func Label(metric string) string {
	if l, ok := labels[metric]; ok {
		return l
	}
	return metric
}

const labelWidth, numberWidth = 16, 11

// columns returns the statistics that fit, the less important ones last to come.
func columns(width int) []string {
	switch room := (width - labelWidth) / numberWidth; {
	case room >= 9:
		return []string{"mean", "min", "median", "p75", "p90", "p95", "p99", "max"}
	case room >= 7:
		return []string{"mean", "min", "median", "p90", "p99", "max"}
	}
	return []string{"mean", "median", "p99", "max"}
}

// writeLatencies writes a line for each metric. Statistics without samples are shown as missing, not as 0.
func writeLatencies(b *bytes.Buffer, metrics []Metric, width int) {
	shown := columns(width)
	fmt.Fprintf(b, "\n%-*s", labelWidth, "latency")
	for _, name := range shown {
		fmt.Fprintf(b, "%*s", numberWidth, strings.Replace(name, "median", "p50", 1))
	}
	fmt.Fprintf(b, "%*s\n", numberWidth, "samples")
	for _, m := range metrics {
		fmt.Fprintf(b, "%-*s", labelWidth, Label(m.Name))
		for _, name := range shown {
			text := none
			if x, ok := m.Clamped().Statistic(name); ok && m.Samples > 0 {
				text = milliseconds(x)
			}
			fmt.Fprintf(b, "%*s", numberWidth, text)
		}
		fmt.Fprintf(b, "%*s\n", numberWidth, whole(m.Samples))
	}
}

// Statistic returns a figure of the distribution by its name; ok is false if there is no such figure.
func (d Distribution) Statistic(name string) (x float64, ok bool) {
	for _, s := range d.Statistics() {
		if s.Name == name {
			return s.Value, true
		}
	}
	return 0, false
}

// Clamped returns the distribution with percentiles that do not leave the range of the samples, as those of a sketch can
// by 0.1 %. The JSON report keeps the sketch's own, which are the reference's; tables, plots and limits use these.
func (d Distribution) Clamped() Distribution {
	for _, p := range []*float64{&d.Median, &d.P75, &d.P90, &d.P95, &d.P99} {
		*p = min(max(*p, d.Min), d.Max)
	}
	return d
}
