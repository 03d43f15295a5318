// Package live drives engines on the wall clock: for a real frontend, for the built-in load and for the screen.
//
// A [Clock] maps wall time to simulated time for all workers of the process; it can be paused, and its speed changed,
// while they run. A [Worker] is one goroutine that owns the ranks of one simulated worker: it starts passes, sleeps to
// their modelled ends, hands records to readers and tokens to streams.
package live

import (
	"time"

	"mockbench/engine"
)

// Options configure a Worker.
type Options struct {
	Name    string // shown to people, for example "w0"
	Index   int    // number of the worker in the process; shifts its seeds
	Engine  engine.Config
	Ranks   int    // data-parallel size
	Seed    uint64 // request ids derive from it
	Clock   *Clock
	NoDelay bool // do not sleep for modelled time
	Startup time.Duration
	Readers []engine.Reader // called in order by the worker's goroutine; must not block
	Stalled func(Stall)     // called once a stall, by the worker's goroutine; may be nil
}

// Stall is a rank that cannot make progress: its head request needs more than the configuration can give.
type Stall struct {
	Worker string
	Rank   int
	Hint   engine.Hint
}
