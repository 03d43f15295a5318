// Package trace reads recorded workloads and makes synthetic ones: sessions of turns with arrival times, or graphs of
// requests that depend on one another.
//
// A prompt is a list of block ids, each of which stands for a number of equal tokens. Ids are renumbered in the order of
// their first appearance, and an id's number is its token; prompts are never spelled out.
package trace

import (
	"fmt"
	"math"
)

// DefaultBlockSize is the number of tokens that a hash id stands for if nobody says otherwise.
const DefaultBlockSize = 512

// Trace is a workload.
type Trace struct {
	BlockSize int // tokens an id stands for
	Sessions  []Session
	Graph     *Graph // instead of sessions
	IDs       int    // distinct ids: they are numbered from 0
	Delta     bool   // the prompt of a turn follows on everything said before in the session
	Planned   bool   // turns without output of their own have a planned one, see Planner
	Notes     []string

	ids arena
}

// Session is turns one after the other.
type Session struct {
	Name    string
	Named   bool    // the workload names it; else the name is made up
	Arrival float64 // of the first turn, milliseconds; NaN if the workload does not say
	Turns   []Turn
}

// Turn is one request.
type Turn struct {
	IDs    []uint32 // renumbered ids of the prompt's blocks, at least as many as it needs
	Input  int      // tokens of the prompt
	Output int      // tokens of the answer
	Delay  float64  // milliseconds between the end of the previous turn and this one
	Plan   uint64   // where its planned output begins
	Extra  *Extra   // nil for most
}

// Extra is what few turns have.
type Extra struct {
	Tokens    []uint32 // exact output; nil if there is none
	Priority  int32    // router queue: higher is sooner
	Strict    uint32   // router queue: before priority
	Class     string   // router policy class
	RequestID string
}

// Requests returns the number of requests.
func (t *Trace) Requests() int {
	if t.Graph != nil {
		return len(t.Graph.Nodes)
	}
	n := 0
	for i := range t.Sessions {
		n += len(t.Sessions[i].Turns)
	}
	return n
}

// List reports that every session has one turn, so that requests need nobody to follow them.
func (t *Trace) List() bool {
	for i := range t.Sessions {
		if len(t.Sessions[i].Turns) != 1 {
			return false
		}
	}
	return t.Graph == nil
}

// plan lets every turn without output of its own begin its planned output where the previous one ends.
func (t *Trace) plan() {
	t.Planned = true
	var at uint64
	place := func(u *Turn) {
		u.Plan = at
		if u.Extra == nil || u.Extra.Tokens == nil {
			at += uint64(u.Output)
		}
	}
	if t.Graph != nil {
		for i := range t.Graph.Nodes {
			place(&t.Graph.Nodes[i].Turn)
		}
		return
	}
	for i := range t.Sessions {
		for k := range t.Sessions[i].Turns {
			place(&t.Sessions[i].Turns[k])
		}
	}
}

// check finds turns that no engine can run.
func (t *Trace) check() error {
	for i := range t.Sessions {
		s := &t.Sessions[i]
		for k := range s.Turns {
			if s.Turns[k].Input == 0 {
				return fmt.Errorf("session %s, turn %d: input_length must be positive", s.Name, k)
			}
		}
	}
	return nil
}

// Align moves the arrivals so that the first one is at 0, and divides them and all delays by speedup, which is finite
// and positive. Every session must have an arrival.
func (t *Trace) Align(speedup float64) error {
	if t.Graph != nil {
		t.Graph.align(speedup)
		return nil
	}
	first := math.Inf(1)
	for i := range t.Sessions {
		a := t.Sessions[i].Arrival
		if math.IsNaN(a) {
			a = 0
		}
		first = min(first, a)
	}
	for i := range t.Sessions {
		s := &t.Sessions[i]
		if math.IsNaN(s.Arrival) {
			return fmt.Errorf("session %s has no timestamp: arrivals are unknown, replay it with a concurrency instead", s.Name)
		}
		if s.Arrival -= first; math.IsInf(s.Arrival, 0) {
			return fmt.Errorf("session %s: timestamp is out of range", s.Name)
		}
		s.Arrival /= speedup
		for k := range s.Turns {
			s.Turns[k].Delay /= speedup
		}
	}
	return nil
}

// arena hands out slices of ids that share large pieces of memory.
type arena struct{ free []uint32 }

const arenaPiece = 1 << 16

func (a *arena) copy(ids []uint32) []uint32 {
	if len(ids) > len(a.free) {
		a.free = make([]uint32, max(arenaPiece, len(ids)))
	}
	out := a.free[:len(ids):len(ids)]
	a.free = a.free[len(ids):]
	copy(out, ids)
	return out
}
