package ui

import (
	"bytes"
	"sync"

	"mockbench/ui/grid"
)

const logLines = 200

// Log keeps the last lines of the program's log for the screen: while it is up nothing may be written to the terminal.
// It is an io.Writer and safe for concurrent use. The zero value is empty.
type Log struct {
	mu    sync.Mutex
	lines []string // ring once full
	next  int
	count uint64
	part  []byte // a line that has not ended
}

// Write takes whole or partial lines. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := append(l.part, p...)
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		l.add(grid.Clean(string(rest[:i])))
		rest = rest[i+1:]
	}
	l.part = append(l.part[:0], rest...)
	return len(p), nil
}

func (l *Log) add(line string) {
	l.count++
	if len(l.lines) < logLines {
		l.lines = append(l.lines, line)
		return
	}
	l.lines[l.next] = line
	l.next = (l.next + 1) % logLines
}

// Last appends the newest n lines to dst, oldest first, and returns how many lines there were in all.
func (l *Log) Last(dst []string, n int) ([]string, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, len(l.lines))
	for i := len(l.lines) - n; i < len(l.lines); i++ {
		dst = append(dst, l.lines[(l.next+i)%len(l.lines)])
	}
	return dst, l.count
}
