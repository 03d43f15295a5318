package sweepcmd

import (
	"encoding/json"
	"strings"

	"mockbench/cmd/mockbench/replaycmd"
	"mockbench/engine/report"
	"mockbench/engine/report/limits"
	"mockbench/profiles"
)

// Words for how a run ended.
const (
	statusOK     = "ok"
	statusFailed = "failed"  // a limit does not hold
	statusLost   = "aborted" // by a limit that was lost: the figures are of a part of the run
	statusError  = "error"   // the fleet could not go on, or the run could not be made
)

// unsteady are figures that depend on the machine: rows leave them out, so that a sweep that is repeated gives the same
// files.
var unsteady = map[string]bool{"wall_time_ms": true, "processed_tokens_per_s": true,
	"processed_output_tokens_per_s": true}

// result is the outcome of a run in the form of its row: an object with the number of the run, its settings, how it ended
// and its figures. It is kept as JSON text, which goes into the journal and the files as it is.
type result struct {
	run  int
	text []byte
	row  *profiles.Object
}

// newResult makes the row of a run that has ended.
func newResult(run int, targets []target, values []string, r *replaycmd.Result, failure error) (*result, error) {
	f := report.Fields{{Key: "run", Value: run}}
	for i, t := range targets {
		f = append(f, report.Field{Key: t.name, Value: settingValue(values[i])})
	}
	status := statusOK
	switch {
	case failure != nil:
		status = statusError
	case r.Stuck != nil:
		status, failure = statusError, r.Stuck
	case r.Aborted:
		status = statusLost
	case !r.Hold:
		status = statusFailed
	}
	f = append(f, report.Field{Key: "status", Value: status})
	var reason any
	if failure != nil {
		reason = failure.Error()
	}
	f = append(f, report.Field{Key: "error", Value: reason})
	if status != statusError {
		f = append(f, figures(r)...)
	}
	text, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return readResult(run, text)
}

// figures returns the numbers of a summary; statistics without samples are null.
func figures(r *replaycmd.Result) (f report.Fields) {
	names := report.OfflineNames()
	for _, x := range r.Summary {
		switch x.Value.(type) {
		case float64, int, uint64:
		default:
			continue
		}
		if unsteady[x.Key] {
			continue
		}
		for _, m := range names.Metrics {
			if stat, ok := strings.CutSuffix(x.Key, "_"+m); ok && !strings.HasPrefix(x.Key, "num_") {
				if _, n := r.Source.Statistic(m, stat); n == 0 {
					x.Value = nil
				}
			}
		}
		f = append(f, x)
	}
	return f
}

func readResult(run int, text []byte) (*result, error) {
	row, err := profiles.ParseJSON("row", text)
	return &result{run: run, text: text, row: row}, err
}

func (r *result) word(key string) string {
	v, _ := r.row.Raw(key)
	s, _ := v.(string)
	return s
}

// number returns a figure of the row; ok is false if it has none.
func (r *result) number(key string) (float64, bool) {
	v, _ := r.row.Raw(key)
	n, ok := v.(profiles.Number)
	if !ok {
		return 0, false
	}
	x, err := n.Float64()
	return x, err == nil
}

// value returns the figure that a limit or objective names.
func (r *result) value(l *limits.Limit) (float64, bool) { return r.number(key(l)) }

// key returns the name of a figure in a row.
func key(l *limits.Limit) string {
	switch {
	case l.Metric == "":
		return l.Figure
	case l.Statistic == "count":
		return "num_" + strings.TrimSuffix(l.Metric, "_ms") + "_samples"
	}
	return l.Statistic + "_" + l.Metric
}
