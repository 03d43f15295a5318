package ui

import (
	"fmt"
	"slices"

	"mockbench/engine"
)

// waitText says for what a request of the selected rank waits; empty if it does not.
func (m *Model) waitText(r *engine.RequestState) string {
	why := ""
	switch r.Phase {
	case engine.PhaseWaiting, engine.PhasePreempted:
		why = m.holdText(r)
	case engine.PhaseDeferred:
		why = "its prefix is being copied by another request"
	case engine.PhaseLoading:
		why = "its blocks are being copied from the host"
	default:
		return ""
	}
	text := fmt.Sprintf("%s at %s for %s", m.phaseName(r.Phase), m.sel.rankName(m.rank), span(m.since(r.Since)))
	if why != "" {
		text += ": " + why
	}
	return text
}

// holdText says what holds a queued request back: the test that the head of the queue did not pass, as the scheduler
// tells it. It is empty if that is not known.
func (m *Model) holdText(r *engine.RequestState) string {
	place := func(of *engine.Request) int {
		return slices.IndexFunc(m.pool.Waiting, func(q engine.RequestState) bool { return q.Request.ID == of.ID })
	}
	h, at := &m.pool.Wait, place(r.Request)
	known := h.Head != nil && place(h.Head) >= 0 // else it was admitted or left meanwhile
	head := at == 0
	if known {
		head = h.Head.ID == r.Request.ID
	}
	why := ""
	switch {
	case known:
		why = testText(h)
	case m.budgetUsed():
		why = "token budget of the pass used up"
	}
	if head {
		return why
	}
	text := "behind " + plural(max(at, 1), "request")
	if why != "" {
		text += "; first one: " + why
	}
	return text
}

// budgetUsed reports whether the latest pass of the selected rank had no token left.
func (m *Model) budgetUsed() bool {
	for back := range m.sel.passes.len() {
		if f := &m.sel.passes.last(back).Frame; int(f.Rank) == m.rank {
			return f.Budget > 0 && uint64(f.New)+uint64(f.Decode) >= f.Budget
		}
	}
	return false
}

// testText says which test of admission a request did not pass.
func testText(h *engine.Hint) string {
	text := ""
	switch h.Test {
	case engine.TestPool:
		text = fmt.Sprintf("needs %s, %s free: pool full", plural(h.Need, "block"), number(h.Have))
	case engine.TestTotal:
		text = fmt.Sprintf("needs %s, %s available: pool full", plural(h.Need, "token"), number(h.Have))
	case engine.TestSlots:
		text = "needs a place: batch full (max_num_seqs)"
	case engine.TestBudget, engine.TestInput, engine.TestChunk:
		text = fmt.Sprintf("needs %s, %s %s", plural(h.Need, "token"), testNames[h.Test], number(h.Have))
	}
	if h.Kind == engine.HintHandoff {
		text += fmt.Sprintf(", blocks held by %s", plural(h.Handoffs, "transfer"))
	}
	return text
}
