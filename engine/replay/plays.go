package replay

import (
	"container/heap"
	"math"
	"slices"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/trace"
)

// plays is the requests of a graph, each when those it depends on are far enough.
type plays struct {
	graph  *trace.Graph
	nodes  []node
	after  [][]follower // by node: who depends on it
	plays  []play
	of     []int // play of each node
	ready  turnHeap
	lanes  int // plays at a time; 0: when the trace says
	opened int // plays that have begun, with lanes
	ends   []ending
	log    lifecycle
}

// nodeState is where a node is in its life.
type nodeState uint8

const (
	nodeWaits nodeState = iota
	nodeReady
	nodeFlies
	nodeDone
	nodeFailed
	nodeSkipped
)

type node struct {
	state   nodeState
	missing int         // needs that are not met
	at      engine.Time // earliest dispatch, as far as it is known
}

type follower struct {
	node     int
	dispatch bool
	delay    engine.Time
}

type play struct {
	left     int // nodes that have not ended
	flying   int
	shift    engine.Time // of its times, with lanes
	first    engine.Time // dispatch
	last     engine.Time // end of a node
	began    bool
	failed   bool
	settled  bool
	settling engine.Time
	failure  int // node
	reason   report.Status
}

// ending is the end of a node, not told to the others yet.
type ending struct {
	node   int
	status report.Status
}

func newPlays(t *trace.Trace, lanes int) *plays {
	g := t.Graph
	p := &plays{graph: g, nodes: make([]node, len(g.Nodes)), after: make([][]follower, len(g.Nodes)), of: make([]int, len(g.Nodes)),
		plays: make([]play, len(g.Plays)), lanes: lanes}
	for i := range g.Nodes {
		p.nodes[i].missing = len(g.Nodes[i].Needs)
		for _, n := range g.Nodes[i].Needs {
			p.after[n.Node] = append(p.after[n.Node], follower{i, n.Dispatch, engine.Time(n.Delay)})
		}
	}
	for i := range g.Plays {
		p.plays[i].left = len(g.Plays[i].Nodes)
		for _, n := range g.Plays[i].Nodes {
			p.of[n] = i
		}
	}
	if lanes == 0 {
		for i := range p.plays {
			p.start(i)
		}
	}
	p.open(0)
	return p
}

// open begins plays in free lanes.
func (p *plays) open(now engine.Time) {
	busy := 0
	for i := range p.plays[:p.opened] {
		if !p.plays[i].settled {
			busy++
		}
	}
	for ; busy < p.lanes && p.opened < len(p.plays); busy++ {
		first := math.Inf(1)
		for _, n := range p.graph.Plays[p.opened].Nodes {
			if p.nodes[n].missing == 0 {
				first = min(first, p.graph.Nodes[n].NotBefore)
			}
		}
		p.plays[p.opened].shift = now - engine.Time(first)
		p.start(p.opened)
		p.opened++
	}
}

// start lets the nodes of a play come that depend on no other.
func (p *plays) start(i int) {
	for _, n := range p.graph.Plays[i].Nodes {
		p.nodes[n].at = p.bound(n)
		if p.nodes[n].missing == 0 {
			p.push(n)
		}
	}
}

// bound returns the earliest time a node may be dispatched, whatever it depends on.
func (p *plays) bound(n int) engine.Time {
	at, shift := engine.Time(p.graph.Nodes[n].NotBefore), p.plays[p.of[n]].shift
	if p.lanes == 0 {
		return at
	}
	return at + shift
}

func (p *plays) push(n int) {
	p.nodes[n].state = nodeReady
	heap.Push(&p.ready, due{p.nodes[n].at, n, 0})
}

func (p *plays) next() (engine.Time, bool) {
	p.dropSkipped()
	if len(p.ready) == 0 {
		return 0, false
	}
	return p.ready[0].at, true
}

// dropSkipped forgets ready nodes whose play has failed meanwhile.
func (p *plays) dropSkipped() {
	for len(p.ready) > 0 && p.nodes[p.ready[0].session].state == nodeSkipped {
		heap.Pop(&p.ready)
	}
}

