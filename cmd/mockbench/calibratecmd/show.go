package calibratecmd

import (
	"fmt"
	"io"

	"mockbench/engine/timing"
	"mockbench/profiles/calibration"
	"mockbench/profiles/profiledata"
)

// printQuality prints how far a table is from what was measured.
func printQuality(w io.Writer, q *calibration.Quality) {
	fmt.Fprintf(w, "%-44s %8s %8s %8s %8s\n", "relative error of the table", "samples", "median", "p90", "max")
	for _, row := range []struct {
		name string
		e    calibration.Errors
	}{
		{fmt.Sprintf("prefill, %d sizes", q.Prefill.Points), q.Prefill},
		{fmt.Sprintf("decode, %d places", q.Decode.Points), q.Decode},
		{"prefill, each size from the others", q.PrefillLeftOut},
		{"decode, each place from the others", q.DecodeLeftOut},
	} {
		if row.e.Samples == 0 {
			fmt.Fprintf(w, "%-44s %8s\n", row.name, "none")
			continue
		}
		fmt.Fprintf(w, "%-44s %8d %7.2f%% %7.2f%% %7.2f%%\n",
			row.name, row.e.Samples, row.e.Median*100, row.e.P90*100, row.e.Max*100)
	}
}

func last(v []float64) float64 { return v[len(v)-1] }

// show prints a table as an engine would use it: a few points of prefill and of decode.
func show(w io.Writer, path string) error {
	t, err := profiledata.Read(path)
	if err == nil {
		_, err = profiledata.Model(t)
	}
	if err != nil {
		return fmt.Errorf("--show: %s: %w", path, err)
	}
	fmt.Fprintf(w, "%s\n\nprefill: %d sizes, %s tokens, %s ms\n",
		path, len(t.PrefillTokens), span(t.PrefillTokens), span(t.PrefillMS))
	fmt.Fprintf(w, "%12s %12s\n", "new tokens", "ms")
	for _, i := range some(len(t.PrefillTokens), 12) {
		fmt.Fprintf(w, "%12.0f %12.3f\n", t.PrefillTokens[i], t.PrefillMS[i])
	}
	fmt.Fprintf(w, "\ndecode: %d x %d places, %s tokens in use, %s tokens of mean context, %s ms\n",
		t.DecodeShape[0], t.DecodeShape[1], span(t.ActiveTokens), span(t.Context), span(t.DecodeMS))
	showDecode(w, t)
	return nil
}

func showDecode(w io.Writer, t *timing.Table) {
	columns := some(len(t.Context), 8)
	fmt.Fprintf(w, "%12s", "in use \\ ctx")
	for _, j := range columns {
		fmt.Fprintf(w, " %10.0f", t.Context[j])
	}
	fmt.Fprintln(w)
	for _, i := range some(len(t.ActiveTokens), 12) {
		fmt.Fprintf(w, "%12.0f", t.ActiveTokens[i])
		for _, j := range columns {
			fmt.Fprintf(w, " %10.3f", t.DecodeMS[i*len(t.Context)+j])
		}
		fmt.Fprintln(w)
	}
}

// some returns about so many indices of n, the first and the last among them.
func some(n, count int) []int {
	count = min(n, count)
	list := make([]int, count)
	for i := range list {
		list[i] = i * (n - 1) / max(1, count-1)
	}
	return list
}

// span returns the range of values.
func span(v []float64) string {
	low, high := v[0], v[0]
	for _, x := range v {
		low, high = min(low, x), max(high, x)
	}
	return fmt.Sprintf("%.6g to %.6g", low, high)
}
