// Package ui is the screen: it reads pass records and figures, and sends commands such as pause and step.
//
// There is one model. Its panels are plain structs that draw into a cell grid; the layout is computed once for a size
// and gives named rectangles. State changes only in Update; what takes time (looking into a worker, fetching figures)
// runs beside it and comes back as a message.
package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/router"
	"mockbench/ui/feed"
	"mockbench/ui/knobs"
	"mockbench/ui/theme"
)

// Worker is what the screen asks of a worker; *live.Worker is one.
type Worker interface {
	Name() string
	Ranks() int
	Config() engine.Config
	Inspect(rank int, s *engine.Snapshot) error
	Block(rank int, n int32) (engine.BlockInfo, error)
	Tree(rank, limit int) (t engine.PrefixTree, ok bool, err error)
	CancelHead(rank int) (label string, ok bool)
	Step()
	Stalled() []live.Stall
	Slip() time.Duration
	InFlight() int

	Tune(t engine.Tuning) (wait func() error, err error)    // settings of the next pass
	Restart(c engine.Config) (wait func() error, err error) // another engine
	Hurry()                                                 // cancels what a restart waits for
	Restarting() bool
}

// Clock is the simulated time that all workers share; *live.Clock is one.
type Clock interface {
	Now() engine.Time
	Pause()
	Resume()
	Paused() bool
	Speed() float64
	SetSpeed(speed float64)
}

// Feed carries the pass records of one worker to the screen. It is a reader of the worker.
type Feed = feed.Feed

// NewFeed returns a feed for a worker with that many ranks.
func NewFeed(ranks int) *Feed { return feed.New(ranks) }

// Source is one worker and its records.
type Source struct {
	Worker Worker
	Feed   *Feed
}

// Status is the state of the connections.
type Status struct {
	Planes      string // for example "file > tcp > zmq"; empty: nothing outside listens
	Subscribers int    // of KV events
	Published   uint64 // messages handed to subscribers
	Dropped     uint64 // messages that a slow subscriber did not get
	LastError   string
}

// Figures are those of one latency over a window, in milliseconds of simulated time.
type Figures struct {
	Count         int
	P50, P90, P99 float64
	SLO           float64   // 0 = none
	Within        float64   // share of samples within the SLO, 0 to 1
	Bins          []float64 // histogram over equal steps
	BinWidth      float64   // milliseconds; the last bin holds everything beyond too
}

// Window is what the report says of the last seconds of the run.
type Window struct {
	Seconds               float64
	TTFT, ITL, E2E, Queue Figures
	Requests              int     // that ended in the window
	Goodput               float64 // share of requests within all SLOs, 0 to 1; NaN if there is none
}

// Side is one of two fleets under the same traffic.
type Side struct {
	Policy      router.Policy
	Window      Window            // the last seconds
	Counters    []router.Counters // of each worker
	Completed   int               // requests
	Preemptions int
}

// Routing is what the Routing panel asks of a placement policy; *router.Router is one.
type Routing interface {
	Recent(dst []router.Decision, n int) []router.Decision // newest first
	Counters(dst []router.Counters) []router.Counters      // of each worker
}

// Draining is how far a drain has come.
type Draining struct {
	Streams int // requests that have not ended
	Tokens  int // output tokens they still wait for; 0 if unknown
}

// Options say what the screen shows and where.
type Options struct {
	Model, Backend string
	Fleet          func() []Source // the workers there are now; must not block
	Clock          Clock
	NoDelay        bool                                               // workers do not sleep: the speed has no effect
	Status         func() Status                                      // nil: no line about connections
	Window         func() Window                                      // nil: no latencies
	Routing        Routing                                            // nil: no Routing panel
	Sides          func() [2]Side                                     // two fleets under the same traffic; nil: there is one
	SecondPolicy   func(router.Policy) error                          // changes the policy of the second one
	Load           Load                                               // nil: no built-in load
	Router         Router                                             // nil: no placement policy of our own
	Limits         Limits                                             // nil: no SLO limits
	Save           func(knobs.Setup) (what string, err error)         // nil: nothing can be saved
	Log            *Log                                               // nil: none
	Drain          func(ctx context.Context, progress func(Draining)) // nil: quit at once
	Crash          func(report string)                                // called with a panic after the terminal is back; may be nil
	Abandon        func()                                             // called before SIGQUIT ends the process, after the terminal is back; may be nil
	Signals        <-chan os.Signal                                   // those that ask for the end; nil: the screen watches for them

	Tape      Tape                    // a recording to show in place of a run; nil: none
	Report    func(w io.Writer) error // writes the report so far as JSON; nil: there is none
	ExportDir string                  // where the screen is exported to; empty: the current folder

	FPS        int // frames a second; 0 is 10
	NoMouse    bool
	Background string        // "light", "dark", or "auto" and "" for what the environment says
	Colors     *theme.Colors // nil: what the terminal shows
	ASCII      bool          // no glyphs outside ASCII
	Plain      bool          // let the terminal library draw: no difference writer
	ReadOnly   bool          // no key changes the run

	In, Out *os.File // nil: standard input and output
}

// Reasons why the screen ended.
var (
	ErrQuit       = errors.New("quit by the user")
	ErrSignal     = errors.New("ended by a signal")
	ErrNoTerminal = errors.New("no terminal to draw on")
	ErrTerminal   = errors.New("the terminal is gone or does not read")
)

// SignalError is the end by a signal; it is an ErrSignal.
type SignalError struct {
	Signal os.Signal
	Forced bool // a second signal or key cut the drain short
}

func (e *SignalError) Error() string { return fmt.Sprintf("ended by signal %v", e.Signal) }

// Unwrap makes it an ErrSignal.
func (e *SignalError) Unwrap() error { return ErrSignal }

func (o *Options) defaults() {
	if o.FPS <= 0 {
		o.FPS = 10
	}
	o.FPS = min(o.FPS, 60)
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.Fleet == nil {
		o.Fleet = func() []Source { return nil }
	}
	if o.Clock == nil {
		o.Clock = live.NewClock(1)
	}
}
