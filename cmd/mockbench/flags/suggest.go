package flags

import (
	"strings"

	"mockbench/profiles/suggest"
)

// unknownText says that a word belongs to no flag, and which flag may have been meant.
func unknownText(word string) string {
	if !strings.HasPrefix(word, "-") {
		return "unexpected argument " + word + ", all settings are flags"
	}
	name, _, _ := strings.Cut(word, "=")
	if !strings.HasPrefix(name, "--") {
		name = "-" + name
	}
	var visible []string
	for _, n := range spellingNames {
		if !spellings[n].flag.Hidden {
			visible = append(visible, n)
		}
	}
	return "unknown flag " + word + didYouMean(name, visible)
}

// didYouMean returns a hint with the nearest of the words, or nothing if none is near.
func didYouMean(word string, words []string) string {
	if near := suggest.Nearest(word, words); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}
