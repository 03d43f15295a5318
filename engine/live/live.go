// Package live drives engines on the wall clock: for a real frontend, for the built-in load and for the screen.
//
// A [Clock] maps wall time to simulated time for all workers of the process; it can be paused, and its speed changed,
// while they run. A [Worker] is one goroutine that owns the ranks of one simulated worker: it starts passes, sleeps to
// their modelled ends, hands records to readers and tokens to streams.
//
// A pass starts at the modelled end of the one before, even if the goroutine woke up late, but never more than 5 ms
// of wall time in the past: lateness up to that is made up for, more is lost and counted as slip. Between passes the
// worker applies cancellations, then the requests that are queued at that moment. During a pass it applies
// cancellations at once and leaves new requests for the end.
package live

import (
	"errors"
	"time"

	"mockbench/engine"
)

// ErrClosed is returned by a worker that takes nothing more: it is draining, was closed or has failed.
var ErrClosed = errors.New("worker is closed")

// Options configure a Worker.
type Options struct {
	Name    string        // shown to people, for example "w0"
	Index   int           // number of the worker in the process; request ids derive from it
	Engine  engine.Config // with seeds of the worker's own
	Ranks   int           // data-parallel size
	Seed    uint64        // request ids derive from it
	Clock   *Clock
	NoDelay bool            // do not sleep for modelled time
	Startup time.Duration   // wall time before the first pass; requests wait
	Readers []engine.Reader // called in order by the worker's goroutine; must not block
	Stalled func(Stall)     // called once a stall, by the worker's goroutine; may be nil

	// Changed is called by the worker's goroutine when other settings have come into force; may be nil. It must not block.
	Changed func(engine.Config)
}

// Stall is a rank that cannot make progress by itself: its head request needs more than the configuration can give, or
// it waits for handoffs.
type Stall struct {
	Worker string
	Rank   int
	Hint   engine.Hint
}

// Waits reports that the rank will go on by itself, when a handoff is done: that is no fault of the configuration.
func (s *Stall) Waits() bool { return s.Hint.Kind == engine.HintHandoff }

// LoadReader is a Reader that also wants the load of a rank whenever it may have changed: after every pass, behind the
// outputs of all ranks, and after commands between passes. It is called by the worker's goroutine and must not block.
type LoadReader interface {
	Load(rank int, now engine.Time, l engine.Load)
}

// RequestReader is a Reader that also wants to know of requests that come in and of those that go without a word in a
// record. It is called by the worker's goroutine and must not block.
type RequestReader interface {
	// Submitted tells that a request entered the queue of a rank.
	Submitted(rank int, r *engine.Request, now engine.Time)

	// Cancelled tells that a request left its rank before its end.
	Cancelled(rank int, r *engine.Request, now engine.Time)
}

// HandoffReader is a RequestReader that also wants to know when the KV of a request has arrived at a decode worker.
type HandoffReader interface {
	Activated(rank int, r *engine.Request, now engine.Time)
}
