package bootstrap

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// ActionKind names what the coordinator wants done.
type ActionKind string

// Actions of the source, of the destination, and the end.
const (
	SubmitPrefill       ActionKind = "SubmitPrefill"
	StartTransfer       ActionKind = "StartTransfer"
	ReleaseSource       ActionKind = "ReleaseSource"
	CancelSource        ActionKind = "CancelSource"
	ReserveDestination  ActionKind = "ReserveDestination"
	ActivateDestination ActionKind = "ActivateDestination"
	CancelDestination   ActionKind = "CancelDestination"
	CompleteHandoff     ActionKind = "Complete"
)

// answers are the outcomes that each action may have beside Failed.
var answers = map[ActionKind][]Outcome{
	SubmitPrefill:       {Submitted},
	ReserveDestination:  {Accepted},
	StartTransfer:       {Scheduled},
	ActivateDestination: {Applied},
	ReleaseSource:       {Applied, Noop},
	CancelSource:        {Applied, Noop},
	CancelDestination:   {Applied, Noop},
}

// Action is something to be done. Its id counts all actions of a session, from 0.
type Action struct {
	ID      uint64
	Kind    ActionKind
	DelayMS float64 // StartTransfer
}

// Completion says how a handoff ended.
type Completion string

const (
	Success  Completion = "Success"
	Canceled Completion = "Canceled"
)

// Coordinator decides what happens in a handoff, from what it is told. It has no clock and does nothing itself. Each
// method returns the actions to be done now, in order. After an error the session is to be broken off.
type Coordinator struct {
	handoff  uuid.UUID
	order    Order
	actions  []issued // by id
	started  bool
	cleaning bool

	held        *Timing
	missing     int // tokens to transfer, if reserved
	reserved    bool
	transferred bool

	completion Completion // empty: not complete
}

type issued struct {
	kind    ActionKind
	outcome *Outcome // nil: not acknowledged
}

// NewCoordinator returns the coordinator of one handoff.
func NewCoordinator(handoff uuid.UUID, order Order) *Coordinator {
	return &Coordinator{handoff: handoff, order: order}
}

// Completion returns how the handoff ended, empty while it has not.
func (c *Coordinator) Completion() Completion { return c.completion }

// Start begins the handoff. It does nothing the second time.
func (c *Coordinator) Start() []Action {
	if c.started {
		return nil
	}
	c.started = true
	if c.order == DestinationFirst {
		return c.issue(nil, ReserveDestination)
	}
	return c.issue(nil, SubmitPrefill)
}

