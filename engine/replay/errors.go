package replay

import (
	"fmt"

	"mockbench/engine"
)

// StuckKind says how a run came to a stop.
type StuckKind uint8

// Kinds of stops.
const (
	NoEffect  StuckKind = iota // a pass without length and effect, and nothing else is going to happen
	DeadEnd                    // requests remain and nothing is going to happen
	Unsettled                  // work without length at one instant does not end
)

// StuckError is a run that cannot go on. It is an outcome of the configuration, not a fault of the program.
type StuckError struct {
	Kind          StuckKind
	At            engine.Time
	Remaining     int // requests in flight
	Disaggregated bool
	Worker        string // that is stuck, with its rank; empty if no single one is
	Hint          engine.Hint
}

func (e *StuckError) Error() string {
	switch e.Kind {
	case DeadEnd:
		return fmt.Sprintf("replay: dead end at %v ms with %d requests in flight: nothing is left that could happen", float64(e.At), e.Remaining)
	case Unsettled:
		return fmt.Sprintf("replay: internal work of the engines does not come to rest at %v ms", float64(e.At))
	}
	fleet := ""
	if e.Disaggregated {
		fleet = "disaggregated "
	}
	return fmt.Sprintf("replay: %sfleet stuck at %v ms: an effect-free pass of length zero with %d requests in flight%s", fleet,
		float64(e.At), e.Remaining, e.advice())
}

// advice says which request is stuck and what would help.
func (e *StuckError) advice() string {
	text := ""
	if e.Worker != "" {
		text += "; " + e.Worker
	}
	h := e.Hint
	if h.Head == nil {
		return text + "; raise num_gpu_blocks"
	}
	text += fmt.Sprintf(" cannot serve request %s", h.Head.Label)
	if h.Setting == "" {
		return text + ", raise num_gpu_blocks"
	}
	unit := "tokens"
	if h.Test == engine.TestPool {
		unit = "blocks"
	}
	text += fmt.Sprintf(", which needs %d %s of %d", h.Need, unit, h.Have)
	return text + fmt.Sprintf("; raise %s to at least %d", h.Setting, h.Raise)
}
