// Package suggest finds the word that was meant by one that does not exist.
package suggest

import "strings"

// Nearest returns the word with the fewest differing letters, if they are few for its length, else nothing. Case counts
// not, and a dash is an underscore.
func Nearest(word string, words []string) string {
	plain := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	best, near := "", len(word)/3+1
	for _, w := range words {
		if d := distance(plain, strings.ReplaceAll(strings.ToLower(w), "-", "_"), near); d < near {
			best, near = w, d
		}
	}
	return best
}

// distance counts the insertions, deletions and substitutions between two words, up to a limit.
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
