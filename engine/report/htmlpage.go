package report

import (
	"fmt"

	"mockbench/engine/report/limits"
	"mockbench/engine/report/page"
)

// Document is what the page of one run shows besides its figures.
type Document struct {
	Title    string
	Subtitle string // the command line, say
	Status   string // why the run ended before its end; empty if it did not
	Outcomes []limits.Outcome
	Shapes   []Shape
	Time     []page.Plot // over simulated time
	Notes    []string
}

// Page returns the page of a run on simulated time.
func (c *Offline) Page(summary Fields, t OfflineText, d Document) page.Page {
	d.Shapes, d.Notes = c.Shapes(), t.Notes
	return d.page(c.totals(summary, t), c.Metrics())
}

// Page returns the page of a live run.
func (r Report) Page(d Document) page.Page {
	d.Notes = r.Notes
	p := d.page(r.Summary.totals(), r.Summary.Metrics())
	if len(r.Workers) > 1 {
		p.Sections = append(p.Sections, page.Section{Heading: "Workers", Table: workerTable(r.Workers)})
	}
	return p
}

func (d Document) page(t totals, metrics []Metric) page.Page {
	p := page.Page{Title: d.Title, Subtitle: d.Subtitle, Notes: d.Notes}
	p.Verdict, p.Failed = verdict(d.Status, d.Outcomes)
	if len(d.Outcomes) > 0 {
		p.Sections = append(p.Sections, page.Section{Heading: "Limits", Table: OutcomeTable(d.Outcomes)})
	}
	summary := &page.Table{Text: true}
	for _, x := range t {
		summary.Rows = append(summary.Rows, page.Row{Cells: []string{x[0], x[1]}})
	}
	p.Sections = append(p.Sections, page.Section{Heading: "Summary", Table: summary},
		page.Section{Heading: "Latencies", Text: "Gaps between tokens (ITL) are pooled over all requests; TPOT is one mean gap for each request.",
			Table: latencyTable(metrics)})
	if plots := histograms(metrics, d.Shapes); len(plots) > 0 {
		p.Sections = append(p.Sections, page.Section{Heading: "Distributions", Plots: plots})
	}
	if len(d.Time) > 0 {
		p.Sections = append(p.Sections, page.Section{Heading: "Over simulated time", Plots: d.Time})
	}
	return p
}

// verdict says in a line how a run went.
func verdict(status string, outcomes []limits.Outcome) (text string, failed bool) {
	failures := 0
	for _, o := range outcomes {
		if !o.OK {
			failures++
		}
	}
	switch {
	case status != "":
		return status, true
	case failures > 0:
		return fmt.Sprintf("%d of %d limits do not hold", failures, len(outcomes)), true
	case len(outcomes) > 0:
		return fmt.Sprintf("all %d limits hold", len(outcomes)), false
	}
	return "", false
}

// OutcomeTable returns the limits of a run with what was found.
func OutcomeTable(outcomes []limits.Outcome) *page.Table {
	t := &page.Table{Head: []string{"limit", "verdict", "found"}, Text: true}
	for _, o := range outcomes {
		row := page.Row{Cells: []string{o.Expression, "ok", o.Finding()}, Mark: page.Good}
		if !o.OK {
			row.Cells[1], row.Mark = "failed", page.Bad
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func latencyTable(metrics []Metric) *page.Table {
	shown := columns(1 << 10)
	t := &page.Table{Head: append(append([]string{"metric"}, shown...), "samples")}
	for _, m := range metrics {
		row := []string{Label(m.Name)}
		for _, name := range shown {
			text := none
			if x, ok := m.Clamped().Statistic(name); ok && m.Samples > 0 {
				text = milliseconds(x)
			}
			row = append(row, text)
		}
		t.Rows = append(t.Rows, page.Row{Cells: append(row, whole(m.Samples))})
	}
	return t
}

func workerTable(workers []Worker) *page.Table {
	t := &page.Table{Head: []string{"worker", "completed", "out tok/s", "hit rate", "KV mean", "KV peak", "preemptions", "p99 TTFT ms"}}
	for _, w := range workers {
		p99 := none
		if w.TTFT.Samples > 0 {
			p99 = milliseconds(w.TTFT.P99)
		}
		t.Rows = append(t.Rows, page.Row{Cells: []string{w.Name, whole(w.Completed), decimal(w.OutputPerSecond, 1), percent(w.HitRate),
			percent(w.MeanOccupancy), percent(w.PeakOccupancy), whole(w.Preemptions), p99}})
	}
	return t
}

// histograms returns a plot for each shape that has samples, with the percentiles of its metric.
func histograms(metrics []Metric, shapes []Shape) (plots []page.Plot) {
	for _, s := range shapes {
		if len(s.Bins) == 0 {
			continue
		}
		p := page.Plot{Title: Label(s.Metric), X: page.Axis{Label: Label(s.Metric), Log: s.Log}, Y: page.Axis{Label: "samples"},
			Data: &page.Table{Head: []string{"from", "to", "samples"}}}
		bars := page.Series{Name: "samples", Kind: page.Bars}
		for _, b := range s.Bins {
			bars.Points = append(bars.Points, page.Point{X: b.Low, X2: b.High, Y: float64(b.N)})
			if b.N > 0 {
				p.Data.Rows = append(p.Data.Rows, page.Row{Cells: []string{milliseconds(b.Low), milliseconds(b.High), whole(b.N)}})
			}
		}
		p.Series = []page.Series{bars}
		for _, m := range metrics {
			if m.Name == s.Metric {
				d := m.Clamped()
				p.Lines = []page.Line{{X: d.Median, Name: "p50 " + page.Number(d.Median)}, {X: d.P99, Name: "p99 " + page.Number(d.P99)},
					{X: d.Max, Name: "max " + page.Number(d.Max)}}
			}
		}
		plots = append(plots, p)
	}
	return plots
}
