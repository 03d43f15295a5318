package sweepcmd

import (
	"maps"
	"slices"
	"strings"

	"mockbench/engine/report"
	"mockbench/engine/report/delta"
	"mockbench/engine/report/limits"
)

// usual are the objectives if none are given.
var usual = []string{"p99(ttft_ms)", "gpu_hours"}

// parseObjectives reads FIGURE, or min FIGURE or max FIGURE where what is better does not go without saying.
func parseObjectives(texts []string) (list []objective, err error) {
	if len(texts) == 0 {
		texts = usual
	}
	for _, text := range texts {
		o := objective{}
		name := strings.TrimSpace(text)
		for word, sign := range map[string]float64{"min ": -1, "max ": 1} {
			if rest, found := strings.CutPrefix(name, word); found {
				name, o.sign = strings.TrimSpace(rest), sign
			}
		}
		if o.Limit, err = limits.Parse(name+" < 0", report.OfflineNames()); err != nil {
			return nil, usage("--objective: %v", strings.Replace(err.Error(), " < 0", "", 1))
		}
		o.Text = name
		figure := o.Figure
		if o.Metric != "" {
			figure = o.Metric
		}
		if o.sign == 0 {
			o.sign = float64(delta.Direction(figure))
		}
		if o.sign == 0 {
			return nil, usage("--objective: say whether %s should be small or large: 'min %s' or 'max %s'", name, name, name)
		}
		list = append(list, o)
	}
	return list, nil
}

// front returns the rows that no other row beats: that is as good in all objectives and better in one. Rows that failed,
// lack one of the figures or completed nothing are left out.
func front(rows []*result, objectives []objective) (best map[int]bool) {
	var all []candidate
	for _, r := range rows {
		if c, ok := newCandidate(r, objectives); ok {
			all = append(all, c)
		}
	}
	// A run can be beaten only by one that comes before it in this order, and equal ones are neighbours.
	slices.SortFunc(all, func(a, b candidate) int { return slices.Compare(b.merits, a.merits) })
	best = map[int]bool{}
	var unbeaten [][]float64
	for i, c := range all {
		if i > 0 && slices.Equal(c.merits, all[i-1].merits) {
			best[c.run] = best[all[i-1].run]
			continue
		}
		best[c.run] = !slices.ContainsFunc(unbeaten, func(m []float64) bool { return noWorse(m, c.merits) })
		if best[c.run] {
			unbeaten = append(unbeaten, c.merits)
		}
	}
	maps.DeleteFunc(best, func(_ int, good bool) bool { return !good })
	return best
}

// candidate is a run with its objectives, turned so that more is better.
type candidate struct {
	run    int
	merits []float64
}

func newCandidate(r *result, objectives []objective) (c candidate, ok bool) {
	if n, _ := r.number("completed_requests"); r.word("status") != statusOK || n == 0 {
		return c, false
	}
	c.run = r.run
	for i := range objectives {
		x, ok := r.value(&objectives[i].Limit)
		if !ok {
			return c, false
		}
		c.merits = append(c.merits, x*objectives[i].sign)
	}
	return c, true
}

// noWorse reports whether one run is at least as good as another in all objectives.
func noWorse(a, b []float64) bool {
	for i := range a {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}
