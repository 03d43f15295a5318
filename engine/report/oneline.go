package report

import (
	"fmt"
	"strconv"
	"strings"

	"mockbench/engine/report/limits"
)

// lineFigures are the figures of OneLine: single ones, and statistics of metrics.
var lineFigures = []struct{ figure, statistic, metric string }{
	{figure: "num_requests"}, {figure: "completed_requests"}, {figure: "duration_ms"}, {figure: "request_throughput_rps"},
	{figure: "output_throughput_tok_s"}, {figure: "first_admission_prefix_cache_reused_ratio"}, {figure: "num_preemptions"},
	{"", "median", "ttft_ms"}, {"", "p99", "ttft_ms"}, {"", "p99", "tpot_ms"}, {"", "p99", "itl_ms"}, {"", "max", "itl_ms"},
	{"", "p99", "e2e_latency_ms"},
}

// OneLine returns the outcome of a run as KEY=VALUE pairs in one line: status, the main figures under their names in the
// report, and how many limits hold. A statistic without samples is null; a figure that such a run does not have is left
// out.
func OneLine(status string, s limits.Source, outcomes []limits.Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "status=%s", status)
	for _, f := range lineFigures {
		key, value := f.figure, "null"
		if f.metric != "" {
			key = f.statistic + "_" + f.metric
			if x, n := s.Statistic(f.metric, f.statistic); n > 0 {
				value = strconv.FormatFloat(x, 'f', -1, 64)
			}
		} else if x, ok := s.Figure(f.figure); ok {
			value = strconv.FormatFloat(x, 'f', -1, 64)
		} else {
			continue
		}
		fmt.Fprintf(&b, " %s=%s", key, value)
	}
	hold := 0
	for _, o := range outcomes {
		if o.OK {
			hold++
		}
	}
	fmt.Fprintf(&b, " limits=%d/%d", hold, len(outcomes))
	return b.String()
}
