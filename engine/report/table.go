package report

import (
	"fmt"
	"io"
	"strings"
)

// tableRows are the metrics of the table that other tools print of their runs.
var tableRows = []struct{ title, metric string }{
	{"Time to First Token (ms)", "_ttft_ms"},
	{"Time to Second Token (ms)", "_ttst_ms"},
	{"Request Latency (ms)", "_e2e_latency_ms"},
	{"Inter Token Latency (ms)", "_itl_ms"},
	{"Output Token Throughput Per User (tokens/sec/user)", "_output_token_throughput_per_user"},
	{"Output Token Throughput (tokens/sec)", "output_throughput_tok_s"},
	{"Request Throughput (requests/sec)", "request_throughput_rps"},
	{"Request Count (requests)", "num_requests"},
}

var tableColumns = []string{"mean", "min", "max", "p99", "p90", "p75", "std"}

// WriteTable writes a summary as the table that the reference's headless replay prints, so that what reads it need not
// change.
func WriteTable(w io.Writer, f Fields) error {
	rows := [][]string{{"Metric", "avg", "min", "max", "p99", "p90", "p75", "std"}}
	for _, r := range tableRows {
		row, any := []string{r.title}, false
		for i, column := range tableColumns {
			key := column + r.metric
			if !strings.HasPrefix(r.metric, "_") {
				key = r.metric
				if i > 0 {
					key = ""
				}
			}
			text := "N/A"
			if x, ok := f.number(key); ok {
				text, any = decimal(x, 2), true
			}
			row = append(row, text)
		}
		if any || !strings.HasPrefix(r.metric, "_") {
			rows = append(rows, row)
		}
	}
	var b strings.Builder
	b.WriteString("NVIDIA AIPerf | LLM Metrics\n")
	drawTable(&b, rows)
	for _, line := range []struct{ title, key string }{
		{"Wall Time (ms)", "wall_time_ms"},
		{"Prefix Cache Reused Ratio", "prefix_cache_reused_ratio"},
		{"First Admission Prefix Cache Reused Ratio", "first_admission_prefix_cache_reused_ratio"},
	} {
		if x, ok := f.number(line.key); ok {
			fmt.Fprintf(&b, "%s: %s\n", line.title, decimal(x, 2))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// number returns a figure as a float.
func (f Fields) number(key string) (float64, bool) {
	v, ok := f.Get(key)
	if !ok {
		return 0, false
	}
	return asFloat(v)
}

// float returns a figure, 0 if there is none.
func (f Fields) float(key string) float64 {
	x, _ := f.number(key)
	return x
}

func asFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	case uint64:
		return float64(n), true
	}
	return 0, false
}

// drawTable writes rows, the first of which is the head, in a frame.
func drawTable(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	rule := func(left, middle, right, line string) {
		for i, width := range widths {
			if i == 0 {
				b.WriteString(left)
			} else {
				b.WriteString(middle)
			}
			b.WriteString(strings.Repeat(line, width+2))
		}
		b.WriteString(right + "\n")
	}
	rule("┏", "┳", "┓", "━")
	for i, row := range rows {
		for k, cell := range row {
			format := "┃ %*s "
			if k == 0 {
				format = "┃ %-*s "
			}
			fmt.Fprintf(b, format, widths[k], cell)
		}
		b.WriteString("┃\n")
		if i == 0 {
			rule("┡", "╇", "┩", "━")
		}
	}
	rule("└", "┴", "┘", "━")
}
