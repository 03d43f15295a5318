package engine

import "fmt"

// Group is the data-parallel ranks of one worker behind their barrier: every ready rank starts at the same time, all
// effects become visible at the latest end. It is not safe for concurrent use.
type Group struct {
	ranks   []Scheduler
	records []*Pass
	step    uint64 // group passes since the last time everything was drained
	start   Time
	end     Time
	running bool
}

// Attendant is a Scheduler that takes part in the passes of its group without work of its own: commands during such a
// pass are dealt with as during any other.
type Attendant interface {
	Attend(start Time)
}

// NewGroup joins ranks, which must be at least one.
func NewGroup(ranks []Scheduler) *Group {
	return &Group{ranks: ranks, records: make([]*Pass, len(ranks))}
}

// Ranks returns the number of ranks.
func (g *Group) Ranks() int { return len(g.ranks) }

// Rank returns one scheduler, for inspection between passes.
func (g *Group) Rank(r int) Scheduler { return g.ranks[r] }

// Submit queues a request at one rank.
func (g *Group) Submit(rank int, r *Request, now Time) error {
	if rank < 0 || rank >= len(g.ranks) {
		return &SettingError{Setting: "dp_rank", Kind: KindRange, Given: fmt.Sprint(rank),
			Allowed: fmt.Sprintf("must be below the data-parallel size %d", len(g.ranks))}
	}
	return g.ranks[rank].Submit(r, now)
}

// Cancel cancels a request at one rank, also between Begin and Complete.
func (g *Group) Cancel(rank int, id ID, now Time, discard bool) CancelResult {
	return g.ranks[rank].Cancel(id, now, discard)
}

// Ready reports whether any rank can start a pass.
func (g *Group) Ready() bool {
	for _, r := range g.ranks {
		if r.Ready() {
			return true
		}
	}
	return false
}

// Begin starts a pass of every ready rank and returns the records, nil for idle ranks, and the end of the pass. What
// the records say of outputs and events is not yet visible.
func (g *Group) Begin(now Time) (records []*Pass, end Time) {
	g.start, end = now, now
	for i, r := range g.ranks {
		g.records[i] = nil
		if r.Ready() {
			g.records[i] = r.Plan(now, g.step)
			end = max(end, g.records[i].RankEnd)
		} else if a, ok := r.(Attendant); ok {
			a.Attend(now)
		}
	}
	g.end, g.running = end, true
	return g.records, end
}

// End returns the end of the pass begun last.
func (g *Group) End() Time { return g.end }

// Complete ends the pass begun last and returns one record a rank, in rank order.
func (g *Group) Complete() []*Pass {
	for i, r := range g.ranks {
		if g.records[i] == nil {
			g.records[i] = r.Idle(g.start, g.end)
		} else {
			g.records[i] = r.Commit(g.end)
		}
	}
	g.running = false
	g.endRound()
	g.count()
	return g.records
}

// Deadline returns the earliest internal event of any rank.
func (g *Group) Deadline() (t Time, ok bool) {
	for _, r := range g.ranks {
		if d, has := r.Deadline(); has && (!ok || d < t) {
			t, ok = d, true
		}
	}
	return t, ok
}

// Advance processes internal events of all ranks up to now. Records are nil for ranks that had none.
func (g *Group) Advance(now Time) []*Pass {
	for i, r := range g.ranks {
		g.records[i] = r.Advance(now)
	}
	if !g.running && g.Drained() {
		g.step = 0
	}
	return g.records
}

// Drained reports that no rank owns anything.
func (g *Group) Drained() bool {
	for _, r := range g.ranks {
		if !r.Drained() {
			return false
		}
	}
	return true
}

// count moves the wave step on: it starts again at zero whenever the group is drained.
func (g *Group) count() {
	if g.Drained() {
		g.step = 0
		return
	}
	g.step++
}

// endRound tells ranks that count rounds together what the group did.
func (g *Group) endRound() {
	var prefilled, worked bool
	for _, r := range g.ranks {
		if k, ok := r.(RoundKeeper); ok {
			p, w := k.Round()
			prefilled, worked = prefilled || p, worked || w
		}
	}
	for _, r := range g.ranks {
		if k, ok := r.(RoundKeeper); ok {
			k.EndRound(prefilled, worked)
		}
	}
}
