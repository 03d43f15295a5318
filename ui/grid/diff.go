package grid

import (
	"strconv"
	"unicode/utf8"
)

const (
	shortGap  = 3 // unchanged cells that are written again rather than skipped
	longBlank = 8 // blank cells at the end of a row from which erasing the line is shorter
)

func appendRune(b []byte, r rune) []byte {
	if r < utf8.RuneSelf {
		return append(b, byte(r))
	}
	return utf8.AppendRune(b, r)
}

// AppendDiff appends what a terminal must be sent to turn shown into next; both have the same size. The cursor may be
// anywhere before and after, the look is plain before and after.
func AppendDiff(dst []byte, shown, next *Grid, looks []Look) []byte {
	p := pen{out: dst, looks: looks, look: Plain, x: -1}
	for y := range next.H {
		p.row(shown.Row(y), next.Row(y), y)
	}
	return AppendSGR(p.out, p.look, Plain)
}

// pen is the state of the terminal while a difference is written.
type pen struct {
	out   []byte
	looks []Look
	look  Look
	x, y  int // cursor; x is -1 while unknown
}

func (p *pen) row(shown, next []Cell, y int) {
	erase := len(next) // first cell of the blank end of the row that is worth erasing
	for erase > 0 && next[erase-1] == blank {
		erase--
	}
	for x := 0; x < len(next); x++ {
		if shown[x] == next[x] {
			continue
		}
		if x >= erase && changedBlanks(shown[x:]) >= longBlank {
			p.move(shown, next, x, y)
			p.style(Plain)
			p.out = append(p.out, "\x1b[K"...)
			return
		}
		if next[x].Tail {
			continue // drawn with its head, which differs too
		}
		p.move(shown, next, x, y)
		p.cell(next, x)
		if x+1 < len(next) && next[x+1].Tail {
			x++
		}
	}
}

func changedBlanks(shown []Cell) int {
	n := 0
	for _, c := range shown {
		if c != blank {
			n++
		}
	}
	return n
}

// move brings the cursor to (x, y), over a short gap by writing the cells between again.
func (p *pen) move(shown, next []Cell, x, y int) {
	gap := x - p.x
	switch {
	case p.x < 0 || p.y != y || gap < 0:
		p.out = append(p.out, "\x1b["...)
		p.out = strconv.AppendInt(p.out, int64(y+1), 10)
		p.out = append(p.out, ';')
		p.out = strconv.AppendInt(p.out, int64(x+1), 10)
		p.out = append(p.out, 'H')
	case gap == 0:
	case gap <= shortGap && p.plainGap(next[p.x:x]):
		for i := p.x; i < x; i++ {
			p.out = appendRune(p.out, next[i].Rune)
		}
	default:
		p.out = append(p.out, "\x1b["...)
		if gap > 1 {
			p.out = strconv.AppendInt(p.out, int64(gap), 10)
		}
		p.out = append(p.out, 'C')
	}
	p.x, p.y = x, y
}

// plainGap reports whether the cells of a gap can be written again without a change of look.
func (p *pen) plainGap(cells []Cell) bool {
	for _, c := range cells {
		if c.Tail || c.Rune >= utf8.RuneSelf || p.looks[c.Style] != p.look {
			return false
		}
	}
	return true
}

func (p *pen) style(l Look) {
	p.out = AppendSGR(p.out, p.look, l)
	p.look = l
}

// cell writes one cell. After the last column the cursor is unknown: terminals differ in when they wrap.
func (p *pen) cell(next []Cell, x int) {
	p.style(p.looks[next[x].Style])
	p.out = appendRune(p.out, next[x].Rune)
	p.x = x + 1
	if p.x < len(next) && next[p.x].Tail {
		p.x++
	}
	if p.x >= len(next) {
		p.x = -1
	}
}
