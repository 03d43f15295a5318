package live

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mockbench/engine"
)

// fakeRank is a scheduler without limits: every pass admits all that wait and gives everyone a token.
type fakeRank struct {
	rank     int
	length   engine.Time                // of a pass
	stuck    func(pass int) engine.Hint // if set, passes have no length and no effect
	log      journal
	onPlan   func()
	onCommit func()
	deadline engine.Time // 0: none

	requests []*engine.Request
	made     map[*engine.Request]int
	passes   int
	pass     engine.Pass
}

// journal is a list of what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

// take returns what happened since the last time.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// expect compares what happened since the last time.
func (j *journal) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, j.take(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (f *fakeRank) Submit(r *engine.Request, now engine.Time) error {
	f.log.note("submit %s at %g", r.Label, now)
	f.requests = append(f.requests, r)
	return nil
}

func (f *fakeRank) Cancel(id engine.ID, now engine.Time, discard bool) engine.CancelResult {
	for i, r := range f.requests {
		if r.ID == id {
			f.log.note("cancel %s at %g", r.Label, now)
			f.requests = slices.Delete(f.requests, i, i+1)
			f.pass.Outputs = slices.DeleteFunc(f.pass.Outputs, func(o engine.Output) bool { return o.Request == r })
			return engine.CancelResult{Applied: true}
		}
	}
	f.log.note("cancel nothing at %g", now)
	return engine.CancelResult{}
}

func (f *fakeRank) Ready() bool { return len(f.requests) > 0 }

func (f *fakeRank) Plan(now engine.Time, step uint64) *engine.Pass {
	if f.made == nil {
		f.made = map[*engine.Request]int{}
	}
	f.pass = engine.Pass{Rank: f.rank, Number: uint64(f.passes), Start: now, RankEnd: now, Outputs: f.pass.Outputs[:0]}
	f.passes++
	if f.onPlan != nil {
		f.onPlan()
	}
	if f.stuck != nil {
		f.pass.Hint = f.stuck(f.passes)
		if f.pass.Hint.Kind != engine.HintNone {
			return &f.pass
		}
	}
	f.pass.RankEnd, f.pass.Effect = now+f.length, true
	for _, r := range slices.Clone(f.requests) {
		f.produce(r)
	}
	return &f.pass
}

func (f *fakeRank) produce(r *engine.Request) {
	k := f.made[r]
	f.made[r]++
	done := k+1 == r.OutputLimit()
	f.pass.Outputs = append(f.pass.Outputs, engine.Output{Request: r, Position: int32(k), Token: uint32(k), HasToken: true,
		Completed: done, Cached: 0})
	if done {
		f.requests = slices.DeleteFunc(f.requests, func(q *engine.Request) bool { return q == r })
		delete(f.made, r)
	}
}

func (f *fakeRank) Commit(end engine.Time) *engine.Pass {
	f.pass.End = end
	f.pass.Load = f.Load()
	if f.onCommit != nil {
		f.onCommit()
	}
	return &f.pass
}

func (f *fakeRank) Idle(start, end engine.Time) *engine.Pass {
	f.pass = engine.Pass{Rank: f.rank, Start: start, RankEnd: start, End: end, Idle: true}
	return &f.pass
}

func (f *fakeRank) Deadline() (engine.Time, bool) { return f.deadline, f.deadline > 0 }

func (f *fakeRank) Advance(now engine.Time) *engine.Pass {
	f.log.note("advance at %g", now)
	f.deadline = 0
	return &engine.Pass{Rank: f.rank, Start: now, RankEnd: now, End: now, Idle: true, Effect: true}
}

func (f *fakeRank) Drained() bool { return len(f.requests) == 0 }

func (f *fakeRank) Load() engine.Load { return engine.Load{Running: len(f.requests)} }

func (f *fakeRank) Inspect(s *engine.Snapshot) {
	s.Rank, s.Load = f.rank, f.Load()
}

func (f *fakeRank) Block(n int32) engine.BlockInfo { return engine.BlockInfo{Block: n} }
