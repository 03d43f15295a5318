package grid

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Size of a cell of a picture, and of its letters, in pixels.
const (
	cellWidth, cellHeight = 8.4, 17
	fontSize, baseline    = 14, 13
)

// SVG returns the grid as a picture: a rectangle for each run of cells with a background, a text for each run of one
// look. paper and ink are what the default colours of the terminal become, as palette indexes.
func (g *Grid) SVG(looks []Look, paper, ink int16) string {
	var b strings.Builder
	w, h := float64(g.W)*cellWidth, g.H*cellHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" `, w, h, w, h)
	fmt.Fprintf(&b, `font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="%d">`+"\n", fontSize)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", rgb(paper))
	for y := range g.H {
		row := g.Row(y)
		for x := 0; x < len(row); {
			end := x + 1
			for end < len(row) && row[end].Style == row[x].Style {
				end++
			}
			run(&b, x, y, row[x:end], looks[row[x].Style].on(paper, ink))
			x = end
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// painted is a look of which both colours are known.
type painted struct {
	Look
	filled bool // the background is not that of the picture
}

// on returns the look with colours in place of the terminal's own.
func (l Look) on(paper, ink int16) (out painted) {
	out.Look, out.filled = l, l.BG >= 0 || l.Reverse
	if l.FG < 0 {
		out.FG = ink
	}
	if l.BG < 0 {
		out.BG = paper
	}
	if l.Reverse {
		out.FG, out.BG = out.BG, out.FG
	}
	return out
}

// run draws cells of one look.
func run(b *strings.Builder, x, y int, cells []Cell, l painted) {
	left, width := float64(x)*cellWidth, float64(len(cells))*cellWidth
	if l.filled {
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n",
			left, y*cellHeight, width, cellHeight, rgb(l.BG))
	}
	var text strings.Builder
	for _, c := range cells {
		if !c.Tail {
			text.WriteRune(c.Rune)
		}
	}
	if strings.TrimSpace(text.String()) == "" {
		return
	}
	weight := ""
	if l.Bold {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d" fill="%s"%s xml:space="preserve" textLength="%.1f">`,
		left, y*cellHeight+baseline, rgb(l.FG), weight, width)
	_ = xml.EscapeText(b, []byte(text.String())) // a strings.Builder never fails
	b.WriteString("</text>\n")
}

// basic are the first sixteen colours of the palette, which terminals choose for themselves.
var basic = [16]string{"#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5",
	"#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff"}

// rgb returns a colour of the 256-colour palette as terminals agree on it: a cube of six levels, then greys.
func rgb(index int16) string {
	switch {
	case index < 16:
		return basic[max(index, 0)]
	case index < 232:
		n := int(index) - 16
		level := func(v int) int {
			if v == 0 {
				return 0
			}
			return 55 + 40*v
		}
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	}
	grey := 8 + 10*(int(index)-232)
	return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
}
