package live

import "mockbench/engine"

// maxRetries is how many passes in a row may have no effect while the engine says that another one may.
const maxRetries = 1024

// stalls finds ranks that go round in passes without length and effect.
type stalls struct {
	parked bool // no rank can make progress: no passes until something comes
	ranks  []progress
}

// progress is what one rank's passes without effect have shown.
type progress struct {
	stuck   bool
	hint    engine.Hint // why it is stuck
	retries int
	rounds  int             // of the latest countdown; -1 if the previous pass was none
	told    bool            // a stall was reported
	head    *engine.Request // of the stall reported last
}

func newStalls(ranks int) stalls {
	s := stalls{ranks: make([]progress, ranks)}
	for r := range s.ranks {
		s.ranks[r].restart()
	}
	return s
}

// restart forgets passes without effect: something came that may help.
func (p *progress) restart() { p.retries, p.rounds = 0, -1 }

// see takes in a record and reports whether the rank is stuck: at once if the engine says that nothing will change,
// after maxRetries if it says that something may, and when a countdown does not shrink.
func (p *progress) see(record *engine.Pass) bool {
	if record.Idle || record.Effect || record.RankEnd > record.Start {
		p.restart()
		return false
	}
	switch hint := record.Hint; hint.Kind {
	case engine.HintExhausted, engine.HintTransfer, engine.HintHandoff:
		return true
	case engine.HintCountdown:
		before := p.rounds
		p.rounds = hint.Rounds
		return before >= 0 && hint.Rounds >= before
	default:
		p.rounds = -1
		p.retries++
		return p.retries >= maxRetries
	}
}

// judge looks at the records of a pass: it parks the group if the pass had no length and all ranks that ran are stuck,
// and tells of stalls that are new.
func (d *driver) judge(records []*engine.Pass, zero bool) {
	changed, moving := false, !zero
	for r, record := range records {
		p := &d.stalls.ranks[r]
		stuck := p.see(record)
		moving = moving || !stuck && !record.Idle
		changed = changed || stuck != p.stuck || stuck && (p.hint.Head != record.Hint.Head || p.hint.Kind != record.Hint.Kind ||
			p.hint.Handoffs != record.Hint.Handoffs)
		p.stuck = stuck
		if stuck {
			p.hint = record.Hint
		}
	}
	d.stalls.parked = !moving
	if changed {
		d.showStalls()
	}
}

// rearm lets a parked group try again and forgets stalls of ranks that have nothing to do any more.
func (d *driver) rearm() {
	d.stalls.parked = false
	changed := false
	for r := range d.stalls.ranks {
		p := &d.stalls.ranks[r]
		p.restart()
		if p.stuck && !d.group.Rank(r).Ready() {
			p.stuck, changed = false, true
		}
	}
	if changed {
		d.showStalls()
	}
}

// showStalls publishes the list of stalls and reports each head that is stuck for the first time.
func (d *driver) showStalls() {
	var list []Stall
	for r := range d.stalls.ranks {
		p := &d.stalls.ranks[r]
		if !p.stuck || p.hint.Kind == engine.HintTransfer {
			continue
		}
		s := Stall{Worker: d.w.o.Name, Rank: r, Hint: p.hint}
		list = append(list, s)
		if s.Waits() || p.told && p.head == p.hint.Head {
			continue
		}
		p.told, p.head = true, p.hint.Head
		if d.w.o.Stalled != nil {
			d.w.o.Stalled(s)
		}
	}
	d.w.mu.Lock()
	d.w.stalls = list
	d.w.mu.Unlock()
}
