// Package limits decides whether the figures of a run are good enough: it reads expressions such as
// "p99(ttft_ms) < 300" before the run and evaluates them after it.
package limits

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Names are the figures that a run will have.
type Names struct {
	Metrics []string          // distributions, such as ttft_ms
	Figures []string          // single figures, such as completed_requests
	Short   map[string]string // other names of metrics, such as ttft
	Rising  []string          // figures that never fall in the course of a run
}

// Statistics are the words for a figure of a distribution, with their other names.
var statistics = []struct {
	name  string
	words []string
}{
	{"mean", []string{"mean", "avg"}}, {"min", []string{"min"}}, {"max", []string{"max"}},
	{"median", []string{"median", "med", "p50"}}, {"p75", []string{"p75"}}, {"p90", []string{"p90"}}, {"p95", []string{"p95"}},
	{"p99", []string{"p99"}}, {"std", []string{"std"}}, {"count", []string{"count"}},
}

func statistic(word string) (string, bool) {
	for _, s := range statistics {
		if slices.Contains(s.words, word) {
			return s.name, true
		}
	}
	return "", false
}

// Limit is a condition on one figure.
type Limit struct {
	Text      string  // as it was written
	Metric    string  // distribution; empty for a single figure
	Statistic string  // of the distribution: mean, min, max, median, p75, p90, p95, p99, std or count
	Figure    string  // single figure
	Operator  string  // <, <=, >, >=, == or !=
	Bound     float64 // finite
	Optional  bool    // holds if there are no samples
	Rising    bool    // the figure never falls in the course of a run
}

// operators, the longer ones first.
var operators = []string{"<=", ">=", "==", "!=", "<", ">"}

// Parse reads an expression: STATISTIC(METRIC) OPERATOR NUMBER, METRIC.STATISTIC OPERATOR NUMBER or FIGURE OPERATOR NUMBER,
// with the word optional behind it if a lack of samples is no failure. A bound on a metric in milliseconds may have the
// unit ms or s. Names that the run will not have are an error.
func Parse(text string, names Names) (l Limit, err error) {
	l.Text = strings.Join(strings.Fields(text), " ")
	wrong := func(format string, args ...any) (Limit, error) {
		return Limit{}, fmt.Errorf("limit %q: "+format, append([]any{text}, args...)...)
	}
	rest, optional := strings.CutSuffix(l.Text, " optional")
	l.Optional = optional
	left, right := "", ""
	for _, o := range operators {
		if a, b, found := strings.Cut(rest, o); found && (l.Operator == "" || len(a) < len(left)) {
			l.Operator, left, right = o, a, b
		}
	}
	if l.Operator == "" {
		return wrong("there is no operator, allowed: < <= > >= == !=")
	}
	if reason := l.name(strings.TrimSpace(left), names); reason != "" {
		return wrong("%s", reason)
	}
	if l.Bound, err = bound(strings.TrimSpace(right), l.milliseconds()); err != nil {
		return wrong("%w", err)
	}
	return l, nil
}

