package logs

import (
	"bytes"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"mockbench/engine/spawn"
)

// waiting is how many lines wait for a reader that has stopped reading, such as a pager or a terminal in copy mode.
const waiting = 1024

// Outlet is a writer that never makes its callers wait for what is behind it. Lines wait in a bounded queue; one that
// finds no room is dropped, and how many were is written when there is room again. It is safe for concurrent use.
type Outlet struct {
	w     io.Writer
	queue chan entry
	lost  atomic.Int64 // dropped and not told yet
}

// entry is a line, or the question whether all lines before it are written.
type entry struct {
	lost    int64 // how many lines before it were dropped
	line    []byte
	written chan<- struct{}
}

// NewOutlet starts an outlet to a writer.
func NewOutlet(w io.Writer) *Outlet {
	o := &Outlet{w: w, queue: make(chan entry, waiting)}
	spawn.Go("log outlet", o.run)
	return o
}

// Write queues one or more lines. It does not fail.
func (o *Outlet) Write(lines []byte) (int, error) {
	e := entry{line: bytes.Clone(lines), lost: o.lost.Swap(0)}
	select {
	case o.queue <- e:
	default:
		o.lost.Add(e.lost + 1)
	}
	return len(lines), nil
}

// Flush waits until what was written has gone out, but not longer than a limit.
func (o *Outlet) Flush(limit time.Duration) {
	written, late := make(chan struct{}), time.After(limit)
	e := entry{written: written, lost: o.lost.Swap(0)}
	select {
	case o.queue <- e:
	case <-late:
		o.lost.Add(e.lost)
		return
	}
	select {
	case <-written:
	case <-late:
	}
}

func (o *Outlet) run() {
	for e := range o.queue {
		if e.lost > 0 {
			fmt.Fprintf(o.w, "%d lines dropped, nobody read them\n", e.lost)
		}
		if e.written != nil {
			close(e.written)
			continue
		}
		o.w.Write(e.line) // a log that cannot be written has nowhere to say so
	}
}
