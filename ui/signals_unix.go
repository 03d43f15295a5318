//go:build unix

package ui

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine/spawn"
	"mockbench/ui/term"
)

// flushLimit is how long a suspension waits for the terminal.
const flushLimit = 300 * time.Millisecond

// dumping are the signals on which the runtime prints all stacks and ends the process. The terminal goes back before.
var dumping = []os.Signal{syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS, syscall.SIGBUS,
	syscall.SIGFPE, syscall.SIGSEGV}

// watchSignals turns signals into messages until done is closed: those that ask for the end come from o.Signals, if that
// is given. o.Abandon, if not nil, is called before the process ends by a signal that does not wait for a drain.
func watchSignals(p *tea.Program, guard *term.Guard, w *term.Writer, o *Options, done <-chan struct{}) {
	got := make(chan os.Signal, 8)
	signal.Notify(got, syscall.SIGTSTP, syscall.SIGCONT)
	signal.Notify(got, dumping...)
	if o.Signals == nil {
		signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	}
	spawn.Go("screen signals", func() {
		defer signal.Stop(got)
		for {
			select {
			case <-done:
				return
			case s := <-o.Signals:
				p.Send(SignalMsg{s})
			case s := <-got:
				switch s {
				case syscall.SIGTSTP:
					suspend(p, w, got)
				case syscall.SIGCONT: // stopped by a signal that cannot be caught: the shell has changed the line settings
					_ = p.ReleaseTerminal()
					restore(p)
				case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP:
					p.Send(SignalMsg{s})
				default:
					w.Abandon()
					guard.Restore()
					if o.Abandon != nil {
						o.Abandon()
					}
					signal.Reset(s)
					_ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) // the runtime prints all stacks
				}
			}
		}
	})
}

// suspend gives the terminal back, stops the process, and takes the terminal again when it is continued.
func suspend(p *tea.Program, w *term.Writer, got <-chan os.Signal) {
	if p.ReleaseTerminal() != nil {
		return
	}
	w.Flush(flushLimit)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	// Running again. The stop takes effect at some moment after the call, so the signal of the continuation is awaited.
	for s := range got {
		if s == syscall.SIGCONT {
			break
		}
		p.Send(SignalMsg{s})
	}
	restore(p)
}

func restore(p *tea.Program) {
	_ = p.RestoreTerminal()
	p.Send(RedrawMsg{})
}

// suspendSelf asks for what Ctrl-Z does in programs that do not read keys one by one.
func suspendSelf() tea.Msg {
	_ = syscall.Kill(os.Getpid(), syscall.SIGTSTP)
	return nil
}