// Held takes in that the prompt's KV is complete at the source. The first timing stands.
func (c *Coordinator) Held(handoff uuid.UUID, t Timing) ([]Action, error) {
	switch {
	case c.over():
		return nil, nil
	case handoff != c.handoff:
		return nil, errOther
	case c.held != nil:
		return nil, nil
	case !c.acknowledged(SubmitPrefill):
		return nil, errors.New("source held before prefill submission was acknowledged")
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	c.held = &t
	return c.advance(), nil
}

// Reserved takes in that the destination has room, and how many tokens it misses. The first number stands.
func (c *Coordinator) Reserved(handoff uuid.UUID, missing int) ([]Action, error) {
	switch {
	case c.over():
		return nil, nil
	case handoff != c.handoff:
		return nil, errOther
	case c.reserved:
		return nil, nil
	case !c.acknowledged(ReserveDestination):
		return nil, errors.New("destination reserved before ownership was accepted")
	}
	c.reserved, c.missing = true, missing
	return c.advance(), nil
}

// Transferred takes in that the time of the transfer has passed.
func (c *Coordinator) Transferred() ([]Action, error) {
	switch {
	case c.over() || c.transferred:
		return nil, nil
	case !c.acknowledged(StartTransfer):
		return nil, errors.New("transfer completed before it was scheduled")
	}
	c.transferred = true
	return c.issue(nil, ActivateDestination), nil
}

// Ack takes in the outcome of an action.
func (c *Coordinator) Ack(id uint64, o Outcome) ([]Action, error) {
	switch {
	case c.completion != "":
		return nil, nil
	case id >= uint64(len(c.actions)):
		return nil, fmt.Errorf("unknown handoff action HandoffActionId(%d)", id)
	}
	a := &c.actions[id]
	switch {
	case a.outcome != nil && *a.outcome == o:
		return nil, nil
	case a.outcome != nil:
		return nil, fmt.Errorf("conflicting outcomes %s and %s of handoff action %d", a.outcome.Kind, o.Kind, id)
	case !allowed(a.kind, o):
		return nil, fmt.Errorf("invalid handoff action outcome %s", o.Kind)
	}
	a.outcome = &o
	cancels := a.kind == CancelSource || a.kind == CancelDestination
	switch {
	case cancels && o.Kind == failed:
		return nil, fmt.Errorf("handoff cleanup failed: %s", o.Text)
	case cancels:
		return c.cleaned(), nil
	case c.cleaning:
		return nil, nil
	case o.Kind == failed:
		return c.Cleanup(), nil
	case a.kind == ActivateDestination:
		return c.issue(nil, ReleaseSource), nil
	case a.kind == ReleaseSource:
		return c.complete(Success), nil
	}
	return nil, nil
}

func allowed(k ActionKind, o Outcome) bool {
	if o.Kind == failed {
		return true
	}
	for _, a := range answers[k] {
		if a == o {
			return true
		}
	}
	return false
}

// Cleanup gives the handoff up, because an action or the source failed, its time is over or its client has left:
// whatever was started is cancelled, acknowledged or not.
func (c *Coordinator) Cleanup() []Action {
	if c.over() {
		return nil
	}
	c.cleaning = true
	submitted, reserved := c.has(SubmitPrefill), c.has(ReserveDestination)
	var list []Action
	if submitted {
		list = c.issue(list, CancelSource)
	}
	if reserved {
		list = c.issue(list, CancelDestination)
	}
	if list == nil {
		return c.complete(Canceled)
	}
	return list
}

var errOther = errors.New("fact belongs to a different handoff")

// over reports that facts do not matter any more.
func (c *Coordinator) over() bool { return c.cleaning || c.completion != "" }

// advance issues what the known facts allow.
func (c *Coordinator) advance() (list []Action) {
	switch {
	case c.held != nil && c.reserved:
		list = c.issue(nil, StartTransfer)
		list[0].DelayMS, _ = c.held.Delay(c.missing)
	case c.order == SourceFirst && c.held != nil:
		list = c.issue(nil, ReserveDestination)
	case c.order == DestinationFirst && c.reserved:
		list = c.issue(nil, SubmitPrefill)
	}
	return list
}

func (c *Coordinator) issue(list []Action, k ActionKind) []Action {
	c.actions = append(c.actions, issued{kind: k})
	return append(list, Action{ID: uint64(len(c.actions) - 1), Kind: k})
}

func (c *Coordinator) complete(how Completion) []Action {
	c.completion = how
	return c.issue(nil, CompleteHandoff)
}

// cleaned completes the handoff when everything is cancelled.
func (c *Coordinator) cleaned() []Action {
	for _, a := range c.actions {
		if (a.kind == CancelSource || a.kind == CancelDestination) && a.outcome == nil {
			return nil
		}
	}
	return c.complete(Canceled)
}

func (c *Coordinator) has(k ActionKind) bool {
	for _, a := range c.actions {
		if a.kind == k {
			return true
		}
	}
	return false
}

// acknowledged reports whether an action was issued and went well.
func (c *Coordinator) acknowledged(k ActionKind) bool {
	for _, a := range c.actions {
		if a.kind == k {
			return a.outcome != nil && a.outcome.Kind != failed
		}
	}
	return false
}
