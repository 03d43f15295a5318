package flags

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// Names of files and joined errors must neither break an error into two lines nor reach the terminal as controls.
func TestFailWritesOneLine(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "a\x1b[31m\u202e.json", Err: fs.ErrNotExist}
	for _, c := range []struct {
		err    error
		want   string
		status int
	}{
		{missing, "error: open a\\x1b[31m\\u202e.json: file does not exist\n", 1},
		{fmt.Errorf("--report: %w", errors.Join(errors.New("disk full"), errors.New("not closed"))),
			"error: --report: disk full; not closed\n", 1},
		{errors.New("größer als 3 日"), "error: größer als 3 日\n", 1},
		{&UsageError{Text: "--fps: got \"\\n\"\r\n"}, "usage: p [flags] (--help lists all flags)\np: error: --fps: got \"\\n\"\n", 2},
	} {
		var b strings.Builder
		if status := Fail(&b, "p", c.err); status != c.status || b.String() != c.want {
			t.Errorf("got status %d, %q; want %d, %q", status, b.String(), c.status, c.want)
		}
	}
}
