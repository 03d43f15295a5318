package goldentest

import (
	"fmt"
	"slices"

	"mockbench/engine"
)

// shadow follows the queues of one rank through the pass records alone, to show that the records suffice for that.
type shadow struct {
	waiting, running []string
	reserved         []string // destinations with room that do not run yet, in order
	arrived          []string // those of them whose KV has arrived, in any order
}

// queue returns what waits for a pass: destinations whose KV has arrived, then the waiting queue.
func (s *shadow) queue() (list []string) {
	for _, id := range s.reserved {
		if slices.Contains(s.arrived, id) {
			list = append(list, id)
		}
	}
	return append(list, s.waiting...)
}

// reserve notes the destinations that got their room.
func (s *shadow) reserve(steps []engine.Handoff) {
	for _, h := range steps {
		if h.Kind == engine.DestinationReserved {
			s.reserved = append(s.reserved, h.Request.Label)
		}
	}
}

func remove(list []string, id string) []string {
	if i := slices.Index(list, id); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func (s *shadow) submit(id string) { s.waiting = append(s.waiting, id) }

func (s *shadow) drop(id string) {
	s.waiting, s.running = remove(s.waiting, id), remove(s.running, id)
	s.reserved, s.arrived = remove(s.reserved, id), remove(s.arrived, id)
}

func (s *shadow) admit(a engine.Admission) {
	s.drop(a.Request.Label)
	s.running = append(s.running, a.Request.Label)
}

func (s *shadow) preempt(p engine.Preemption) {
	s.drop(p.Request.Label)
	s.waiting = slices.Insert(s.waiting, 0, p.Request.Label)
}

// schedule applies what a pass decided up to the end of its scheduling. Preemptions come before the last admission,
// which they made room for, unless that admission is itself undone.
func (s *shadow) schedule(p *engine.Pass) {
	last := len(p.Admissions) - 1
	undone := slices.ContainsFunc(p.Preemptions, func(x engine.Preemption) bool {
		return last >= 0 && !x.Burst && x.Request == p.Admissions[last].Request
	})
	preempt := func() {
		for _, x := range p.Preemptions {
			if !x.Burst {
				s.preempt(x)
			}
		}
	}
	for i, a := range p.Admissions {
		if i == last && !undone {
			preempt()
		}
		s.admit(a)
	}
	if last < 0 || undone {
		preempt()
	}
	for _, o := range p.Outputs {
		if o.Rejected {
			s.drop(o.Request.Label)
		}
	}
}

// settle applies the rest of a pass.
func (s *shadow) settle(p *engine.Pass) {
	for _, x := range p.Preemptions {
		if x.Burst {
			s.preempt(x)
		}
	}
	for _, o := range p.Outputs {
		if o.Completed {
			s.drop(o.Request.Label)
		}
	}
	for _, h := range p.Handoffs {
		if h.Kind == engine.SourceHeld {
			s.drop(h.Request.Label)
		}
	}
}

// matches compares the queues with a snapshot.
func (s *shadow) matches(snapshot *engine.Snapshot) error {
	for _, q := range []struct {
		name string
		own  []string
		rows []engine.RequestState
	}{{"running", s.running, snapshot.Running}, {"waiting", s.queue(), snapshot.Waiting}} {
		var rows []string
		for _, r := range q.rows {
			rows = append(rows, r.Request.Label)
		}
		if own := q.own[:min(len(q.own), engine.SnapshotRows)]; !slices.Equal(own, rows) {
			return fmt.Errorf("%s: records say %v, the snapshot says %v", q.name, own, rows)
		}
	}
	return nil
}
