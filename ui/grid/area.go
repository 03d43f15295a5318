package grid

// Area is a rectangle of a grid to draw into. Coordinates are relative to it and everything outside is cut off.
type Area struct {
	g    *Grid
	rect Rect
}

// W returns the width in cells.
func (a Area) W() int { return a.rect.W }

// H returns the height in cells.
func (a Area) H() int { return a.rect.H }

// Sub returns the part of a that r, relative to a, covers.
func (a Area) Sub(r Rect) Area {
	x0, y0 := max(r.X, 0), max(r.Y, 0)
	x1, y1 := min(r.X+r.W, a.rect.W), min(r.Y+r.H, a.rect.H)
	return Area{a.g, Rect{a.rect.X + x0, a.rect.Y + y0, max(x1-x0, 0), max(y1-y0, 0)}}
}

// Rows returns n rows of a from y on.
func (a Area) Rows(y, n int) Area { return a.Sub(Rect{0, y, a.rect.W, n}) }

// Inset returns a without a border of dx columns and dy rows on each side.
func (a Area) Inset(dx, dy int) Area {
	return a.Sub(Rect{dx, dy, a.rect.W - 2*dx, a.rect.H - 2*dy})
}

// Set draws one rune that is one column wide.
func (a Area) Set(x, y int, r rune, s Style) {
	if x >= 0 && y >= 0 && x < a.rect.W && y < a.rect.H {
		a.g.set(a.rect.X+x, a.rect.Y+y, r, 1, s)
	}
}

// Restyle changes the style of a cell and keeps its rune.
func (a Area) Restyle(x, y int, s Style) {
	if x >= 0 && y >= 0 && x < a.rect.W && y < a.rect.H {
		row := a.g.Row(a.rect.Y + y)
		row[a.rect.X+x].Style = s
	}
}

// Text draws clean text from x on and returns the column after it. A rune that does not fit is left out.
func (a Area) Text(x, y int, text string, s Style) int {
	if y < 0 || y >= a.rect.H {
		return x + Width(text)
	}
	for _, r := range text {
		w := runeWidth(r)
		if w == 0 {
			continue
		}
		if x >= 0 && x+w <= a.rect.W {
			a.g.set(a.rect.X+x, a.rect.Y+y, r, w, s)
		}
		x += w
	}
	return x
}

// Bytes draws ASCII text from x on and returns the column after it.
func (a Area) Bytes(x, y int, text []byte, s Style) int {
	for _, b := range text {
		a.Set(x, y, rune(b), s)
		x++
	}
	return x
}

// Right draws text so that its last column is before end.
func (a Area) Right(end, y int, text string, s Style) {
	a.Text(end-Width(text), y, text, s)
}

// Fill draws the same rune over the whole area.
func (a Area) Fill(r rune, s Style) {
	for y := range a.rect.H {
		for x := range a.rect.W {
			a.Set(x, y, r, s)
		}
	}
}
