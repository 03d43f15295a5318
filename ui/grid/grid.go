// Package grid is a screen as cells: one rune and one style index a cell.
//
// Panels draw into an [Area] of a [Grid]; how a style index looks on a terminal is a table of [Look] values that only
// the writer of the grid needs. Coordinates start at 0 in the upper left corner.
package grid

import "strings"

// Style is an index into a table of looks. 0 is the terminal's default look.
type Style uint8

// Cell is one character of the screen. A rune of two columns occupies its cell and the tail to its right.
type Cell struct {
	Rune  rune
	Style Style
	Tail  bool // right half of the wide rune to the left; Rune is 0
}

var blank = Cell{Rune: ' '}

// Rect is a rectangle of cells.
type Rect struct{ X, Y, W, H int }

// Contains reports whether the cell at (x, y) lies in r.
func (r Rect) Contains(x, y int) bool {
	return x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H
}

// Grid is W x H cells, row after row. The zero value is empty; Resize makes room.
type Grid struct {
	W, H  int
	Cells []Cell
}

// New returns a blank grid.
func New(w, h int) *Grid {
	g := &Grid{}
	g.Resize(w, h)
	return g
}

// Resize changes the size and blanks the grid. Negative sizes count as 0.
func (g *Grid) Resize(w, h int) {
	g.W, g.H = max(w, 0), max(h, 0)
	n := g.W * g.H
	if cap(g.Cells) < n {
		g.Cells = make([]Cell, n)
	}
	g.Cells = g.Cells[:n]
	g.Clear()
}

// Clear blanks every cell.
func (g *Grid) Clear() {
	for i := range g.Cells {
		g.Cells[i] = blank
	}
}

// CopyFrom makes g equal to o, reusing g's buffer.
func (g *Grid) CopyFrom(o *Grid) {
	g.W, g.H = o.W, o.H
	g.Cells = append(g.Cells[:0], o.Cells...)
}

// Row returns the cells of one row.
func (g *Grid) Row(y int) []Cell { return g.Cells[y*g.W : (y+1)*g.W] }

// Area returns the whole grid as a drawing area.
func (g *Grid) Area() Area { return Area{g, Rect{0, 0, g.W, g.H}} }

// set draws one rune of w columns at a cell of the grid, and blanks the other half of any wide rune it cuts.
func (g *Grid) set(x, y int, r rune, w int, s Style) {
	row := g.Row(y)
	cut := func(x int) {
		if row[x].Tail {
			row[x-1] = Cell{Rune: ' ', Style: row[x-1].Style}
		} else if x+1 < g.W && row[x+1].Tail {
			row[x+1] = Cell{Rune: ' ', Style: row[x+1].Style}
		}
	}
	cut(x)
	row[x] = Cell{Rune: r, Style: s}
	if w == 2 {
		cut(x + 1)
		row[x+1] = Cell{Style: s, Tail: true}
	}
}

// String returns the text of the grid, one line a row, without trailing blanks and without styles.
func (g *Grid) String() string {
	var b strings.Builder
	for y := range g.H {
		if y > 0 {
			b.WriteByte('\n')
		}
		row := g.Row(y)
		end := len(row)
		for end > 0 && row[end-1].Rune == ' ' {
			end--
		}
		for _, c := range row[:end] {
			if !c.Tail {
				b.WriteRune(c.Rune)
			}
		}
	}
	return b.String()
}
