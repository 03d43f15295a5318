package engine

import "mockbench/kv"

// Scheduler is the state machine of one rank. It is not safe for concurrent use: one driver owns it.
//
// A pass has two moments. Plan, at its start, decides everything and already changes the state; Commit, at its end,
// makes outputs and events visible. Cancel may come between the two, Submit may not.
type Scheduler interface {
	// Submit queues a request. It returns ErrActive (wrapped) if the id is still owned, and never rejects for size: a
	// pass does that when it looks at the request.
	Submit(r *Request, now Time) error

	// Cancel takes a request out at once and frees its blocks. With discard, an output of it that the running pass
	// holds back is dropped even if the scheduler no longer owns the request.
	Cancel(id ID, now Time, discard bool) CancelResult

	// Ready reports whether a pass may start.
	Ready() bool

	// Plan starts a pass. step counts the passes of the group since it was last drained.
	Plan(now Time, step uint64) *Pass

	// Commit ends the pass at the group's end and returns its record, now complete.
	Commit(end Time) *Pass

	// Idle returns the record of a group pass in which this rank did not run.
	Idle(start, end Time) *Pass

	// Deadline returns the time of the next internal event (a host transfer), if there is one.
	Deadline() (Time, bool)

	// Advance processes internal events up to now. The record carries only events and transfers; nil if nothing happened.
	Advance(now Time) *Pass

	// Drained reports that the rank owns nothing and nothing is in flight.
	Drained() bool

	Load() Load
	Inspect(s *Snapshot)
	Block(n int32) BlockInfo
}

// CancelResult says what a cancellation did. Its slices belong to the scheduler and are valid until its next command or
// pass.
type CancelResult struct {
	Applied    bool // the scheduler owned the request and let go of it
	Suppressed bool // an output of the running pass was dropped
	Retired    bool // the request ended here although its last token was already in the running pass

	Steps     []Handoff  // transfers that became ready through the command itself
	Transfers []Transfer // host transfers that the command withdrew or, between passes, completed
	Events    *kv.Events // KV events of a command between passes, nil if none; those of a command during a pass come with it
}
