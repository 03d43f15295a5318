package report

import (
	"encoding/json"
	"strings"
	"testing"
)

func fleetReport(median, p99, hit float64, tokens ...uint64) Report {
	r := Report{SchemaVersion: SchemaVersion, Mode: "live", Notes: []string{}, Workers: []Worker{}}
	r.Summary.HitRate = &hit
	r.Summary.TTFT = Distribution{Samples: 5, Median: median, P99: p99}
	for _, n := range tokens {
		r.Workers = append(r.Workers, Worker{Name: "w", Figures: Figures{InputTokens: n}})
	}
	return r
}

func TestCompare(t *testing.T) {
	a := fleetReport(80, 200, 0.6, 100, 300)
	a.AB = Compare([2]string{"kv", "round-robin"}, a, fleetReport(95, 190, 0.35, 200, 200), 3)
	d := a.AB.Difference
	if *d.TTFTMedianMS != 15 || *d.TTFTP99MS != -10 || *d.HitRate != 0.35-0.6 || *a.AB.Balance[0] != 1.5 || *d.Balance != -0.5 {
		t.Errorf("difference %+v, balance %v", d, *a.AB.Balance[0])
	}
	var text strings.Builder
	if err := WriteComparison(&text, a, 100); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"under round-robin", "+15.00", "-10.00", "-25.0 pt", "1.50          1.00         -0.50", "3 requests did not reach"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	s, root := loadSchema(t)
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	if wrong := s.check("report", root, value); len(wrong) > 0 {
		t.Errorf("the schema says: %v", wrong)
	}
}

// Without samples there is no difference.
func TestCompareNothing(t *testing.T) {
	c := Compare([2]string{"kv", "random"}, Report{}, fleetReport(1, 2, 0.5, 4), 0)
	if c.Difference != (Difference{}) || c.Balance[0] != nil || *c.Balance[1] != 1 {
		t.Errorf("difference %+v, balance %v", c.Difference, c.Balance)
	}
}
