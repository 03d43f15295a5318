package flags

import "strings"

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
	best, near := "", len(word)/3+1
	for _, w := range words {
		if d := distance(strings.ToLower(word), w, near); d < near {
			best, near = w, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// distance counts the insertions, deletions and substitutions between two words.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			above := row[j]
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = min(diagonal, above, row[j-1]) + 1
			}
			diagonal, row[j] = above, cost
		}
	}
	return row[len(b)]
}
