package grid

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// runeWidth returns the columns of a rune: 0, 1 or 2. It does not depend on the locale.
func runeWidth(r rune) int {
	if r >= ' ' && r < 0x300 || r >= 0x2500 && r < 0x25a0 {
		return 1
	}
	return min(ansi.StringWidth(string(r)), 2)
}

// Width returns the columns of clean text.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// Cut returns the longest beginning of clean text that fits w columns.
func Cut(s string, w int) string {
	n := 0
	for i, r := range s {
		n += runeWidth(r)
		if n > w {
			return s[:i]
		}
	}
	return s
}

// Clean returns text in which every rune is safe to draw: control characters, escapes, marks that change the writing
// direction, invalid bytes and runes that join their neighbours become '?'; combining marks are dropped.
func Clean(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == utf8.RuneError && n == 1, unicode.IsControl(r), unicode.Is(unicode.Cf, r), regionalIndicator(r),
			r == '\u2028', r == '\u2029':
			b.WriteByte('?')
		case runeWidth(r) == 0:
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// regionalIndicator reports the letters of flags, whose width terminals disagree about.
func regionalIndicator(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
