package profiles

import "strings"

// About is what the comment at the head of a profile says to its reader.
type About struct {
	Title  string // what it shows
	LookAt string // where that is to be seen
	Change string // what to try next
}

// Notes reads the comment at the head of a profile: the first paragraph is the title, others begin with "Look at:" or
// "Change:".
func Notes(data []byte) About {
	var a About
	into := &a.Title
	for line := range strings.Lines(string(data)) {
		text, isComment := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !isComment {
			break
		}
		text = strings.TrimSpace(text)
		if rest, ok := strings.CutPrefix(text, "Look at:"); ok {
			into, text = &a.LookAt, strings.TrimSpace(rest)
		} else if rest, ok := strings.CutPrefix(text, "Change:"); ok {
			into, text = &a.Change, strings.TrimSpace(rest)
		}
		*into = strings.TrimSpace(*into + " " + text)
	}
	return a
}
