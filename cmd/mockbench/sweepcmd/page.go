package sweepcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mockbench/cmd/mockbench/replaycmd"
	"mockbench/engine/report/page"
)

// pageRows is how many runs the table of a page has, besides those of the front.
const pageRows = 2000

// page returns the sweep as a document.
func (s *sweep) page(rows []*result) page.Page {
	best := front(rows, s.objectives)
	p := page.Page{Title: "Sweep", Subtitle: replaycmd.CommandLine("sweep", s.args)}
	if len(rows) < len(s.points) {
		p.Verdict, p.Failed = fmt.Sprintf("interrupted: %d of %d runs were done", len(rows), len(s.points)), true
	}
	if len(s.objectives) > 1 {
		p.Sections = append(p.Sections, page.Section{Heading: "Pareto front",
			Text: "Runs that no other beats in all objectives are joined by a line.", Plots: []page.Plot{s.scatter(rows, best)}})
	}
	if plots := s.effects(rows); len(plots) > 0 {
		p.Sections = append(p.Sections, page.Section{Heading: "Effect of " + s.targets[s.numeric()].name, Plots: plots})
	}
	head, lines := s.lines(rows)
	t := &page.Table{Head: head, Caption: "A star marks the Pareto front, " +
		"a cross a run that keeps not all limits or was not possible."}
	for i, line := range lines {
		if i >= pageRows && !best[rows[i].run] {
			continue
		}
		row := page.Row{Cells: line}
		switch {
		case best[rows[i].run]:
			row.Mark = page.Chosen
		case rows[i].word("status") != statusOK:
			row.Mark = page.Bad
		}
		t.Rows = append(t.Rows, row)
	}
	if n := len(rows) - len(t.Rows); n > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d further runs are in the CSV and JSONL files alone", n))
	}
	p.Sections = append(p.Sections, page.Section{Heading: "Runs", Table: t})
	return p
}

// name says what is particular about a run.
func (s *sweep) name(r *result) string {
	var parts []string
	for _, t := range s.targets {
		parts = append(parts, t.name[strings.LastIndexByte(t.name, '.')+1:]+" "+cell(r, t.name))
	}
	return strings.Join(parts, ", ")
}

// named is up to how many points of the front have their names beside them.
const named = 6

// scatter shows the runs over the first two objectives.
func (s *sweep) scatter(rows []*result, best map[int]bool) page.Plot {
	x, y := &s.objectives[0], &s.objectives[1]
	all := page.Series{Name: "runs", Kind: page.Dots}
	chosen := page.Series{Name: "Pareto front", Kind: page.Dots}
	line := page.Series{Name: "best trade-off", Kind: page.Curve}
	for _, r := range rows {
		a, ok1 := r.value(&x.Limit)
		b, ok2 := r.value(&y.Limit)
		if !ok1 || !ok2 {
			continue
		}
		q := page.Point{X: a, Y: b, Label: fmt.Sprintf("run %d: %s", r.run, s.name(r))}
		if !best[r.run] {
			all.Points = append(all.Points, q)
			continue
		}
		line.Points = append(line.Points, q)
		q.Named = len(best) <= named
		if q.Named {
			q.Label = s.name(r)
		}
		chosen.Points = append(chosen.Points, q)
	}
	slices.SortFunc(line.Points, func(a, b page.Point) int { return cmp.Compare(a.X, b.X) })
	log := spread(all.Points, chosen.Points)
	return page.Plot{Title: y.Text + " over " + x.Text, X: page.Axis{Label: x.Text, Log: log}, Y: page.Axis{Label: y.Text},
		Series: []page.Series{all, chosen, line}}
}

// spread reports whether values differ so much that they are better shown by magnitude.
func spread(lists ...[]page.Point) bool {
	low, high := 0.0, 0.0
	for _, q := range slices.Concat(lists...) {
		if low == 0 || q.X < low {
			low = q.X
		}
		high = max(high, q.X)
	}
	return low > 0 && high/low > 30
}

// numeric returns the first parameter with at least three values that are all numbers, -1 if there is none.
func (s *sweep) numeric() int {
	return slices.IndexFunc(s.parameters, func(p parameter) bool {
		for _, v := range p.values {
			if !number(v) {
				return false
			}
		}
		return len(p.values) > 2
	})
}

// effects shows each objective over the first parameter that is a number, a curve for each choice of the others.
func (s *sweep) effects(rows []*result) (plots []page.Plot) {
	k := s.numeric()
	if k < 0 {
		return nil
	}
	for i := range s.objectives {
		o := &s.objectives[i]
		p := page.Plot{Title: o.Text, X: page.Axis{Label: s.targets[k].name}, Y: page.Axis{Label: o.Text}}
		index := map[string]int{}
		for _, r := range rows {
			x, _ := r.number(s.targets[k].name)
			y, ok := r.value(&o.Limit)
			if !ok {
				continue
			}
			var others []string
			for n, t := range s.targets {
				if n != k {
					others = append(others, t.name[strings.LastIndexByte(t.name, '.')+1:]+" "+cell(r, t.name))
				}
			}
			name := strings.Join(others, ", ")
			at, known := index[name]
			if !known {
				at = len(p.Series)
				index[name] = at
				p.Series = append(p.Series, page.Series{Name: cmp.Or(name, o.Text)})
			}
			p.Series[at].Points = append(p.Series[at].Points, page.Point{X: x, Y: y})
		}
		if len(p.Series) > 0 && len(p.Series) <= 6 {
			for n := range p.Series {
				slices.SortFunc(p.Series[n].Points, func(a, b page.Point) int { return cmp.Compare(a.X, b.X) })
			}
			p.X.Log = spread(p.Series[0].Points)
			plots = append(plots, p)
		}
	}
	return plots
}
