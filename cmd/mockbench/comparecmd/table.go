package comparecmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"mockbench/engine/report"
	"mockbench/engine/report/delta"
	"mockbench/engine/report/page"
)

// shown are the statistics of the table, unless all are asked for.
var shown = []string{"mean", "median", "p90", "p99", "max"}

// visible reports whether the table shows a line: those that say whether a run was better, and what is missing.
func (c *comparison) visible(l *delta.Line) bool {
	switch {
	case c.a.all:
		return true
	case l.Metric != "":
		return slices.Contains(shown, l.Statistic) &&
			(l.Verdict != delta.Missing || l.Statistic == "mean" && l.Reason != "no samples")
	case l.Verdict == delta.Missing:
		return true
	}
	return l.Verdict != delta.Same && (delta.Direction(l.Figure) != 0 || l.Figure == "prefix_cache_reused_ratio")
}

// word is the verdict of a line for people.
func word(l *delta.Line) string {
	switch {
	case l.Verdict == delta.Missing:
		return l.Reason
	case l.Within && l.Verdict != delta.Same:
		return string(l.Verdict) + ", within noise"
	}
	return string(l.Verdict)
}

func value(x *float64) string {
	if x == nil {
		return "--"
	}
	return report.Decimal(*x)
}

// change describes how far a figure moved.
func change(l *delta.Line) string {
	switch {
	case l.Change == nil:
		return "--"
	case l.Percent != nil:
		return fmt.Sprintf("%+.1f%%", *l.Percent)
	case *l.Change > 0:
		return "+" + report.Decimal(*l.Change)
	}
	return report.Decimal(*l.Change)
}

func noise(l *delta.Line) string {
	if l.Noise == nil || l.A == nil || *l.A == 0 {
		return "--"
	}
	return fmt.Sprintf("%.1f%%", 100**l.Noise/max(*l.A, -*l.A))
}

// cells returns the rows of the table.
func (c *comparison) cells() (rows [][]string, lines []*delta.Line) {
	for i := range c.lines {
		if l := &c.lines[i]; c.visible(l) {
			rows = append(rows, []string{l.Figure, value(l.A), value(l.B), change(l), noise(l), word(l)})
			lines = append(lines, l)
		}
	}
	return rows, lines
}

var head = []string{"figure", "A", "B", "change", "noise", "verdict"}

func (c *comparison) table(w io.Writer) {
	fmt.Fprintf(w, "A  %s\nB  %s\n\n", c.a.files[0], c.a.files[1])
	rows, _ := c.cells()
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintf(w, "%-*s", widths[0], row[0])
		for i := 1; i < len(row)-1; i++ {
			fmt.Fprintf(w, "  %*s", widths[i], row[i])
		}
		fmt.Fprintf(w, "  %s\n", row[len(row)-1])
	}
	fmt.Fprintf(w, "\n%s\n", c.sum())
	for _, n := range c.notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	for _, o := range c.outcomes {
		fmt.Fprintln(w, o)
	}
}

// counts returns how many figures there are by verdict, those within noise apart.
func (c *comparison) counts() (n map[string]int) {
	n = map[string]int{}
	for i := range c.lines {
		switch l := &c.lines[i]; {
		case l.Within && l.Verdict != delta.Same:
			n["noise"]++
		default:
			n[string(l.Verdict)]++
		}
	}
	return n
}

var verdicts = []string{"better", "worse", "noise", "same", "changed", "missing"}

func (c *comparison) sum() string {
	n, parts := c.counts(), []string{}
	for _, v := range verdicts {
		if n[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[v], strings.Replace(v, "noise", "within noise", 1)))
		}
	}
	return fmt.Sprintf("%d figures: %s", len(c.lines), strings.Join(parts, ", "))
}

func (c *comparison) oneLine() string {
	status, hold := "ok", 0
	if !c.hold {
		status = "failed"
	}
	for _, o := range c.outcomes {
		if o.OK {
			hold++
		}
	}
	n, text := c.counts(), "status="+status
	for _, v := range verdicts {
		text += fmt.Sprintf(" %s=%d", v, n[v])
	}
	return fmt.Sprintf("%s limits=%d/%d", text, hold, len(c.outcomes))
}

// page returns the comparison as a document.
func (c *comparison) page() page.Page {
	p := page.Page{Title: "Comparison", Subtitle: "A is " + c.a.files[0] + ", B is " + c.a.files[1], Notes: c.notes}
	if len(c.outcomes) > 0 {
		p.Verdict, p.Failed = "all limits hold", !c.hold
		if !c.hold {
			p.Verdict = "not all limits hold"
		}
		p.Sections = append(p.Sections, page.Section{Heading: "Limits", Table: report.OutcomeTable(c.outcomes)})
	}
	t := &page.Table{Head: head, Caption: c.sum()}
	rows, lines := c.cells()
	for i, row := range rows {
		mark := page.Plain
		switch l := lines[i]; {
		case l.Within:
		case l.Verdict == delta.Better:
			mark = page.Good
		case l.Verdict == delta.Worse:
			mark = page.Bad
		}
		t.Rows = append(t.Rows, page.Row{Cells: row, Mark: mark})
	}
	p.Sections = append(p.Sections, page.Section{Heading: "Figures", Table: t})
	if plots := c.profiles(); len(plots) > 0 {
		p.Sections = append(p.Sections, page.Section{Heading: "Percentiles", Plots: plots})
	}
	return p
}

// profiles returns a plot of the percentiles of each metric that both runs have samples of.
func (c *comparison) profiles() (plots []page.Plot) {
	places := []struct {
		name  string
		share float64
	}{{"min", 0}, {"median", 50}, {"p75", 75}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"max", 100}}
	for _, m := range c.runs[0].Metrics {
		plot := page.Plot{Title: report.Label(m), X: page.Axis{Label: "percentile"}, Y: page.Axis{Label: report.Label(m)},
			Data: &page.Table{Head: []string{"percentile", "A", "B"}}}
		for _, p := range places {
			plot.Data.Rows = append(plot.Data.Rows, page.Row{Cells: []string{p.name}})
		}
		for i, r := range c.runs {
			s := page.Series{Name: string(rune('A' + i))}
			for k, p := range places {
				x, n := r.Statistic(m, p.name)
				if n == 0 {
					continue
				}
				s.Points = append(s.Points, page.Point{X: p.share, Y: x})
				plot.Data.Rows[k].Cells = append(plot.Data.Rows[k].Cells, report.Decimal(x))
			}
			plot.Series = append(plot.Series, s)
		}
		if len(plot.Series[0].Points) > 0 && len(plot.Series[1].Points) > 0 {
			plots = append(plots, plot)
		}
	}
	return plots
}
