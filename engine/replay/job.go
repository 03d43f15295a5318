package replay

import (
	"encoding/binary"
	"fmt"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/trace"
)

// job is a request from its arrival until nobody needs it any more.
type job struct {
	number  int // of the request in the trace, from 0
	session int
	turn    int
	source  *trace.Turn
	entry   report.Entry
	text    prompt
	request engine.Request // of the worker that answers
	output  []uint32       // planned
	emitted []uint32       // only if the session goes on from there
	hashes  [2][]uint64    // of the prompt: local, sequence

	tickets [2]router.Ticket // of the only or prefill pool, of the decode pool
	ended   bool             // for its client
	kept    bool             // nobody needs it any more
	handoff handoff
}

// jobs are the jobs of a run by their keys, with those that are done for use again.
type jobs struct {
	list []*job
	free []int
}

// take returns a job without request.
func (j *jobs) take() *job {
	if n := len(j.free); n > 0 {
		key := j.free[n-1]
		j.free = j.free[:n-1]
		return j.list[key]
	}
	q := &job{request: engine.Request{Key: len(j.list)}}
	j.list = append(j.list, q)
	return q
}

func (j *jobs) give(q *job) { j.free = append(j.free, q.request.Key) }

func (j *jobs) of(r *engine.Request) *job { return j.list[r.Key] }

// identity is the id of a request: its number in the trace, from 1.
func identity(number int) (id engine.ID) {
	binary.BigEndian.PutUint64(id[8:], uint64(number)+1)
	return id
}

// prepare makes the request of a turn.
func (s *sim) prepare(at arrival) *job {
	q := s.jobs.take()
	key := q.request.Key
	q.number, q.session, q.turn, q.source, q.ended = at.number, at.session, at.turn, at.source, false
	q.kept = false
	q.emitted = q.emitted[:0]
	q.handoff = handoff{}
	u := at.source
	q.request = engine.Request{ID: identity(q.number), Key: key, MaxOutput: u.Output, Arrival: at.at}
	if s.o.Trace.Planned {
		q.output = s.planner.Append(q.output[:0], u)
		q.request.Output = q.output
	}
	switch {
	case s.o.Trace.Delta:
		q.request.Prompt = s.history.prompt(at.session, u, s.o.Trace.BlockSize)
	case s.o.Trace.BlockSize == 0:
		q.request.Prompt = make([]uint32, u.Input)
		for i := range q.request.Prompt {
			q.request.Prompt[i] = trace.SyntheticToken(uint64(q.number), i)
		}
	default:
		q.text = prompt{texts: s.texts, ids: u.IDs, length: u.Input}
		q.request.Text = &q.text
	}
	q.entry.Reset()
	e := &q.entry
	e.Number, e.Arrival, e.Input, e.Requested = q.number, at.at, q.request.PromptLen(), u.Output
	if g := s.o.Trace.Graph; g != nil {
		n := &g.Nodes[at.number]
		e.InSession, e.Session, e.RequestID, e.Play, e.Dispatched = true, n.Session, n.ID, n.Play, s.now
	}
	if at.told {
		e.InSession, e.Session, e.Turn = true, s.o.Trace.Sessions[at.session].Name, at.turn
	}
	return q
}

// ticket fills in what a router needs to know of a request.
func (s *sim) ticket(q *job, p *pool) *router.Ticket {
	t := &q.tickets[p.slot]
	t.User, t.Tokens, t.Priority, t.Strict = q, q.request.PromptLen(), 0, 0
	if x := q.source.Extra; x != nil {
		t.Priority, t.Strict = x.Priority, x.Strict
	}
	if s.o.Router != nil {
		q.hashes[0], q.hashes[1] = q.request.AppendPromptHashes(q.hashes[0][:0], q.hashes[1][:0], s.texts.blockSize)
		t.Sequence = q.hashes[1]
	}
	return t
}

// name returns what people call a request.
func (s *sim) name(q *job) string {
	if g := s.o.Trace.Graph; g != nil {
		return g.Nodes[q.number].ID
	}
	session := &s.o.Trace.Sessions[q.session]
	if len(session.Turns) == 1 {
		return session.Name
	}
	return fmt.Sprintf("%s turn %d", session.Name, q.turn)
}
