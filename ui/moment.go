package ui

import (
	"encoding/json"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/router"
	"mockbench/ui/feed"
)

// Moment is what happened to a run since the moment before it, and how it stood at its end: what a recording is made of
// and what the screen plays. What has not changed is left out, except in one that stands alone.
type Moment struct {
	At     engine.Time
	Alone  bool // nothing before it is needed to show it
	Speed  float64
	Paused bool

	Parts     []Part
	Status    *Status
	Window    *Window
	Counters  []router.Counters // of each worker; nil: as before
	Decisions []router.Decision // made since, oldest first
	Sides     *[2]Side
	Setup     json.RawMessage // a knobs.Setup without its engine; nil: as before
	Notes     []string        // settings that have changed since, as "name value"
	Log       []string
}

// Part is what a moment holds of one worker.
type Part struct {
	Worker  int // index in the fleet
	Intro   *Intro
	Config  json.RawMessage // an engine.Config; nil: as before
	Batch   feed.Batch
	Stalls  []live.Stall
	SlipMS  float64
	Shots   []engine.Snapshot // of ranks that have changed
	Trees   []RankTree
	HasTree bool // the engine keeps a prefix cache that can be seen as a tree
}

// Intro is what does not change of a worker.
type Intro struct {
	Name  string
	Ranks int
}

// RankTree is the prefix tree of one rank.
type RankTree struct {
	Rank int
	Tree engine.PrefixTree
}

// Tape is a recording as the screen reads it. Its methods read from a file: the screen calls them beside itself.
type Tape interface {
	// Span returns the times of the first and the last moment.
	Span() (first, last engine.Time)

	// About says what there is to show.
	About() About

	// Reel returns the moments of at least the time from one to the other. The first one stands alone. The requests in
	// passes long before the end are left out.
	Reel(from, to engine.Time) (Reel, error)

	// Find returns the time of the next thing of a kind after t, or of the one before.
	Find(q Query) (t engine.Time, ok bool, err error)
}

// About is what a recording has.
type About struct {
	Workers                []string // names
	Routing, Window, Sides bool
}

// Reel is a part of a recording.
type Reel struct {
	Moments []Moment
	End     engine.Time // the moments are complete up to here
}

// Query asks for something in a recording.
type Query struct {
	From         engine.Time
	Back         bool // the one before, not the next
	Markers      bool // preemptions and changed settings of any worker; otherwise ends of passes
	Worker, Rank int  // whose passes
}
