//go:build !unix

package ui

import (
	"os"
	"os/signal"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine/spawn"
	"mockbench/ui/term"
)

// watchSignals turns an interrupt, or what o.Signals brings, into a message until done is closed.
func watchSignals(p *tea.Program, _ *term.Guard, _ *term.Writer, o *Options, done <-chan struct{}) {
	got := make(chan os.Signal, 8)
	if o.Signals == nil {
		signal.Notify(got, os.Interrupt)
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
				p.Send(SignalMsg{s})
			}
		}
	})
}

// suspendSelf does nothing: there is no shell to return to.
func suspendSelf() tea.Msg { return nil }
