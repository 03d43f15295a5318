package feed

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
)

// What the screen reads of a real engine is what the engine has: blocks in use at every frame, the batch of every pass,
// and preemptions.
func TestFiguresOfARealEngine(t *testing.T) {
	cfg := engine.DefaultConfig(engine.VLLM)
	cfg.NumGPUBlocks, cfg.BlockSize = 40, 16
	group, err := backend.NewGroup(cfg, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, rng, now := New(1), rand.New(rand.NewPCG(5, 6)), engine.Time(0)
	f.Detail.Store(true)
	var b Batch
	var s engine.Snapshot
	preempted := uint64(0)
	for n := range 2000 {
		if n%10 == 0 {
			r := &engine.Request{MaxOutput: 30 + rng.IntN(60), Prompt: make([]uint32, 64+rng.IntN(200))}
			binary.BigEndian.PutUint64(r.ID[8:], uint64(n+1))
			for i := range r.Prompt {
				r.Prompt[i] = rng.Uint32()
			}
			if err := group.Submit(0, r, now); err != nil {
				t.Fatal(err)
			}
		}
		if !group.Ready() {
			now++
			continue
		}
		_, now = group.Begin(now)
		var want Frame
		for _, p := range group.Complete() {
			f.Pass(p)
			preempted += uint64(len(p.Preemptions))
			want.Preempted = int32(len(p.Preemptions))
			for _, w := range p.Work {
				want.Items++
				if w.Prompt > 0 || w.Waited { // the latter computes lost tokens again
					want.Prefills++
					want.New += int32(w.Tokens)
				} else {
					want.Decodes++
				}
			}
		}
		f.Drain(&b)
		group.Rank(0).Inspect(&s)
		load := b.Loads[0]
		if free := s.Counts[engine.BlockFree]; load.ActiveBlocks+load.InactiveBlocks != load.TotalBlocks-free || load.TotalBlocks != 40 {
			t.Fatalf("step %d: %+v are shown, %d blocks are free", n, load, free)
		}
		if len(b.Frames) != 1 {
			t.Fatalf("step %d: %d frames", n, len(b.Frames))
		}
		got := b.Frames[0]
		if got.Prefills != want.Prefills || got.Decodes != want.Decodes || got.New != want.New || got.Items != want.Items || got.Preempted != want.Preempted {
			t.Fatalf("step %d: got %+v, want %+v", n, got, want)
		}
		if b.Totals.Preemptions != preempted || load.Preemptions != preempted {
			t.Fatalf("step %d: %d and %d preemptions are shown, there were %d", n, b.Totals.Preemptions, load.Preemptions, preempted)
		}
	}
	if preempted == 0 || b.Totals.Finished == 0 {
		t.Errorf("too little happened: %+v", b.Totals)
	}
}
