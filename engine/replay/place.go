package replay

import (
	"mockbench/engine"
	"mockbench/engine/router"
	"mockbench/kv"
)

// placer chooses ranks of one pool for requests.
type placer interface {
	// Place chooses a rank, or keeps the request waiting until Next returns it.
	Place(t *router.Ticket, now engine.Time) (placed bool, err error)
	Events(index int, events *kv.Events, now engine.Time) error
	Prefilled(t *router.Ticket, now engine.Time) error
	Free(t *router.Ticket, now engine.Time) error
	Next(now engine.Time) (*router.Ticket, error)
	Waiting() int
}

// turns gives every worker its turn, and the ranks of each theirs. With flat set, all ranks of the pool take turns one
// after the other, which is what pools of disaggregated fleets do.
type turns struct {
	ranks int
	flat  bool
	next  int   // worker, or rank of the fleet
	rank  []int // next rank of each worker
}

func newTurns(workers, ranks int, flat bool) *turns {
	return &turns{ranks: ranks, flat: flat, rank: make([]int, workers)}
}

func (r *turns) Place(t *router.Ticket, now engine.Time) (bool, error) {
	t.Arrived, t.Queued = now, false
	if r.flat {
		t.Index = r.next
		t.Worker, t.Rank = t.Index/r.ranks, t.Index%r.ranks
		r.next = (r.next + 1) % (len(r.rank) * r.ranks)
		return true, nil
	}
	t.Worker, t.Rank = r.next, r.rank[r.next]
	t.Index = t.Worker*r.ranks + t.Rank
	r.rank[r.next] = (t.Rank + 1) % r.ranks
	r.next = (r.next + 1) % len(r.rank)
	return true, nil
}

func (*turns) Events(int, *kv.Events, engine.Time) error   { return nil }
func (*turns) Prefilled(*router.Ticket, engine.Time) error { return nil }
func (*turns) Free(*router.Ticket, engine.Time) error      { return nil }
func (*turns) Next(engine.Time) (*router.Ticket, error)    { return nil, nil }
func (*turns) Waiting() int                                { return 0 }
