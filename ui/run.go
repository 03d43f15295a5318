package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine/spawn"
	"mockbench/ui/term"
	"mockbench/ui/term/quiet"
	"mockbench/ui/theme"
)

// stopLimit is how long the end waits for a terminal that does not read.
const stopLimit = time.Second

// Run shows the screen until the user quits, a signal comes or ctx ends, and returns why: ErrQuit, a *SignalError
// (which is an ErrSignal), the error of ctx, or ErrTerminal if the terminal has gone. It returns ErrNoTerminal at once
// if there is none. For the first two the drain has been done. The terminal is as before when it returns. If it did not
// take in what it was sent, the error is an ErrTerminal too: whoever writes to it then may wait for ever.
//
// While it runs it owns the signals INT, TERM, HUP, QUIT, TSTP and CONT and the handler of panics.
func Run(ctx context.Context, o Options) error {
	quiet.Restore()
	o.defaults()
	if !Available(o.In, o.Out) {
		return ErrNoTerminal
	}
	can := o.abilities(os.Getenv)
	guard := term.NewGuard(o.In, o.Out)
	th := theme.New(can.Colors, can.Light, can.Unicode)
	m := New(o, th)
	p, w := newProgram(m, o, can)
	defer spawn.OnPanic(func(report string) { crash(o, guard, w, report) })()
	defer spawn.Recover("screen")
	done := make(chan struct{})
	defer close(done)
	watchSignals(p, guard, w, &o, done)
	spawn.Go("screen end", func() {
		select {
		case <-ctx.Done():
			p.Send(failedMsg{ctx.Err()})
		case <-done:
		}
	})

	_, err := p.Run()
	if m.drain.cancel != nil {
		m.drain.cancel()
	}
	reason := m.drain.reason
	if reason == nil && err != nil {
		reason = fmt.Errorf("%w: %w", ErrTerminal, err)
	}
	if !w.Stop(stopLimit) {
		guard.Restore()
		return errors.Join(reason, ErrTerminal)
	}
	guard.Release()
	return reason
}

// Available reports whether a screen can be drawn: both files are terminals, and TERM names one that can move its
// cursor.
func Available(in, out *os.File) bool {
	quiet.Restore()
	return term.IsTerminal(in) && term.IsTerminal(out) && term.Usable(os.Getenv)
}

// abilities returns what the terminal can show after the options have had their say.
func (o *Options) abilities(env term.Env) term.Abilities {
	can := term.Detect(env)
	if o.Colors != nil {
		can.Colors = *o.Colors
	}
	switch o.Background {
	case "light":
		can.Light = true
	case "dark":
		can.Light = false
	}
	can.Unicode = can.Unicode && !o.ASCII
	can.Mouse = can.Mouse && !o.NoMouse
	return can
}

// newProgram joins the model, the terminal library and the writer.
func newProgram(m *Model, o Options, can term.Abilities) (*tea.Program, *term.Writer) {
	var p *tea.Program
	ready := make(chan struct{})
	w := term.NewWriter(o.Out, m.theme.Looks, func(err error) {
		<-ready
		p.Send(failedMsg{fmt.Errorf("%w: %w", ErrTerminal, err)})
	})
	options := []tea.ProgramOption{tea.WithInput(o.In), tea.WithAltScreen(), tea.WithoutSignalHandler(),
		tea.WithoutCatchPanics(), tea.WithFPS(2 * o.FPS), tea.WithFilter(Filter)}
	if can.Mouse {
		options = append(options, tea.WithMouseCellMotion())
	} else {
		m.o.NoMouse = true
	}
	if o.Plain {
		w.PassFrames()
	} else {
		m.Attach(w)
	}
	p = tea.NewProgram(m, append(options, tea.WithOutput(w))...)
	close(ready)
	return p, w
}

// crash ends the process after a panic: the terminal first, then the report on its main screen.
func crash(o Options, guard *term.Guard, w *term.Writer, report string) {
	w.Abandon()
	guard.Restore()
	fmt.Fprintln(os.Stderr, report)
	if o.Crash != nil {
		o.Crash(report)
	}
	os.Exit(spawn.ExitPanic)
}

// cutMouse matches what is left of a mouse report that was cut in two by a read.
var cutMouse = regexp.MustCompile(`^\[?<?[0-9;]*[Mm]?$`)

// Filter drops messages that are not what they seem: parts of mouse reports that arrive as keys when many come at
// once, and motion.
func Filter(screen tea.Model, msg tea.Msg) tea.Msg {
	switch msg := msg.(type) {
	case tea.KeyMsg:
		if msg.Type != tea.KeyRunes || msg.Paste {
			return msg
		}
		text := string(msg.Runes)
		longest := 3
		if m, ok := screen.(*Model); ok && m.typing() {
			longest = 20 // a number
		}
		if msg.Alt && text == "[" || len(text) > 1 && cutMouse.MatchString(text) && !digits(text, longest) {
			return nil
		}
	case tea.MouseMsg:
		if msg.Action == tea.MouseActionMotion {
			return nil
		}
	}
	return msg
}

// digits reports text that was typed fast rather than cut from a report: digits, not too many.
func digits(text string, longest int) bool {
	for _, r := range text {
		if r < '0' || r > '9' {
			return false
		}
	}
	return len(text) <= longest
}