func (p *plays) take(now engine.Time) (arrival, bool) {
	at, ok := p.next()
	if !ok || at > now {
		return arrival{}, false
	}
	n := heap.Pop(&p.ready).(due).session
	return arrival{number: n, source: &p.graph.Nodes[n].Turn, at: at}, true
}

func (p *plays) drained() bool { return len(p.ready) == 0 }

// dispatched tells the nodes that wait for the dispatch of another one.
func (p *plays) dispatched(q *job, now engine.Time) {
	n := q.number
	p.nodes[n].state = nodeFlies
	y := &p.plays[p.of[n]]
	y.flying++
	if !y.began {
		y.began, y.first = true, now
	}
	p.log.add(p, now, "dispatch", p.of[n], n, "")
	p.fire(n, true, now)
}

func (p *plays) fire(n int, dispatch bool, now engine.Time) {
	for _, f := range p.after[n] {
		if f.dispatch != dispatch {
			continue
		}
		x := &p.nodes[f.node]
		x.at = max(x.at, now+f.delay)
		if x.missing--; x.missing == 0 && x.state == nodeWaits {
			p.push(f.node)
		}
	}
}

// ended keeps the end of a node until all ends of the instant are known.
func (p *plays) ended(q *job, _ engine.Time, _ bool) {
	p.ends = append(p.ends, ending{q.number, q.entry.Status()})
}

// flush tells the ends of this instant, in the order of the nodes, and settles what has come to rest.
func (p *plays) flush(now engine.Time) bool {
	if len(p.ends) == 0 {
		return false
	}
	ends := p.ends
	p.ends = nil
	slices.SortFunc(ends, func(a, b ending) int { return a.node - b.node })
	for _, e := range ends {
		p.end(e, now)
	}
	for _, e := range ends {
		p.log.add(p, now, "quiescent", p.of[e.node], e.node, "")
		p.plays[p.of[e.node]].flying--
		p.settle(p.of[e.node], now)
	}
	p.open(now)
	return true
}

func (p *plays) end(e ending, now engine.Time) {
	y := &p.plays[p.of[e.node]]
	y.left--
	y.last = max(y.last, now)
	p.log.add(p, now, "causal_terminal", p.of[e.node], e.node, e.status.String())
	if e.status == report.Completed {
		p.nodes[e.node].state = nodeDone
		p.fire(e.node, false, now)
		return
	}
	p.nodes[e.node].state = nodeFailed
	if y.failed {
		return
	}
	y.failed, y.failure, y.reason = true, e.node, e.status
	for _, n := range p.graph.Plays[p.of[e.node]].Nodes {
		if s := &p.nodes[n].state; *s == nodeWaits || *s == nodeReady {
			*s = nodeSkipped
			y.left--
			p.log.add(p, now, "skipped", p.of[n], n, "")
		}
	}
}

func (p *plays) settle(i int, now engine.Time) {
	y := &p.plays[i]
	if y.left > 0 || y.flying > 0 || y.settled {
		return
	}
	y.settled, y.settling = true, now
	p.log.add(p, now, "play_quiescent", i, -1, "")
}

// figures returns what a report says of the plays.
func (p *plays) figures(t *trace.Trace) *report.Agentic {
	a := &report.Agentic{Events: p.log.count, Digest: p.log.digest()}
	a.Graph.Source.Format, a.Graph.Source.Digest = p.graph.Source.Format, p.graph.Source.Digest
	a.Graph.Digest, a.Graph.BlockSize = t.Digest(), t.BlockSize
	a.Graph.Nodes, a.Graph.Plays, a.Graph.Models = len(p.graph.Nodes), len(p.graph.Plays), p.graph.Models()
	for i := range p.plays {
		y := &p.plays[i]
		o := report.PlayOutcome{ID: p.graph.Plays[i].ID, Status: "incomplete"}
		if y.left == 0 {
			o.Terminal = &y.last
		}
		if y.settled {
			o.Settled = &y.settling
		}
		switch {
		case y.failed:
			o.Status = "failed"
			reason := y.reason.String()
			o.Failure, o.Reason = &p.graph.Nodes[y.failure].ID, &reason
		case y.left == 0:
			o.Status = "completed"
			a.AddLatency(float64(y.last - y.first))
		}
		a.Plays = append(a.Plays, o)
	}
	return a
}