// ParseList reads expressions with commas between them.
func ParseList(text string, names Names) (list []Limit, err error) {
	for part := range strings.SplitSeq(text, ",") {
		l, err := Parse(part, names)
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// milliseconds reports whether the figure is a time in milliseconds.
func (l *Limit) milliseconds() bool {
	return l.Statistic != "count" && (strings.HasSuffix(l.Metric, "_ms") || strings.HasSuffix(l.Figure, "_ms"))
}

// bound reads a finite number, which has a unit of time behind it where that makes sense.
func bound(text string, milliseconds bool) (float64, error) {
	number, factor := text, 1.0
	if milliseconds {
		if n, found := strings.CutSuffix(text, "ms"); found {
			number = n
		} else if n, found := strings.CutSuffix(text, "s"); found {
			number, factor = n, 1000
		}
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	x *= factor
	switch {
	case err == nil && !math.IsNaN(x) && !math.IsInf(x, 0):
		return x, nil
	case milliseconds:
		return 0, fmt.Errorf("%q is not a number, nor one with the unit ms or s", text)
	}
	return 0, fmt.Errorf("%q is not a number; units belong to the name of the figure", text)
}

// name finds out which figure is meant, or says why none is.
func (l *Limit) name(text string, names Names) string {
	word, metric := "", ""
	if head, tail, called := strings.Cut(text, "("); called {
		inner, closed := strings.CutSuffix(tail, ")")
		if !closed {
			return fmt.Sprintf("%q lacks a closing bracket", text)
		}
		word, metric = strings.TrimSpace(head), strings.TrimSpace(inner)
	} else if head, tail, dotted := strings.Cut(text, "."); dotted {
		word, metric = tail, head
	} else if slices.Contains(names.Figures, text) {
		l.Figure, l.Rising = text, slices.Contains(names.Rising, text)
		return ""
	} else if head, tail, _ := strings.Cut(text, "_"); names.has(tail) {
		word, metric = head, tail
	} else if i := strings.LastIndexByte(text, '_'); i > 0 && names.has(text[:i]) {
		word, metric = text[i+1:], text[:i]
	} else {
		return fmt.Sprintf("there is no figure %q%s", text, suggest(text, names))
	}
	if long, ok := names.Short[metric]; ok {
		metric = long
	}
	if !slices.Contains(names.Metrics, metric) {
		return fmt.Sprintf("there is no metric %q, allowed: %s", metric, strings.Join(names.Metrics, ", "))
	}
	s, ok := statistic(word)
	if !ok {
		return fmt.Sprintf("there is no statistic %q, allowed: mean, min, max, median, p75, p90, p95, p99, std, count", word)
	}
	l.Metric, l.Statistic, l.Rising = metric, s, s == "max" || s == "count"
	return ""
}

// has reports whether a word names a metric.
func (n *Names) has(word string) bool { return n.Short[word] != "" || slices.Contains(n.Metrics, word) }

// suggest names figures that share a beginning or an end with a wrong name.
func suggest(text string, names Names) string {
	var near []string
	for _, f := range slices.Concat(names.Figures, names.Metrics) {
		if strings.Contains(f, text) || text != "" && strings.Contains(text, f) || common(f, text) >= 6 {
			near = append(near, f)
		}
	}
	if len(near) == 0 || len(near) > 6 {
		return ", see --help for the names"
	}
	return ", did you mean " + strings.Join(near, " or ")
}

func common(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Source gives the figures of a run.
type Source interface {
	// Statistic returns a statistic of a distribution and its number of samples. Without samples the value means nothing.
	Statistic(metric, statistic string) (value float64, samples uint64)
	// Figure returns a single figure; ok is false if it does not exist in this run.
	Figure(name string) (value float64, ok bool)
	// Requests returns how many requests were complete, of how many.
	Requests() (completed, all int)
}

// Outcome is whether a limit holds. OK is true if it does.
type Outcome struct {
	Expression string   `json:"expr"`
	OK         bool     `json:"ok"`
	Base       *float64 `json:"base,omitempty"`    // in the first of two runs
	Actual     *float64 `json:"actual"`            // nil without samples
	Samples    *uint64  `json:"samples,omitempty"` // of the distribution
	Reason     string   `json:"reason,omitempty"`  // why it does not hold, if not for the value
}

// value returns the figure that a limit is about, and its number of samples if it is a statistic. Without a value reason
// says why there is none.
func (l *Limit) value(s Source) (x float64, samples *uint64, reason string) {
	if l.Metric == "" {
		x, ok := s.Figure(l.Figure)
		if !ok {
			return 0, nil, "this run has no such figure"
		}
		return x, nil, ""
	}
	x, n := s.Statistic(l.Metric, l.Statistic)
	switch {
	case l.Statistic == "count":
		x = float64(n)
	case n == 0:
		completed, all := s.Requests()
		return 0, &n, fmt.Sprintf("no samples (%d of %d requests completed)", completed, all)
	}
	return x, &n, ""
}

// Check evaluates a limit. A figure without samples fails unless the limit is optional.
func (l Limit) Check(s Source) Outcome {
	o := Outcome{Expression: l.Text}
	var x float64
	if x, o.Samples, o.Reason = l.value(s); o.Reason != "" {
		o.OK = l.Optional
		return o
	}
	o.Actual, o.OK = &x, l.holds(x)
	return o
}

func (l Limit) holds(x float64) bool {
	switch l.Operator {
	case "<":
		return x < l.Bound
	case "<=":
		return x <= l.Bound
	case ">":
		return x > l.Bound
	case ">=":
		return x >= l.Bound
	case "==":
		return x == l.Bound
	}
	return x != l.Bound
}

// String describes the outcome in a line.
func (o Outcome) String() string {
	verdict := "failed"
	if o.OK {
		verdict = "ok"
	}
	return fmt.Sprintf("%-6s  %s: %s", verdict, o.Expression, o.Finding())
}

// Finding says what was found.
func (o Outcome) Finding() string {
	if o.Reason != "" {
		return o.Reason
	}
	text := strconv.FormatFloat(*o.Actual, 'f', -1, 64)
	if o.Base != nil {
		text = moved(*o.Base, *o.Actual)
	}
	if o.Samples != nil {
		text += fmt.Sprintf(" (%d samples)", *o.Samples)
	}
	return text
}

// CheckAll evaluates limits and reports whether all hold.
func CheckAll(list []Limit, s Source) (outcomes []Outcome, ok bool) {
	ok = true
	outcomes = []Outcome{}
	for _, l := range list {
		o := l.Check(s)
		outcomes = append(outcomes, o)
		ok = ok && o.OK
	}
	return outcomes, ok
}
