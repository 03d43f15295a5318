package engine

// HandoffKind says which side of a transfer is ready.
type HandoffKind uint8

const (
	SourceHeld          HandoffKind = iota // prefill rank: the prompt's KV is complete and held
	DestinationReserved                    // decode rank: room for the prompt's KV is set aside
)

// Handoff is one step in the transfer of a request's KV from a prefill rank (source) to a decode rank (destination).
type Handoff struct {
	Kind    HandoffKind
	ID      ID
	Request *Request
	Tokens  int // SourceHeld: all prompt tokens; DestinationReserved: prompt tokens that must be transferred
}

// CommandResult says what a handoff command did.
type CommandResult struct {
	CancelResult
	Request *Request // the request that was retired, if Retired
}

// Disaggregated is what a scheduler offers to prefill and decode workers. Steps that a pass completes are in
// Pass.Handoffs. All commands may come during a pass, SubmitSource and Reserve excepted.
type Disaggregated interface {
	// SubmitSource queues a request whose KV is held after its last token until the handoff is released.
	SubmitSource(r *Request, handoff ID, now Time) error

	// Reserve queues for room for the request's whole prompt, or says why there can never be any.
	Reserve(r *Request, handoff ID, now Time) (CommandResult, error)

	// Activate puts a reserved request to work: its prompt's KV has arrived.
	Activate(handoff ID, now Time) CommandResult

	ReleaseSource(handoff ID, now Time) CommandResult
	CancelSource(handoff ID, now Time) CommandResult
	CancelDestination(handoff ID, now Time) CommandResult
}

// RoundKeeper is a scheduler whose ranks count the rounds of their group together. The group asks every rank after a
// pass what it did and tells every rank what all of them did.
type RoundKeeper interface {
	Round() (prefilled, worked bool)
	EndRound(prefilled, worked bool)
}
