package live

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"mockbench/engine"
	"mockbench/engine/backend"
)

// transferOp is one thing that somebody does to one of the transfers of a worker, after a wait.
type transferOp struct {
	kind string
	wait time.Duration
	pick int
}

func drawTransferOps(t *rapid.T, kinds []string) []transferOp {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) transferOp {
		return transferOp{
			kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
			wait: time.Duration(rapid.IntRange(0, 12).Draw(t, "wait")) * time.Millisecond,
			pick: rapid.IntRange(0, 10).Draw(t, "pick"),
		}
	}), 1, 50).Draw(t, "ops")
}

// Whatever happens to handoffs in whatever order: their steps come in order, every stream ends once they are cancelled,
// and no block stays in use.
func TestRandomHandoffs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		role := rapid.SampledFrom([]engine.Role{engine.PrefillRole, engine.DecodeRole}).Draw(rt, "role")
		name := rapid.SampledFrom([]engine.Backend{engine.VLLM, engine.SGLang, engine.TRTLLM}).Draw(rt, "backend")
		kinds := []string{"submit", "submit", "submit", "release", "cancel", "leave"}
		if role == engine.DecodeRole {
			kinds = []string{"submit", "submit", "activate", "activate", "activate", "cancel", "leave"}
		}
		ops := drawTransferOps(rt, kinds)
		var err error
		synctest.Test(t, func(t *testing.T) {
			o := roleOptions(role, name, 12)
			o.Engine.MaxNumSeqs = 3
			if role == engine.PrefillRole {
				o.Engine.EnablePrefixCaching = false // half of the prompts are longer than what is left
			}
			group, problem := backend.NewGroup(o.Engine, 0, 2)
			if problem != nil {
				t.Fatal(problem)
			}
			o.Clock, o.Ranks = NewClock(1), 2
			w := start(o, group, newRuntimeAlarm())
			defer w.Close()
			err = playTransfers(w, role, ops)
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func playTransfers(w *Worker, role engine.Role, ops []transferOp) error {
	var list []*Transfer
	for i, o := range ops {
		time.Sleep(o.wait)
		if o.kind == "submit" {
			prepare := w.Source
			if role == engine.DecodeRole {
				prepare = w.Destination
			}
			t, err := prepare(Request{Prompt: prompt(i, 5+o.pick*10), MaxOutput: 1 + o.pick%5, Rank: -1}, handoffID(i))
			if err == nil {
				err = t.Submit()
			}
			if err != nil {
				return err
			}
			list = append(list, t)
			continue
		}
		if len(list) == 0 {
			continue
		}
		switch t := list[o.pick%len(list)]; o.kind {
		case "release":
			t.Release()
		case "activate":
			t.Activate()
		case "cancel":
			t.Cancel()
		case "leave":
			t.Stream.Cancel()
		}
	}
	time.Sleep(time.Second)
	for _, t := range list {
		t.Cancel()
	}
	time.Sleep(time.Second)
	return checkTransfers(w, list)
}

func checkTransfers(w *Worker, list []*Transfer) error {
	for i, t := range list {
		if t.Stream.end == Open {
			return fmt.Errorf("stream %d has not ended", i)
		}
		last := -1
		for len(t.steps) > 0 {
			s := <-t.steps
			if int(s.Kind) <= last {
				return fmt.Errorf("transfer %d: step %d after %d", i, s.Kind, last)
			}
			last = int(s.Kind)
		}
		if last < 0 {
			return fmt.Errorf("transfer %d: no step", i)
		}
	}
	if n, holds := w.InFlight(), w.Holds(); n != 0 || len(holds) != 0 {
		return fmt.Errorf("%d in flight, holds %+v", n, holds)
	}
	for rank, l := range w.Load() {
		if l.Running+l.Waiting+l.ActiveBlocks != 0 {
			return fmt.Errorf("rank %d: %+v", rank, l)
		}
	}
	return nil
}
