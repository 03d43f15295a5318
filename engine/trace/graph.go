package trace

import (
	"math"
	"slices"
	"strings"
)

// Graph is requests that depend on one another, in plays that do not.
type Graph struct {
	Nodes  []Node // by request id
	Plays  []Play // in the order in which they start
	Source Source
	Basis  string // weka only: how nested timestamps were read
}

// Source says where a graph comes from.
type Source struct{ Format, Digest string }

// Play is the nodes that belong together.
type Play struct {
	ID    string
	Nodes []int // indices, ascending
}

// Node is one request of a graph.
type Node struct {
	Turn
	ID        string
	Play      string
	Session   string
	Model     string
	NotBefore float64 // milliseconds; earliest time it is dispatched
	APITime   float64 // recorded duration in milliseconds; NaN if there is none
	Ordinal   int     // of its play in the source; -1 if there is none
	Needs     []Need  // in canonical order
	sourceIDs []uint64
}

// Need is a dependency: a node waits until another one is dispatched or complete, and then for Delay.
type Need struct {
	Node     int // index of the node that is waited for
	Dispatch bool
	Delay    float64 // milliseconds
	Relation Relation
}

// Relation says why a node depends on another one.
type Relation uint8

// Relations, in canonical order.
const (
	Sequence Relation = iota
	Spawn
	Join
	Barrier
)

var relationWords = []string{"sequence", "spawn", "join", "replay_barrier"}

func (r Relation) String() string { return relationWords[r] }

// Models returns the models that the nodes name, sorted.
func (g *Graph) Models() []string {
	var models []string
	for i := range g.Nodes {
		models = append(models, g.Nodes[i].Model)
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// align moves the earliest node to time 0 and divides times by speedup.
func (g *Graph) align(speedup float64) {
	first := math.Inf(1)
	for i := range g.Nodes {
		first = min(first, g.Nodes[i].NotBefore)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		n.NotBefore = (n.NotBefore - first) / speedup
		for k := range n.Needs {
			n.Needs[k].Delay /= speedup
		}
	}
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
