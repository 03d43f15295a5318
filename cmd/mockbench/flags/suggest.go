package flags

import (
	"fmt"
	"regexp"
	"strings"

	"mockbench/profiles/suggest"
)

// leftOver is a word that belongs to nothing.
type leftOver struct {
	word  string
	after Value // the flag before it; Flag is nil if there is none
}

func (r *reader) leave(word string) { r.left = append(r.left, leftOver{word, r.last}) }

// text says what may have been meant.
func (l leftOver) text() string {
	start := "unexpected argument " + l.word
	switch f := l.after.Flag; {
	case strings.HasPrefix(l.word, "-") && len(l.word) > 1:
		return unknownText(l.word)
	case f == nil:
		return start + ", all settings are flags"
	case f.Kind != Switch:
		return fmt.Sprintf("%s after %s %s, a value has no spaces and a list has commas", start, l.after.Spelling, l.after.Text)
	case len(f.Off) > 0 && l.after.On:
		return fmt.Sprintf("%s after %s, which takes no value; its opposite is %s", start, l.after.Spelling, f.Off[0])
	}
	return fmt.Sprintf("%s after %s, which takes no value", start, l.after.Spelling)
}

var withUnit = regexp.MustCompile(`^[0-9][0-9._]* *[A-Za-z%]+$`)

// what says of what a flag takes a number, to somebody who gave it a unit.
func (f *Flag) what(given string) string {
	if !withUnit.MatchString(given) {
		return ""
	}
	return ", without a unit; the flag is: " + strings.TrimSuffix(f.Help, ".")
}

// unknownText says that a word is no flag, and which flag may have been meant.
func unknownText(word string) string {
	name, _, _ := strings.Cut(word, "=")
	dashes := ""
	if !strings.HasPrefix(name, "--") {
		name, dashes = "-"+name, ", flags start with two dashes"
	}
	var visible []string
	for _, n := range spellingNames {
		if !spellings[n].flag.Hidden {
			visible = append(visible, n)
		}
	}
	if hint := didYouMean(name, visible); hint != "" || dashes == "" {
		return "unknown flag " + word + hint
	}
	return "unknown flag " + word + dashes
}

// didYouMean returns a hint with the nearest of the words, or nothing if none is near.
func didYouMean(word string, words []string) string {
	if near := suggest.Nearest(word, words); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}
