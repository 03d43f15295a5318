package page

import (
	"encoding/xml"
	"math"
	"regexp"
	"strings"
	"testing"
)

func sample() Page {
	curve := Series{Name: "A & B", Points: []Point{{X: 1, Y: 2}, {X: 2, Y: math.NaN()}, {X: 3, Y: 5}}}
	return Page{Title: "<Run>", Verdict: "1 of 2 limits do not hold", Failed: true, Notes: []string{"a note"}, Sections: []Section{
		{Heading: "Table", Table: &Table{Head: []string{"figure", "value"}, Rows: []Row{{Cells: []string{"p99 < 3", "4"}, Mark: Bad}}}},
		{Heading: "Plots", Plots: []Plot{
			{Title: "Curves", X: Axis{Label: "time, s"}, Y: Axis{Label: "ms"}, Series: []Series{curve, {Name: "C", Kind: Dots, Points: []Point{
				{X: 2, Y: 4, Label: "here", Named: true}}}}, Lines: []Line{{X: 2, Name: "p50 2"}}},
			{Title: "Bars", X: Axis{Label: "ms", Log: true}, Y: Axis{Label: "samples"}, Series: []Series{{Name: "n", Kind: Bars,
				Points: []Point{{X: 1, X2: 10, Y: 3}, {X: 10, X2: 100, Y: 0}}}}},
			{Title: "Empty"},
		}}}}
}

// Pictures are well-formed, have a description and need nothing from outside; texts are escaped.
func TestWrite(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, sample()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	pictures := regexp.MustCompile(`(?s)<svg .*?</svg>`).FindAllString(text, -1)
	if len(pictures) != 5 { // three plots and a legend of two
		t.Errorf("%d pictures", len(pictures))
	}
	for _, p := range pictures {
		d := xml.NewDecoder(strings.NewReader(p))
		for {
			if _, err := d.Token(); err != nil {
				if err.Error() != "EOF" {
					t.Errorf("%v in\n%s", err, p)
				}
				break
			}
		}
	}
	for _, want := range []string{"&lt;Run&gt;", "p99 &lt; 3", `role="img" aria-label="Curves. ms over time, s. A &amp; B: 2 values from 2 to 5.`,
		"p50 2 at 2.", "no data", "prefers-color-scheme: dark", `<tr class="bad">`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for _, never := range []string{"NaN", "Inf", "http", "<script", "url("} {
		if strings.Contains(text, never) {
			t.Errorf("%q is in the page", never)
		}
	}
}

// Every value lies within its scale and every tick too, whatever the range.
func TestScales(t *testing.T) {
	for _, r := range [][2]float64{{0, 1}, {5, 5}, {0, 0}, {-3, 8}, {97, 103}, {1e-4, 1e7}, {0.2, 0.3}, {1, 1e12}, {12345.6, 12345.7}} {
		for _, log := range []bool{false, true} {
			for _, pixels := range [][2]float64{{60, 600}, {220, 20}} {
				s := newScale(Axis{Log: log}, r[0], r[1], pixels[0], pixels[1])
				if len(s.ticks) < 1 || len(s.ticks) > 14 {
					t.Errorf("%v log %v: ticks %v", r, log, s.ticks)
				}
				for _, x := range append(s.ticks, r[0], r[1]) {
					if at := s.at(x); math.IsNaN(at) || at < min(pixels[0], pixels[1])-1 || at > max(pixels[0], pixels[1])+1 {
						t.Errorf("%v log %v: %g is at %g", r, log, x, at)
					}
				}
			}
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.00123: "0.00123", 2.5: "2.5", 1234: "1234", 12345: "12.35k", 1e6: "1M", -20: "-20", 999.96: "1000"} {
		if got := Number(x); got != want {
			t.Errorf("%g is %s, want %s", x, got, want)
		}
	}
	if Number(math.NaN()) != "--" {
		t.Error("no number is no text")
	}
}
