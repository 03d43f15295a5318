package feed

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
)

// What records tell of copies adds up to the state of the host tier.
func TestHostTierOfARealEngine(t *testing.T) {
	cfg := engine.DefaultConfig(engine.VLLM)
	cfg.NumGPUBlocks, cfg.BlockSize, cfg.KVCacheBytesPerToken, cfg.EmitKVEvents = 40, 16, 131072, true
	cfg.HostOffload = engine.DefaultHostOffload(60)
	cfg.HostOffload.D2HBandwidthGBps, cfg.HostOffload.H2DBandwidthGBps = 0.4, 0.4
	group, err := backend.NewGroup(cfg, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, rng, now := New(1), rand.New(rand.NewPCG(3, 4)), engine.Time(0)
	tell := func(records []*engine.Pass) {
		for _, p := range records {
			if p != nil {
				f.Pass(p)
			}
		}
	}
	var b Batch
	var s engine.Snapshot
	for n := range 3000 {
		if n%12 == 0 {
			r := &engine.Request{MaxOutput: 1 + rng.IntN(20), Prompt: make([]uint32, 64+rng.IntN(256))}
			binary.BigEndian.PutUint64(r.ID[8:], uint64(n+1))
			kind := rng.Uint32N(6)
			for i := range r.Prompt {
				r.Prompt[i] = kind
			}
			if err := group.Submit(0, r, now); err != nil {
				t.Fatal(err)
			}
		}
		if at, ok := group.Deadline(); ok && at <= now {
			tell(group.Advance(now))
		}
		if group.Ready() {
			_, end := group.Begin(now)
			now = max(end, now+1)
			tell(group.Complete())
		} else {
			now += 5
		}
		f.Drain(&b)
		group.Rank(0).Inspect(&s)
		h := b.Totals.Host
		if got := int(h.Stores.DoneBlocks) - int(h.Evicted); got != s.Host.Resident {
			t.Fatalf("step %d: %d blocks stored and not evicted, %d resident", n, got, s.Host.Resident)
		}
		if _, blocks := h.Stores.Flying(); int(blocks) != s.Host.Pending {
			t.Fatalf("step %d: %d blocks being stored, %d pending", n, blocks, s.Host.Pending)
		}
	}
	h := b.Totals.Host
	if h.Loads.Done == 0 || h.Evicted == 0 || h.Stores.Done == 0 || b.Totals.HostTokens == 0 {
		t.Errorf("too little happened: %+v", h)
	}
}
