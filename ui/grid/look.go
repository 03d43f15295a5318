package grid

import "strconv"

// Default is the colour of the terminal itself.
const Default = -1

// Look is how a style appears: colours are palette indexes, or Default.
type Look struct {
	FG, BG        int16
	Bold, Reverse bool
}

// Plain is the look of style 0.
var Plain = Look{FG: Default, BG: Default}

// AppendSGR appends the escape sequence that turns look from into look to, nothing if they are equal. Indexes below
// 16 use the short codes, which terminals of 16 colours understand.
func AppendSGR(dst []byte, from, to Look) []byte {
	if from == to {
		return dst
	}
	dst = append(dst, "\x1b["...)
	if to == Plain {
		return append(dst, 'm')
	}
	if from.Bold != to.Bold {
		dst = appendSwitch(dst, to.Bold, "1;", "22;")
	}
	if from.Reverse != to.Reverse {
		dst = appendSwitch(dst, to.Reverse, "7;", "27;")
	}
	if from.FG != to.FG {
		dst = appendColour(dst, to.FG, 30)
	}
	if from.BG != to.BG {
		dst = appendColour(dst, to.BG, 40)
	}
	dst[len(dst)-1] = 'm'
	return dst
}

func appendSwitch(dst []byte, on bool, yes, no string) []byte {
	if on {
		return append(dst, yes...)
	}
	return append(dst, no...)
}

// appendColour appends one colour parameter and a semicolon; base is 30 for the foreground, 40 for the background.
func appendColour(dst []byte, colour int16, base int64) []byte {
	c := int64(colour)
	switch {
	case c < 0:
		c = base + 9
	case c < 8:
		c += base
	case c < 16:
		c += base + 60 - 8
	default:
		dst = strconv.AppendInt(dst, base+8, 10)
		dst = append(dst, ";5;"...)
	}
	return append(strconv.AppendInt(dst, c, 10), ';')
}

// ANSI returns the grid as text with escape sequences, one line a row, looks taken from the table.
func (g *Grid) ANSI(looks []Look) string {
	var b []byte
	for y := range g.H {
		if y > 0 {
			b = append(b, '\n')
		}
		row := g.Row(y)
		end := len(row)
		for end > 0 && row[end-1] == blank {
			end--
		}
		now := Plain
		for _, c := range row[:end] {
			if c.Tail {
				continue
			}
			b = AppendSGR(b, now, looks[c.Style])
			now = looks[c.Style]
			b = appendRune(b, c.Rune)
		}
		b = AppendSGR(b, now, Plain)
	}
	return string(b)
}
