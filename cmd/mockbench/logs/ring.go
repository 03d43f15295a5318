package logs

import (
	"strings"
	"sync"
)

// Ring keeps the newest lines for the screen. The zero value keeps 500.
type Ring struct {
	mu    sync.Mutex
	lines []string
	next  int
}

const ringLines = 500

// Write implements io.Writer; a call is one line.
func (r *Ring) Write(p []byte) (int, error) {
	line := strings.TrimSuffix(string(p), "\n")
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < ringLines {
		r.lines = append(r.lines, line)
	} else {
		r.lines[r.next%ringLines] = line
	}
	r.next++
	return len(p), nil
}

// Lines returns the newest lines, oldest first, at most n.
func (r *Ring) Lines(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, len(r.lines))
	out := make([]string, 0, n)
	for i := r.next - n; i < r.next; i++ {
		out = append(out, r.lines[i%ringLines])
	}
	return out
}
