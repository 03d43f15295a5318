package flags

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Fail reports an error in one line and returns its exit status: 2 for a *UsageError, which a hint precedes, the status that the
// error has of its own, else 1. program is the name of the program or of one of its commands.
func Fail(w io.Writer, program string, err error) int {
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(w, "usage: %s [flags] (--help lists all flags)\n%s: error: %s\n", program, program, Line(err))
		return 2
	}
	fmt.Fprintf(w, "error: %s\n", Line(err))
	if own := (interface{ ExitStatus() int })(nil); errors.As(err, &own) {
		return own.ExitStatus()
	}
	return 1
}

// Line returns the text of an error as one line that a terminal shows as it is: its lines are joined, and characters that
// do not print, which a file name may hold, are escaped.
func Line(err error) string {
	var b strings.Builder
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if b.Len() > 0 && line != "" {
			b.WriteString("; ")
		}
		for _, c := range line {
			if unicode.IsPrint(c) {
				b.WriteRune(c)
			} else {
				b.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
			}
		}
	}
	return b.String()
}
