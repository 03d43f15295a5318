package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Level says how bad a finding is.
type Level uint8

// Levels of findings.
const (
	OK      Level = iota // as it should be
	Note                 // worth knowing
	Warning              // may be meant so
	Problem              // something will not work
)

var levels = [...]string{"ok", "note", "warning", "problem"}

// Finding is one observation.
type Finding struct {
	Level   Level
	Subject string // a setting, a record, a worker
	Text    string
	Advice  string // what to do; empty if nothing
}

// Report collects findings.
type Report struct{ Findings []Finding }

func (r *Report) add(level Level, subject, advice, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{level, subject, fmt.Sprintf(format, args...), advice})
}

// Count returns how many findings have a level.
func (r *Report) Count(level Level) (n int) {
	for _, f := range r.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// Write writes the findings in the order they were made, and a line that sums them up.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-8s %s: %s\n", levels[f.Level], f.Subject, f.Text)
		if f.Advice != "" {
			fmt.Fprintf(&b, "         -> %s\n", f.Advice)
		}
	}
	fmt.Fprintf(&b, "%d problems, %d warnings\n", r.Count(Problem), r.Count(Warning))
	_, err := io.WriteString(w, b.String())
	return err
}
