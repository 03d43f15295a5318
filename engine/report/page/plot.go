package page

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"
)

// Plot is a picture of some series over common axes.
type Plot struct {
	Title  string
	X, Y   Axis
	Series []Series
	Lines  []Line // upright
	Data   *Table // the same for readers of tables; nil for none
}

// Kind is how a series is drawn.
type Kind uint8

// Kinds.
const (
	Curve Kind = iota // points joined by lines
	Bars              // a bar from X to X2, from 0 to Y
	Dots              // points by themselves, with their labels
)

// Series is points with a name. Points whose X or Y is no number leave a gap.
type Series struct {
	Name   string
	Kind   Kind
	Points []Point
}

// Point is a value.
type Point struct {
	X, Y  float64
	X2    float64 // right end of a bar
	Label string  // of a dot; shown when pointed at
	Named bool    // the label is shown always
}

// Line is an upright line with a name.
type Line struct {
	X    float64
	Name string
}

// Size of a picture and room for its axes, in units of the picture.
const (
	width, height            = 640.0, 260.0
	left, right, top, bottom = 62.0, 18.0, 22.0, 40.0
	lineHeight               = 12.0
)

// LegendEntry explains a series.
type LegendEntry struct {
	Name   string
	Swatch template.HTML
}

// Legend returns the entries of the legend, none for a single series.
func (p Plot) Legend() (list []LegendEntry) {
	if len(p.Series) < 2 {
		return nil
	}
	for i, s := range p.Series {
		var b strings.Builder
		b.WriteString(`<svg viewBox="0 0 32 12" aria-hidden="true">`)
		if s.Kind == Curve {
			fmt.Fprintf(&b, `<path class="curve s%d" d="M0 6H32"/>`, i%6)
		} else {
			shape(&b, i, 16, 6, s.Kind)
		}
		b.WriteString("</svg>")
		list = append(list, LegendEntry{s.Name, template.HTML(b.String())})
	}
	return list
}

// svg draws the picture.
func (p Plot) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, html.EscapeString(p.describe()))
	x0, x1, y0, y1, ok := p.bounds()
	if !ok {
		fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">no data</text></svg>`, width/2, height/2)
		return b.String()
	}
	head := top + float64(len(p.Lines))*lineHeight
	edge := 0.0
	if slices.ContainsFunc(p.Series, func(s Series) bool { return s.Kind == Dots }) {
		edge = 8 // room for marks at either end
	}
	x, y := newScale(p.X, x0, x1, left+edge, width-right-edge), newScale(p.Y, y0, y1, height-bottom, head)
	p.axes(&b, &x, &y)
	for i, s := range p.Series {
		switch s.Kind {
		case Curve:
			curve(&b, i, s, &x, &y)
		case Bars:
			bars(&b, i, s, &x, &y)
		case Dots:
			dots(&b, i, s, &x, &y)
		}
	}
	p.lines(&b, &x)
	b.WriteString("</svg>")
	return b.String()
}

// bounds returns the ranges of the values.
func (p Plot) bounds() (x0, x1, y0, y1 float64, ok bool) {
	x0, y0 = math.Inf(1), math.Inf(1)
	x1, y1 = math.Inf(-1), math.Inf(-1)
	for _, s := range p.Series {
		for _, q := range s.Points {
			if !q.real() {
				continue
			}
			ok = true
			x0, x1, y0, y1 = min(x0, q.X), max(x1, q.X), min(y0, q.Y), max(y1, q.Y)
			if s.Kind == Bars {
				x1, y0 = max(x1, q.X2), min(y0, 0)
			}
		}
	}
	return x0, x1, y0, y1, ok
}

func (q Point) real() bool {
	return !math.IsNaN(q.X) && !math.IsInf(q.X, 0) && !math.IsNaN(q.Y) && !math.IsInf(q.Y, 0)
}

// describe says in words what the picture shows.
func (p Plot) describe() string {
	text := p.Title + ". " + p.Y.Label + " over " + p.X.Label + "."
	for _, s := range p.Series {
		low, high, n := math.Inf(1), math.Inf(-1), 0
		for _, q := range s.Points {
			if q.real() {
				low, high, n = min(low, q.Y), max(high, q.Y), n+1
			}
		}
		if n > 0 {
			text += fmt.Sprintf(" %s: %d values from %s to %s.", s.Name, n, Number(low), Number(high))
		}
	}
	for _, l := range p.Lines {
		text += fmt.Sprintf(" %s at %s.", l.Name, Number(l.X))
	}
	return text
}

