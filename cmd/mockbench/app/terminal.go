package app

import (
	"io"
	"os"

	"golang.org/x/term"

	"mockbench/ui/theme"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// terminalWidth returns the width of a terminal in cells, 0 if f is none.
func terminalWidth(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// colors returns the colours of the screen; nil is what the terminal can show.
func (p *program) colors() *theme.Colors {
	if !p.s.Screen.NoColor {
		return nil
	}
	none := theme.NoColor
	return &none
}

// afterScreen returns where the log goes once the terminal is back.
func (p *program) afterScreen() []io.Writer {
	out := []io.Writer{p.stderr}
	if p.logFile != nil {
		out = append(out, p.logFile)
	}
	return out
}
