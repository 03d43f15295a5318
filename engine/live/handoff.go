package live

import (
	"context"

	"mockbench/engine"
)

// StepKind says how far a worker has come with its side of a handoff.
type StepKind uint8

const (
	Accepted StepKind = iota // the engine has the request
	Refused                  // the engine never takes it: Err says why
	Ready                    // source: the prompt's KV is complete and held; destination: room for it is set aside
	Lost                     // the request ended before it was Ready
)

// Step is one step of a worker's side of a handoff.
type Step struct {
	Kind   StepKind
	Tokens int // Ready, source: all tokens of the prompt; destination: those that must be transferred
	Err    error
}

// maxSteps is the most steps that a Transfer takes.
const maxSteps = 3

// Transfer is a request whose KV goes from a prefill worker (source) to a decode worker (destination), at one of them.
// The stream of a source ends with its token, while its KV is held until Release or Cancel. The stream of a destination
// begins after Activate. The prompt belongs to the worker until that end.
//
// Methods may be called by any goroutine but the worker's own.
type Transfer struct {
	*Stream
	steps  chan Step
	w      *Worker
	f      *flight
	id     engine.ID
	source bool

	// The worker's goroutine alone uses what follows.
	ready     bool
	since     engine.Time // when it became ready
	told      bool        // that the request will never be ready
	released  bool        // before its stream ended
	activated bool
}

// Source prepares the prefill side of a handoff; Submit starts it. Errors are those of Submit for a bad request.
func (w *Worker) Source(r Request, handoff engine.ID) (*Transfer, error) {
	return w.transfer(r, handoff, true)
}

// Destination prepares the decode side of a handoff; Submit asks for room for the prompt's KV. Errors are those of
// Submit for a bad request.
func (w *Worker) Destination(r Request, handoff engine.ID) (*Transfer, error) {
	return w.transfer(r, handoff, false)
}

func (w *Worker) transfer(r Request, handoff engine.ID, source bool) (*Transfer, error) {
	f, err := w.newFlight(r)
	if err != nil {
		return nil, err
	}
	w.mail.mu.Lock()
	w.choose(f)
	w.mail.mu.Unlock()
	f.transfer = &Transfer{Stream: f.stream, steps: make(chan Step, maxSteps), w: w, f: f, id: handoff, source: source}
	return f.transfer, nil
}

// Steps returns the channel of the steps, each of which comes at most once: after Submit Accepted or Refused, then Ready
// or Lost. A worker that ends says Lost, or nothing if the request was ready. The worker never waits for a reader.
func (t *Transfer) Steps() <-chan Step { return t.steps }

// Submit hands the request to the engine. A source is queued like any request; a destination waits for room, its tokens
// come only after Activate. It does not wait, and returns ErrClosed if the worker takes nothing more.
func (t *Transfer) Submit() error {
	if t.source {
		return t.w.enter(t.f, t.w.mail.work, func() { t.w.mail.submits = append(t.w.mail.submits, t.f) })
	}
	c := &call{f: func(d *driver) { d.reserve(t) }, done: make(chan struct{})}
	return t.w.enter(t.f, t.w.mail.urgent, func() { t.w.mail.letters.calls = append(t.w.mail.letters.calls, c) })
}

// Activate tells a destination that its KV has arrived and reports whether that set it to work. It waits for the
// worker, which answers at once, also in the middle of a pass.
func (t *Transfer) Activate() bool {
	return t.do(false, func(d *driver) bool { return d.activate(t) })
}

// Release lets go of the KV that a source holds and reports whether there was any to let go of, now or when it will be
// complete. It waits for the worker, which answers at once.
func (t *Transfer) Release() bool { return t.do(false, func(d *driver) bool { return d.release(t) }) }

// Cancel gives the handoff up, wherever it is, and reports whether there was anything to give up. It waits for the
// worker: a destination goes at once, a source when the running pass has ended, so that a token which is already
// computed still reaches the stream. (Stream.Cancel does not wait for it.)
func (t *Transfer) Cancel() bool {
	return t.w.drop(t.f) || t.do(t.source, func(d *driver) bool { return d.withdraw(t) })
}

// Sleep waits for some simulated time, or until ctx ends.
func (t *Transfer) Sleep(ctx context.Context, d engine.Time) error { return t.w.Sleep(ctx, d) }

// do runs f in the driver and returns its answer, false if the worker has ended.
func (t *Transfer) do(atEnd bool, f func(*driver) bool) (applied bool) {
	c := &call{f: func(d *driver) { applied = f(d) }, atEnd: atEnd, done: make(chan struct{})}
	return t.w.ask(c) == nil && applied
}

// Hold is a handoff whose worker has done its part and waits for the other one.
type Hold struct {
	Handoff engine.ID
	Request string // label
	Rank    int
	Source  bool
	Since   engine.Time
}

// Holds returns the handoffs that keep blocks without working on them, in no order.
func (w *Worker) Holds() (list []Hold) {
	c := &call{done: make(chan struct{}), f: func(d *driver) {
		for id, t := range d.transfers {
			if t.ready && !t.activated {
				list = append(list, Hold{Handoff: id, Request: t.f.request.Label, Rank: t.Rank, Source: t.source, Since: t.since})
			}
		}
	}}
	if w.ask(c) != nil {
		return nil
	}
	return list
}
