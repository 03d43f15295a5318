// Package spawn is the one place that starts goroutines, so that a panic anywhere ends the program in an orderly way:
// the terminal is restored first, then the panic and its stack are printed.
package spawn

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
)

// ExitPanic is the exit status after a panic, the one the Go runtime itself uses.
const ExitPanic = 2

var crash struct {
	sync.Mutex
	handler func(report string)
}

// OnPanic sets what happens with the report of a panic: its goroutine, value and stack. The handler must not return;
// the default prints the report to stderr and exits with ExitPanic. It returns a function that restores the handler
// that was set before.
func OnPanic(handler func(report string)) (restore func()) {
	crash.Lock()
	defer crash.Unlock()
	before := crash.handler
	crash.handler = handler
	return func() {
		crash.Lock()
		defer crash.Unlock()
		crash.handler = before
	}
}

// Go runs f in a goroutine of its own. name appears in the report if f panics.
func Go(name string, f func()) {
	go func() {
		defer Recover(name)
		f()
	}()
}

// Recover reports a panic of the calling goroutine; it is deferred directly.
func Recover(name string) {
	value := recover()
	if value == nil {
		return
	}
	report := fmt.Sprintf("panic in %s: %v\n\n%s", name, value, debug.Stack())
	crash.Lock() // held for ever: the first panic is the one that is told
	if crash.handler != nil {
		crash.handler(report)
	}
	fmt.Fprintln(os.Stderr, report)
	os.Exit(ExitPanic)
}
