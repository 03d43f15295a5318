package report

import (
	"bytes"
	"fmt"
	"io"
)

// Comparison is two fleets under the same traffic and two placement policies.
type Comparison struct {
	Policies   [2]string `json:"policies"`            // of the fleet of the report, and of the other one
	Unmirrored int       `json:"unmirrored_requests"` // that the other fleet did not get
	Balance    [2]Ratio  `json:"balance"`             // input tokens of the busiest worker / mean of the workers; 1 is even
	Summary    Figures   `json:"summary"`             // of the other fleet
	Workers    []Worker  `json:"workers"`

	Difference Difference `json:"difference"`
}

// Ratio is a quotient that is null in JSON where there is none.
type Ratio = *float64

// Difference is the other fleet's figures less those of the report; nil without samples.
type Difference struct {
	TTFTMedianMS Ratio `json:"median_ttft_ms"`
	TTFTP99MS    Ratio `json:"p99_ttft_ms"`
	HitRate      Ratio `json:"first_admission_prefix_cache_reused_ratio"`
	Balance      Ratio `json:"balance"`
}

// Compare puts two reports of the same traffic side by side.
func Compare(policies [2]string, a, b Report, unmirrored int) *Comparison {
	c := &Comparison{Policies: policies, Unmirrored: unmirrored, Summary: b.Summary, Workers: b.Workers,
		Balance: [2]Ratio{Balance(a.Workers), Balance(b.Workers)}}
	less := func(x, y Ratio) Ratio {
		if x == nil || y == nil {
			return nil
		}
		d := *y - *x
		return &d
	}
	if a.Summary.TTFT.Samples > 0 && b.Summary.TTFT.Samples > 0 {
		c.Difference.TTFTMedianMS = less(&a.Summary.TTFT.Median, &b.Summary.TTFT.Median)
		c.Difference.TTFTP99MS = less(&a.Summary.TTFT.P99, &b.Summary.TTFT.P99)
	}
	c.Difference.HitRate = less(a.Summary.HitRate, b.Summary.HitRate)
	c.Difference.Balance = less(c.Balance[0], c.Balance[1])
	return c
}

// Balance is the input tokens of the busiest worker over the mean of all workers; nil without any.
func Balance(workers []Worker) Ratio {
	var sum, most uint64
	for _, w := range workers {
		sum += w.InputTokens
		most = max(most, w.InputTokens)
	}
	if sum == 0 {
		return nil
	}
	r := float64(most) * float64(len(workers)) / float64(sum)
	return &r
}

// WriteComparison writes the summary of the other fleet for people, and then the difference.
func WriteComparison(w io.Writer, r Report, width int) error {
	c := r.AB
	if _, err := fmt.Fprintf(w, "\nthe same traffic under %s\n\n", c.Policies[1]); err != nil {
		return err
	}
	if err := WriteText(w, Report{Summary: c.Summary, Workers: c.Workers}, width); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n%-*s%14s%14s%14s\n", labelWidth, "A/B", c.Policies[0], c.Policies[1], "difference")
	row := func(name, x, y, d string) { fmt.Fprintf(&b, "%-*s%14s%14s%14s\n", labelWidth, name, x, y, d) }
	ttft := func(f *Figures, of func(*Distribution) float64) string {
		if f.TTFT.Samples == 0 {
			return none
		}
		return milliseconds(of(&f.TTFT))
	}
	median, p99 := func(d *Distribution) float64 { return d.Median }, func(d *Distribution) float64 { return d.P99 }
	row("TTFT p50 ms", ttft(&r.Summary, median), ttft(&c.Summary, median), signed(c.Difference.TTFTMedianMS, 2))
	row("TTFT p99 ms", ttft(&r.Summary, p99), ttft(&c.Summary, p99), signed(c.Difference.TTFTP99MS, 2))
	points := c.Difference.HitRate
	if points != nil {
		x := *points * 100
		points = &x
	}
	row("hit rate", percent(r.Summary.HitRate), percent(c.Summary.HitRate), signed(points, 1)+" pt")
	row("balance", plain(c.Balance[0]), plain(c.Balance[1]), signed(c.Difference.Balance, 2))
	fmt.Fprintln(&b, "balance: input tokens of the busiest worker / mean; 1 is even")
	if c.Unmirrored > 0 {
		fmt.Fprintf(&b, "note: %s requests did not reach the second fleet\n", whole(c.Unmirrored))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func plain(x Ratio) string {
	if x == nil {
		return none
	}
	return decimal(*x, 2)
}

func signed(x Ratio, digits int) string {
	if x == nil {
		return none
	}
	text := decimal(*x, digits)
	if *x > 0 {
		return "+" + text
	}
	return text
}