func (p Plot) axes(b *strings.Builder, x, y *scale) {
	for _, t := range y.ticks {
		at := y.at(t)
		fmt.Fprintf(b, `<path class="grid" d="M%g %.1fH%g"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`, left, at, width-right, left-6,
			at+3.5, Number(t))
	}
	end := -1e9
	for _, t := range x.ticks {
		at, text := x.at(t), Number(t)
		half := float64(len(text)) * 3.2
		if at-half < end+6 {
			continue
		}
		end = at + half
		fmt.Fprintf(b, `<path class="axis" d="M%.1f %gv4"/><text x="%.1f" y="%g" text-anchor="middle">%s</text>`, at, height-bottom, at,
			height-bottom+16, text)
	}
	fmt.Fprintf(b, `<path class="axis" d="M%g %gH%g"/>`, left, height-bottom, width-right)
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`, (left+width-right)/2, height-6, html.EscapeString(p.X.Label))
	fmt.Fprintf(b, `<text x="4" y="12">%s</text>`, html.EscapeString(p.Y.Label))
}

// lines draws upright lines, the name of each in a row of its own above the plot.
func (p Plot) lines(b *strings.Builder, x *scale) {
	for row, l := range p.Lines {
		at, y := x.at(l.X), top+float64(row)*lineHeight
		half := float64(len(l.Name)) * 3.2
		middle := min(max(at, left+half), width-right-half)
		fmt.Fprintf(b, `<path class="mark" d="M%.1f %gV%g"/><text class="strong" x="%.1f" y="%g" text-anchor="middle">%s</text>`, at, y+3,
			height-bottom, middle, y, html.EscapeString(l.Name))
	}
}

func curve(b *strings.Builder, i int, s Series, x, y *scale) {
	fmt.Fprintf(b, `<path class="curve s%d" d="`, i%6)
	pen := "M"
	for _, q := range s.Points {
		if !q.real() {
			pen = "M"
			continue
		}
		fmt.Fprintf(b, "%s%.1f %.1f", pen, x.at(q.X), y.at(q.Y))
		pen = "L"
	}
	b.WriteString(`"/>`)
}

func bars(b *strings.Builder, i int, s Series, x, y *scale) {
	for _, q := range s.Points {
		if !q.real() || q.Y <= 0 {
			continue
		}
		from, to, head := x.at(q.X), x.at(q.X2), y.at(q.Y)
		head = min(head, y.from-1) // a single sample among many still shows
		fmt.Fprintf(b, `<path class="f%d" d="M%.2f %.1fV%.1fH%.2fV%.1fZ"><title>%s to %s: %s</title></path>`, i%6, from, y.from, head,
			max(from+0.8, to-0.6), y.from, Number(q.X), Number(q.X2), Number(q.Y))
	}
}

func dots(b *strings.Builder, i int, s Series, x, y *scale) {
	for _, q := range s.Points {
		if !q.real() {
			continue
		}
		cx, cy := x.at(q.X), y.at(q.Y)
		fmt.Fprintf(b, `<g><title>%s</title>`, html.EscapeString(q.Label))
		shape(b, i, cx, cy, Dots)
		b.WriteString("</g>")
		if q.Named {
			anchor, dx := "start", 7.0
			if cx > width*0.7 {
				anchor, dx = "end", -7
			}
			fmt.Fprintf(b, `<text class="strong" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, cx+dx, cy-6, anchor, html.EscapeString(q.Label))
		}
	}
}

// shape draws the mark of a series: circle, square, triangle or diamond.
func shape(b *strings.Builder, i int, x, y float64, kind Kind) {
	if kind == Bars {
		fmt.Fprintf(b, `<rect class="f%d" x="%.1f" y="%.1f" width="10" height="10"/>`, i%6, x-5, y-5)
		return
	}
	switch i % 4 {
	case 0:
		fmt.Fprintf(b, `<circle class="f%d" cx="%.1f" cy="%.1f" r="4"/>`, i%6, x, y)
	case 1:
		fmt.Fprintf(b, `<rect class="f%d" x="%.1f" y="%.1f" width="7.4" height="7.4"/>`, i%6, x-3.7, y-3.7)
	case 2:
		fmt.Fprintf(b, `<path class="f%d" d="M%.1f %.1fl4.6 8h-9.2z"/>`, i%6, x, y-4.8)
	default:
		fmt.Fprintf(b, `<path class="f%d" d="M%.1f %.1fl5 5l-5 5l-5 -5z"/>`, i%6, x, y-5)
	}
}
