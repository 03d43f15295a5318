package widget

import "mockbench/ui/grid"

// Column is one column of a table. Right columns are aligned to their right edge. A column with a Weight takes a share
// of the width that is left over.
type Column struct {
	Title  string
	Width  int
	Right  bool
	Weight int
}

// Table is a list of rows under headings. It draws only the rows it is asked for.
type Table struct {
	Columns         []Column
	Heading, Normal grid.Style
}

// Fit returns the columns that a width holds, leaving out columns from the right, with weighted columns widened.
func Fit(columns []Column, width int) []Column {
	used, n, weights := 0, 0, 0
	for _, c := range columns {
		if used+c.Width > width {
			break
		}
		used += c.Width + 1
		weights += c.Weight
		n++
	}
	out := append([]Column(nil), columns[:n]...)
	left := width - used + 1
	for i := range out {
		if out[i].Weight > 0 && left > 0 {
			extra := left * out[i].Weight / weights
			weights -= out[i].Weight
			left -= extra
			out[i].Width += extra
		}
	}
	return out
}

// Head draws the headings into the first row of a.
func (t Table) Head(a grid.Area) {
	x := 0
	for _, c := range t.Columns {
		t.put(a, x, 0, c, c.Title, t.Heading)
		x += c.Width + 1
	}
}

// Row draws one row of texts at line y of a. More texts than columns are left out.
func (t Table) Row(a grid.Area, y int, s grid.Style, cells ...string) {
	x := 0
	for i, c := range t.Columns {
		if i >= len(cells) {
			return
		}
		t.put(a, x, y, c, cells[i], s)
		x += c.Width + 1
	}
}

func (t Table) put(a grid.Area, x, y int, c Column, text string, s grid.Style) {
	text = grid.Cut(text, c.Width)
	if c.Right {
		x += c.Width - grid.Width(text)
	}
	a.Text(x, y, text, s)
}

// Window returns the first of rows visible rows such that the selected one of n is among them, starting from the
// present first row. Without rows it is 0.
func Window(first, selected, rows, n int) int {
	if rows <= 0 || n <= rows {
		return 0
	}
	first = min(max(first, selected-rows+1), selected)
	return min(max(first, 0), n-rows)
}
