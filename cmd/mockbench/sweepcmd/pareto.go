package sweepcmd

import (
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
	var unbeaten []*result
	for _, r := range rows {
		if !eligible(r, objectives) || slices.ContainsFunc(unbeaten, func(o *result) bool { return beats(o, r, objectives) }) {
			continue
		}
		unbeaten = slices.DeleteFunc(unbeaten, func(o *result) bool { return beats(r, o, objectives) })
		unbeaten = append(unbeaten, r)
	}
	best = map[int]bool{}
	for _, r := range unbeaten {
		best[r.run] = true
	}
	return best
}

func eligible(r *result, objectives []objective) bool {
	if n, _ := r.number("completed_requests"); r.word("status") != statusOK || n == 0 {
		return false
	}
	for i := range objectives {
		if _, ok := r.value(&objectives[i].Limit); !ok {
			return false
		}
	}
	return true
}

func beats(a, b *result, objectives []objective) (better bool) {
	for i := range objectives {
		o := &objectives[i]
		x, _ := a.value(&o.Limit)
		y, _ := b.value(&o.Limit)
		switch d := (x - y) * o.sign; {
		case d < 0:
			return false
		case d > 0:
			better = true
		}
	}
	return better
}
