package term

import (
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"mockbench/engine/spawn"
)

// leave switches off everything the screen switches on: mouse reports, bracketed paste, synchronised update, the
// hidden cursor and the alternate screen. In this order, so that what follows appears on the main screen.
const leave = "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?2004l\x1b[?2026l\x1b[m\x1b[?25h\x1b[?1049l"

// leaveLimit is how long Restore waits for a terminal that does not read.
const leaveLimit = 200 * time.Millisecond

// Guard is the one owner of bringing the terminal back to the state in which it was found.
type Guard struct {
	files  []*os.File
	states []*term.State
	out    *os.File
	once   sync.Once
}

// NewGuard records the present state of the terminals in and out. Files that are no terminals are left alone.
func NewGuard(in, out *os.File) *Guard {
	g := &Guard{out: out}
	for _, f := range []*os.File{in, out} {
		if s, err := term.GetState(int(f.Fd())); err == nil {
			g.files, g.states = append(g.files, f), append(g.states, s)
		}
	}
	return g
}

// Restore leaves the alternate screen and brings back the line settings. Only the first call does something; it may
// come from any goroutine and does not wait long for a terminal that does not read.
func (g *Guard) Restore() {
	g.once.Do(func() {
		written := make(chan struct{})
		spawn.Go("terminal restore", func() {
			defer close(written)
			g.out.WriteString(leave)
		})
		select {
		case <-written:
		case <-time.After(leaveLimit):
		}
		g.settings()
	})
}

// Release says that the library has left the screen in order: only the line settings remain to be brought back.
func (g *Guard) Release() { g.once.Do(g.settings) }

func (g *Guard) settings() {
	for i, f := range g.files {
		_ = term.Restore(int(f.Fd()), g.states[i]) // the terminal may be gone
	}
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
