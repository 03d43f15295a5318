package ui

import (
	"testing"

	"mockbench/engine"
)

// A request that waits tells what for, in the words of the scheduler.
func TestWaitText(t *testing.T) {
	first, second := &engine.Request{ID: engine.ID{1}, Label: "a"}, &engine.Request{ID: engine.ID{2}, Label: "b"}
	w := &worker{name: "w0", loads: make([]engine.Load, 1)}
	w.passes.size = 4
	m := &Model{sel: w, workers: []*worker{w}}
	m.clock = 150
	m.pool.Waiting = []engine.RequestState{{Request: first, Since: 100}, {Request: second, Since: 140}}
	check := func(h engine.Hint, want, behind string) {
		t.Helper()
		m.pool.Wait = h
		if got := m.waitText(&m.pool.Waiting[0]); got != want {
			t.Errorf("first: got %q, want %q", got, want)
		}
		if got := m.waitText(&m.pool.Waiting[1]); got != behind {
			t.Errorf("second: got %q, want %q", got, behind)
		}
	}
	const one, two = "waiting at w0 for 50ms", "waiting at w0 for 10ms: behind 1 request"
	check(engine.Hint{}, one, two)
	check(engine.Hint{Head: &engine.Request{ID: engine.ID{9}}, Test: engine.TestPool}, one, two) // admitted meanwhile
	check(engine.Hint{Head: first, Test: engine.TestPool, Need: 51, Have: 26},
		one+": needs 51 blocks, 26 free: pool full", two+"; first one: needs 51 blocks, 26 free: pool full")
	check(engine.Hint{Head: first, Test: engine.TestPool, Need: 51, Have: 26, Kind: engine.HintHandoff, Handoffs: 3},
		one+": needs 51 blocks, 26 free: pool full, blocks held by 3 transfers",
		two+"; first one: needs 51 blocks, 26 free: pool full, blocks held by 3 transfers")
	check(engine.Hint{Head: first, Test: engine.TestSlots, Need: 9, Have: 8},
		one+": needs a place: batch full (max_num_seqs)", two+"; first one: needs a place: batch full (max_num_seqs)")
	check(engine.Hint{Head: first, Test: engine.TestInput, Need: 500, Have: 100},
		one+": needs 500 tokens, prefill budget 100", two+"; first one: needs 500 tokens, prefill budget 100")
	w.passes.push().Frame.Budget, w.passes.last(0).New = 64, 64
	check(engine.Hint{}, one+": token budget of the pass used up", two+"; first one: token budget of the pass used up")
	m.pool.Waiting[0].Phase = engine.PhaseDecode
	if got := m.waitText(&m.pool.Waiting[0]); got != "" {
		t.Errorf("a running request: %q", got)
	}
}

// Steps let a worker go ahead of the clock, and ages with it.
func TestAgesFollowSteps(t *testing.T) {
	m := &Model{}
	m.clock, m.pool.Time = 100, 150
	if got := m.since(90); got != 60 {
		t.Errorf("after steps: got %v ms, want 60", got)
	}
	m.clock = 200
	if got := m.since(90); got != 110 {
		t.Errorf("while time goes on: got %v ms, want 110", got)
	}
}
