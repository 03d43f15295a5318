package vllm_test

import (
	"errors"
	"slices"
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/kv"
)

// rank is one prefill or decode rank on a virtual clock.
type rank struct {
	engine.Scheduler
	engine.Disaggregated
	now engine.Time
}

func newRank(t *testing.T, role engine.Role, blocks int) *rank {
	t.Helper()
	cfg := fixedTiming(blocks, 256)
	cfg.Role, cfg.EmitKVEvents = role, true
	s, err := backend.New(cfg, backend.Identity{Ranks: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &rank{Scheduler: s, Disaggregated: s.(engine.Disaggregated)}
}

func (r *rank) pass() *engine.Pass {
	r.now = r.Plan(r.now, 0).RankEnd
	return r.Commit(r.now)
}

var handoff = engine.ID{0: 9}

func TestHandoff(t *testing.T) {
	prefill, decode := newRank(t, engine.PrefillRole, 16), newRank(t, engine.DecodeRole, 16)
	source, destination := request(1, 1, [3]uint64{1, 0, 70}), request(1, 3, [3]uint64{1, 0, 70})
	if err := prefill.SubmitSource(source, handoff, 0); err != nil {
		t.Fatal(err)
	}
	p := prefill.pass()
	if len(p.Handoffs) != 1 || p.Handoffs[0].Kind != engine.SourceHeld || p.Handoffs[0].Tokens != 70 || p.Handoffs[0].ID != handoff {
		t.Fatalf("handoffs %+v", p.Handoffs)
	}
	if l := p.Load; l.ActiveBlocks != 5 || l.Running+l.Waiting != 0 || prefill.Drained() || p.Decode.Requests != 0 {
		t.Errorf("while the source is held: load %+v, decode %+v", l, p.Decode)
	}
	if c := prefill.Cancel(source.ID, 1, true); c.Applied {
		t.Error("a held source is cancelled like a request")
	}

	c, err := decode.Reserve(destination, handoff, 10)
	if err != nil || len(c.Steps) != 1 || c.Steps[0].Kind != engine.DestinationReserved || c.Steps[0].Tokens != 80 {
		t.Fatalf("reserve: %+v, %v", c, err)
	}
	if decode.Ready() || decode.Load().ActiveBlocks != 5 || decode.Load().Waiting != 1 {
		t.Errorf("before the KV arrives: ready %v, load %+v", decode.Ready(), decode.Load())
	}
	c = decode.Activate(handoff, 20)
	if !c.Applied || c.Events == nil || c.Events.List[0].Kind != kv.Stored || c.Events.List[0].Count != 4 {
		t.Fatalf("activate: %+v", c)
	}
	decode.now = 20
	p = decode.pass()
	if len(p.Outputs) != 1 || p.Outputs[0].Cached != 0 || p.End != 22 || p.Admissions[0].Reused != 0 || p.Work[0].Tokens != 0 {
		t.Errorf("first token at %v: outputs %+v, admissions %+v", p.End, p.Outputs, p.Admissions)
	}
	if c = prefill.ReleaseSource(handoff, 21); !c.Retired || c.Request != source || !prefill.Drained() || prefill.Load().InactiveBlocks != 4 {
		t.Errorf("release: %+v, load %+v", c, prefill.Load())
	}
	decode.pass()
	if p = decode.pass(); !p.Outputs[0].Completed || !decode.Drained() {
		t.Errorf("last pass: %+v", p.Outputs)
	}

	if c, err = decode.Reserve(request(2, 3, [3]uint64{1, 0, 70}), handoff, 30); err != nil || c.Steps[0].Tokens != 16 {
		t.Errorf("only the last block is missing at the destination: %+v, %v", c, err)
	}
	if c = decode.CancelDestination(handoff, 31); !c.Retired || !decode.Drained() || decode.Load().ActiveBlocks != 0 {
		t.Errorf("cancelled destination: %+v, load %+v", c, decode.Load())
	}
}

func TestDestinationsWaitForRoomInOrder(t *testing.T) {
	decode := newRank(t, engine.DecodeRole, 8)
	for n := byte(1); n <= 3; n++ {
		if _, err := decode.Reserve(request(n, 2, [3]uint64{uint64(n), 0, 60}), engine.ID{n}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if l := decode.Load(); l.ActiveBlocks != 8 || l.Waiting != 3 {
		t.Fatalf("two of three fit: load %+v", l)
	}
	if err := decode.Submit(request(4, 1, [3]uint64{4, 0, 5}), 0); err != nil {
		t.Fatal(err)
	}
	decode.Activate(engine.ID{2}, 0)
	p := decode.pass()
	if len(p.Work) != 1 || p.Work[0].Request.ID[15] != 2 {
		t.Fatalf("a fresh request does not pass a destination that waits: work %+v", p.Work)
	}
	p = decode.pass()
	if len(p.Handoffs) != 1 || p.Handoffs[0].ID != (engine.ID{3}) {
		t.Errorf("the room of the finished request goes to the third: %+v", p.Handoffs)
	}
	p = decode.pass()
	if len(p.Admissions) != 0 {
		t.Errorf("no room for the fresh request: %+v", p.Admissions)
	}
	if c := decode.CancelDestination(engine.ID{1}, decode.now); !c.Applied {
		t.Error("a held destination is not cancelled")
	}
	if p = decode.pass(); len(p.Admissions) != 1 || p.Admissions[0].Request.ID[15] != 4 {
		t.Errorf("the fresh request is admitted then: %+v", p.Admissions)
	}
}

func TestRefusedDestinations(t *testing.T) {
	decode := newRank(t, engine.DecodeRole, 4)
	var wrong *engine.SettingError
	if _, err := decode.Reserve(request(1, 2, [3]uint64{1, 0, 65}), handoff, 0); !errors.As(err, &wrong) || wrong.Setting != "engine.num_gpu_blocks" {
		t.Errorf("too large a prompt: %v", err)
	}
	if !decode.Drained() || decode.Load().Waiting != 0 {
		t.Errorf("a refused destination stays: load %+v", decode.Load())
	}
	if _, err := decode.Reserve(request(1, 2, [3]uint64{1, 0, 60}), handoff, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := decode.Reserve(request(1, 2, [3]uint64{1, 0, 60}), engine.ID{1}, 0); !errors.Is(err, engine.ErrActive) {
		t.Errorf("the same request again: %v", err)
	}
	for _, c := range []engine.CommandResult{decode.Activate(engine.ID{7}, 0), decode.ReleaseSource(handoff, 0), decode.CancelSource(handoff, 0)} {
		if c.Applied {
			t.Errorf("a command that does not fit is applied: %+v", c)
		}
	}
}

// A rank whose blocks are held for other ranks waits for those: nothing has to be raised.
func TestBlocksHeldByHandoffsAreNoStandstill(t *testing.T) {
	prefill := newRank(t, engine.PrefillRole, 6)
	if err := prefill.SubmitSource(request(1, 1, [3]uint64{1, 0, 70}), handoff, 0); err != nil {
		t.Fatal(err)
	}
	prefill.pass()
	if err := prefill.SubmitSource(request(2, 1, [3]uint64{2, 0, 70}), engine.ID{0: 8}, prefill.now); err != nil {
		t.Fatal(err)
	}
	p := prefill.pass()
	if h := p.Hint; p.Effect || h.Kind != engine.HintHandoff || h.Handoffs != 1 || h.Test != engine.TestPool || h.Head == nil {
		t.Fatalf("with all but one block held: effect %v, hint %+v", p.Effect, h)
	}
	prefill.ReleaseSource(handoff, prefill.now)
	if p = prefill.pass(); !p.Effect {
		t.Errorf("after the release: hint %+v", p.Hint)
	}
}

// crowd brings a rank of 10 blocks where request 1 runs, 2 was preempted for it, 3 has room and 4 waits for it.
func crowd(t *testing.T) *rank {
	t.Helper()
	decode := newRank(t, engine.DecodeRole, 10)
	for n, tokens := range []uint64{60, 60, 60, 110} {
		id := byte(n + 1)
		if _, err := decode.Reserve(request(id, 40, [3]uint64{uint64(id), 0, tokens}), engine.ID{id}, 0); err != nil {
			t.Fatal(err)
		}
		decode.Activate(engine.ID{id}, 0)
	}
	for range 100 {
		if p := decode.pass(); len(p.Preemptions) > 0 {
			if victim := p.Preemptions[0].Request.ID[15]; victim != 2 || len(p.Handoffs) != 1 || p.Handoffs[0].ID != (engine.ID{3}) {
				t.Fatalf("preempted %d, handoffs %+v", victim, p.Handoffs)
			}
			return decode
		}
	}
	t.Fatal("nothing was preempted")
	return nil
}

func (r *rank) expectAdmitted(t *testing.T, what string, want ...byte) {
	t.Helper()
	var got []byte
	for _, a := range r.pass().Admissions {
		got = append(got, a.Request.ID[15])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: admitted %v, want %v", what, got, want)
	}
}

// As in the reference, a preempted request waits while destinations wait for room, and is the first to go otherwise. If
// it went first always, received requests would hold the blocks that it waits for.
func TestPreemptedRequestsAndDestinations(t *testing.T) {
	decode := crowd(t)
	decode.expectAdmitted(t, "the KV of 3 has not arrived")
	decode.Activate(engine.ID{3}, decode.now)
	decode.expectAdmitted(t, "4 waits for room", 3)

	decode = crowd(t)
	decode.CancelDestination(engine.ID{4}, decode.now)
	decode.Activate(engine.ID{3}, decode.now)
	decode.expectAdmitted(t, "no destination waits, and 2 has no room")
	decode.Cancel(request(1, 1).ID, decode.now, true)
	decode.expectAdmitted(t, "2 has room", 2, 3)

	decode = crowd(t)
	decode.Cancel(request(1, 1).ID, decode.now, true)
	decode.expectAdmitted(t, "there is room for 2, but 4 waits for more")
	decode.CancelDestination(engine.ID{4}, decode.now)
	decode.expectAdmitted(t, "4 is gone", 2)
}
