package limits

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Change is a bound on how far a figure may move from one run to another.
type Change struct {
	Limit            // names the figure; without operator and bound
	Up, Down float64 // how far it may rise and fall; +Inf where there is no bound
	Percent  bool    // of the value in the first run, else in units of the figure
}

// Rule is a condition on two runs: a bound on the second one alone, or on the change.
type Rule struct {
	Bound  *Limit
	Change *Change
}

// ParseRule reads what Parse reads, which is then about the second run, or FIGURE CHANGE: "p99(ttft_ms) +5%" lets the
// figure rise by at most 5 % of its first value, "completed_requests -2" lets it fall by at most 2, "mean(itl_ms) +-1%"
// bounds both ways. The word optional behind it lets a figure without a value pass.
func ParseRule(text string, names Names) (Rule, error) {
	if strings.ContainsAny(text, "<>=") {
		l, err := Parse(text, names)
		return Rule{Bound: &l}, err
	}
	c := Change{Limit: Limit{Text: strings.Join(strings.Fields(text), " ")}, Up: math.Inf(1), Down: math.Inf(1)}
	wrong := func(reason string) (Rule, error) { return Rule{}, fmt.Errorf("limit %q: %s", text, reason) }
	rest, optional := strings.CutSuffix(c.Text, " optional")
	c.Optional = optional
	i := strings.IndexAny(rest, "+-")
	if i < 0 {
		return wrong("there is neither an operator nor a change, such as < 300 or +5%")
	}
	if reason := c.name(strings.TrimSpace(rest[:i]), names); reason != "" {
		return wrong(reason)
	}
	number := strings.TrimLeft(rest[i:], "+-")
	sign := rest[i : len(rest)-len(number)]
	number, c.Percent = strings.CutSuffix(strings.TrimSpace(number), "%")
	x, err := bound(number, c.milliseconds() && !c.Percent)
	switch {
	case err != nil || x < 0:
		return wrong(fmt.Sprintf("%q is no change, allowed: + - or +- and a number, with %% for a share of the first value", rest[i:]))
	case sign == "+":
		c.Up = x
	case sign == "-":
		c.Down = x
	case sign == "+-":
		c.Up, c.Down = x, x
	default:
		return wrong(fmt.Sprintf("%q is no sign of a change, allowed: + - +-", sign))
	}
	return Rule{Change: &c}, nil
}

// Check evaluates a rule on two runs. A figure that one of them lacks, or has no samples of, fails unless the rule is
// optional.
func (r Rule) Check(a, b Source) Outcome {
	if r.Bound != nil {
		return r.Bound.Check(b)
	}
	c := r.Change
	o := Outcome{Expression: c.Text}
	x, _, before := c.value(a)
	y, samples, after := c.value(b)
	switch {
	case before != "":
		o.OK, o.Reason = c.Optional, "first run: "+before
		return o
	case after != "":
		o.OK, o.Reason = c.Optional, "second run: "+after
		return o
	}
	unit := 1.0
	if c.Percent {
		unit = math.Abs(x) / 100
	}
	o.Base, o.Actual, o.Samples = &x, &y, samples
	o.OK = within(y-x, c.Up, unit) && within(x-y, c.Down, unit)
	return o
}

// within reports whether a move keeps within a bound of so many units.
func within(move, most, unit float64) bool { return math.IsInf(most, 1) || move <= most*unit }

// CheckRules evaluates rules and reports whether all hold.
func CheckRules(list []Rule, a, b Source) (outcomes []Outcome, ok bool) {
	outcomes, ok = []Outcome{}, true
	for _, r := range list {
		o := r.Check(a, b)
		outcomes = append(outcomes, o)
		ok = ok && o.OK
	}
	return outcomes, ok
}

// moved describes the change of a figure.
func moved(base, actual float64) string {
	text := strconv.FormatFloat(base, 'g', 6, 64) + " -> " + strconv.FormatFloat(actual, 'g', 6, 64)
	if base != 0 {
		text += fmt.Sprintf(" (%+.1f%%)", 100*(actual-base)/math.Abs(base))
	}
	return text
}
