// Package bootstrap is the conversation by which a prefill worker hands the KV of a prompt over to a decode worker.
//
// The decode worker (destination) connects to the prefill worker (source), one TCP connection a request, and both find
// each other's request by its handoff id, whichever arrives first. The source coordinates: it lets its engine compute
// the prompt and hold the KV, asks the destination for room, waits for as long as the transfer is modelled to take,
// activates the destination and lets go of its own blocks. Whatever goes wrong on either side ends the session on both,
// and neither keeps blocks for it.
//
// A [Server] listens at a prefill worker, [Connect] is what a decode worker does, and a [Coordinator] is the decisions
// alone. Session times are wall time; the modelled transfer is simulated time.
package bootstrap

import (
	"context"
	"errors"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
)

// Local is the engine's side of a handoff; *live.Transfer is one.
type Local interface {
	Submit() error                                  // compute and hold the prompt, or ask for room for it
	Steps() <-chan live.Step                        // what came of it
	Activate() bool                                 // destination: the KV has arrived
	Release() bool                                  // source: the KV was taken
	Cancel() bool                                   // free everything
	Sleep(ctx context.Context, d engine.Time) error // simulated time
}

// Order says whether the prompt is computed before there is room for it at the destination, or after.
type Order string

const (
	SourceFirst      Order = "SourceFirst"
	DestinationFirst Order = "DestinationFirst"
)

// OrderOf returns the order in which an engine hands over.
func OrderOf(b engine.Backend) Order {
	if b == engine.SGLang {
		return DestinationFirst
	}
	return SourceFirst
}

// Limits of a conversation.
const (
	MaxFrame = 64 << 10 // bytes of payload

	defaultRendezvous = 30 * time.Second // for a connection to introduce itself, and for the other side to appear
	writeTimeout      = 10 * time.Second
	lingerTimeout     = time.Second // for the other side to read the last frame and close
	maxActions        = 16          // distinct actions a destination takes
)

// Texts that the other side or the client sees.
var (
	errMismatch     = errors.New("handoff participant identity or backend mismatch")
	errRendezvous   = errors.New("handoff participant rendezvous timed out")
	errRetired      = errors.New("handoff session is already active or retired")
	errDuplicate    = errors.New("duplicate destination participant")
	errLimit        = errors.New("handoff session limit reached")
	errLeftEarly    = errors.New("destination disconnected before rendezvous")
	errSourceEarly  = errors.New("source request was canceled before rendezvous")
	errShutdown     = errors.New("handoff manager is shutting down")
	errDisconnected = errors.New("destination disconnected")
	errOverloaded   = errors.New("destination overloaded")
	errTimeout      = errors.New("handoff session timed out")
	errSourceGone   = errors.New("source request was canceled")
	errStopping     = errors.New("mocker is shutting down")
	errCancelled    = errors.New("handoff canceled")
)

// ErrEnded is what the client of a decode worker is told when its handoff fails.
var ErrEnded = errors.New("destination handoff ended before completion")
