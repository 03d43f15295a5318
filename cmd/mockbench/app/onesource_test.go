package app

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/kv"
	"mockbench/transport/eventplane"
	"mockbench/ui"
	"mockbench/ui/feed"
)

// captured counts the blocks of the KV events that leave the process.
type captured struct {
	mu              sync.Mutex
	stored, removed uint64
}

// Group implements eventplane.GroupSink.
func (c *captured) Group(events *kv.Events) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events.List {
		if e.Kind == kv.Stored {
			c.stored += uint64(e.Count)
		} else {
			c.removed += uint64(e.Count)
		}
	}
}

// The screen and the event plane read the same engine: what is published is what is shown.
func TestScreenAndEventPlaneTellTheSame(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	wire := &captured{}
	plane, err := eventplane.Open(eventplane.Options{Opener: eventplane.ZMQ{Host: "127.0.0.1"},
		Endpoint: eventplane.Endpoint{Namespace: "n", Component: "c", Name: "e"}, Worker: 1, Ranks: 1, KVEvents: true,
		Wires: [][]eventplane.GroupSink{{wire}}})
	if err != nil {
		t.Fatal(err)
	}
	shown := ui.NewFeed(1)
	c := engine.DefaultConfig(engine.VLLM)
	c.NumGPUBlocks, c.BlockSize, c.EmitKVEvents = 60, 16, true
	w, err := live.Start(ctx, live.Options{Name: "w0", Engine: c, Ranks: 1, Clock: live.NewClock(1), NoDelay: true,
		Readers: append([]engine.Reader{shown}, plane.Readers()...)})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		prompt := make([]uint32, 32+rng.IntN(200))
		for i := range prompt {
			prompt[i] = rng.Uint32()
		}
		if _, err := w.Submit(live.Request{Prompt: prompt, MaxOutput: 20, Rank: -1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	w.Close()
	plane.Close(10 * time.Second)
	var b feed.Batch
	shown.Drain(&b)
	wire.mu.Lock()
	defer wire.mu.Unlock()
	if b.Totals.Stored != wire.stored || b.Totals.Removed != wire.removed || wire.stored == 0 || wire.removed == 0 {
		t.Errorf("%d blocks stored and %d removed on the screen, %d and %d published", b.Totals.Stored, b.Totals.Removed, wire.stored, wire.removed)
	}
}
