package modelcard

import (
	"strings"
	"unicode"
)

// Slug returns the form of a model name that paths and topics use: lower case, every character but a-z, 0-9, - and _
// becomes _, leading ones are dropped.
func Slug(name string) string {
	var b strings.Builder
	for _, r := range lower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	return strings.TrimLeft(b.String(), "_")
}

// lower is full Unicode lower case: one letter has two characters in lower case.
func lower(s string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		if r == 'İ' {
			return r
		}
		return unicode.ToLower(r)
	}, s), "İ", "i̇")
}
