package app

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"mockbench/engine/spawn"
)

// signalBurst is how long signals count as one with the first: timeout(1) and others signal a program and then the
// process group it is in, so that one wish arrives twice.
const signalBurst = time.Second

// interrupts are the signals that ask for the end of a run. The first one is delivered; those of the same burst belong
// to it. What comes later is delivered too, to cut the drain short, or ends the process at once when nobody waits for
// signals any more.
type interrupts struct {
	c        chan os.Signal
	released atomic.Bool
}

// watchInterrupts starts to watch, for as long as the process lives.
func watchInterrupts() *interrupts {
	i := &interrupts{c: make(chan os.Signal, 4)}
	got := make(chan os.Signal, 8)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	spawn.Go("signals", func() {
		var first time.Time
		for sig := range got {
			if time.Since(first) < signalBurst {
				continue
			}
			first = time.Now()
			switch {
			case i.released.Load():
				die(sig)
			default:
				i.again(sig)
			}
		}
	})
	return i
}

// again delivers a signal, unless that many wait already that one more says nothing new.
func (i *interrupts) again(sig os.Signal) {
	select {
	case i.c <- sig:
	default:
	}
}

// release leaves later signals to end the process at once, also if nobody reads what it writes.
func (i *interrupts) release() { i.released.Store(true) }
