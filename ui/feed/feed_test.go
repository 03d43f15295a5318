package feed

import (
	"math"
	"sync"
	"testing"

	"mockbench/engine"
	"mockbench/kv"
)

// pass returns a record of one prefill chunk, n decodes and two KV events.
func pass(number uint64, n int) *engine.Pass {
	r := &engine.Request{Label: "r1", Prompt: make([]uint32, 100), MaxOutput: 50}
	p := &engine.Pass{Number: number, Start: engine.Time(number), End: engine.Time(number) + 1, Budget: 512,
		Work:       []engine.Work{{Request: r, Tokens: 60, Prompt: 60, Prefix: 20, Length: 100, Waited: true}},
		Admissions: []engine.Admission{{Request: r, Reused: 20, First: true}},
		Load:       engine.Load{ActiveBlocks: int(number), TotalBlocks: 64}}
	for range n {
		p.Work = append(p.Work, engine.Work{Request: r, Tokens: 1, Length: 120})
		p.Outputs = append(p.Outputs, engine.Output{Request: r, HasToken: true})
	}
	if n > 0 {
		p.Outputs[0].Completed = true
	}
	p.Events = kv.Events{Sequence: []uint64{7, 8, 9},
		List: []kv.Event{{ID: 2 * number, Kind: kv.Removed, Count: 1}, {ID: 2*number + 1, Offset: 1, Count: 2}}}
	return p
}

func TestFigures(t *testing.T) {
	f := New(1)
	f.Detail.Store(true)
	f.Pass(pass(3, 2))
	var b Batch
	f.Drain(&b)
	if len(b.Frames) != 1 {
		t.Fatalf("%d frames", len(b.Frames))
	}
	want := Frame{Number: 3, Start: 3, End: 4, New: 60, Cached: 20, Decode: 2, Prefills: 1, Chunked: 1, Decodes: 2,
		Budget: 512, Items: 3}
	if b.Frames[0] != want {
		t.Errorf("got %+v, want %+v", b.Frames[0], want)
	}
	if got, want := b.Totals, (Totals{Passes: 1, New: 60, Cached: 20, Decode: 2, Budget: 512, Finished: 1, OutputTokens: 2, PromptTokens: 100, ReusedTokens: 20,
		Events: 2, Stored: 2, Removed: 1, Time: 4}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := b.Items[0], (Item{Label: "r1", Tokens: 60, Prompt: 60, Done: 80, Length: 100, Total: 150, Fresh: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(b.Events) != 2 || b.Events[1].First != 8 || b.Events[1].At != 4 {
		t.Errorf("got events %+v", b.Events)
	}
}

// What the host tier does is summed up, copies that are told of between passes too.
func TestHostTier(t *testing.T) {
	f := New(1)
	p := pass(3, 0)
	p.Admissions[0].HostReused = 10
	p.Transfers = []engine.Transfer{
		{Kind: engine.StorePrepared, At: 1, Blocks: []uint64{1, 2, 3}},
		{Kind: engine.StoreStarted, At: 1, Done: 5, Blocks: []uint64{1, 2, 3}},
		{Kind: engine.LoadStarted, At: 1, NotBefore: 2, Done: 4, Blocks: []uint64{4, 5}},
		{Kind: engine.LoadStarted, At: 1, NotBefore: 1, Done: engine.Time(math.Inf(1)), Blocks: []uint64{6}},
		{Kind: engine.HostEvicted, At: 1, Blocks: []uint64{7}},
		{Kind: engine.StoreRefused, At: 1, Blocks: []uint64{8, 9}, Unfitting: true},
		{Kind: engine.StoreRefused, At: 1, Blocks: []uint64{8}},
	}
	f.Pass(p)
	f.Pass(&engine.Pass{Idle: true, End: 6, Transfers: []engine.Transfer{
		{Kind: engine.LoadDone, At: 4, Blocks: []uint64{4, 5}}, {Kind: engine.LoadCancelled, At: 5, Blocks: []uint64{6}}}})
	var b Batch
	f.Drain(&b)
	want := Host{Evicted: 1, Refused: 2, Unfitting: 1, Stores: Lane{Started: 1, StartedBlocks: 3, Wait: 4},
		Loads: Lane{Started: 2, StartedBlocks: 3, Done: 1, DoneBlocks: 2, Cancelled: 1, CancelledBlocks: 1, Wait: 2}}
	if got := b.Totals.Host; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if b.Totals.HostTokens != 10 {
		t.Errorf("%d tokens from the host, want 10", b.Totals.HostTokens)
	}
	if copies, blocks := b.Totals.Host.Stores.Flying(); copies != 1 || blocks != 3 {
		t.Errorf("%d stores of %d blocks under way", copies, blocks)
	}
	if copies, blocks := b.Totals.Host.Loads.Flying(); copies != 0 || blocks != 0 {
		t.Errorf("%d loads of %d blocks under way", copies, blocks)
	}
}

func TestOldestFramesAreDropped(t *testing.T) {
	f := New(1)
	f.Detail.Store(true)
	const extra = 100
	for i := range uint64(MaxFrames + extra) {
		f.Pass(pass(i, 1))
	}
	var b Batch
	f.Drain(&b)
	for i, frame := range b.Frames {
		if frame.Number != uint64(i+extra) {
			t.Fatalf("frame %d is pass %d, want %d", i, frame.Number, i+extra)
		}
	}
	events := uint64(2 * (MaxFrames + extra))
	if len(b.Events) != maxEvents || b.Events[maxEvents-1].ID != events-1 || b.Events[0].ID != events-maxEvents {
		t.Errorf("events %d to %d", b.Events[0].ID, b.Events[len(b.Events)-1].ID)
	}
	if want := uint64(extra) + events - maxEvents; b.Dropped != want {
		t.Errorf("dropped %d, want %d", b.Dropped, want)
	}
	if b.Totals.Passes != MaxFrames+extra || b.Totals.Stored != 2*(MaxFrames+extra) {
		t.Errorf("totals %+v do not count what was dropped", b.Totals)
	}
}

func TestFewFramesWithoutDetail(t *testing.T) {
	f := New(1)
	for i := range uint64(100) {
		f.Detail.Store(i >= 50 && i < 53)
		f.Pass(pass(i, 0))
	}
	var b Batch
	f.Drain(&b)
	first := b.Frames[0].Number
	if len(b.Frames) != fewFrames || first != 100-fewFrames || b.Totals.Passes != 100 || b.Totals.New != 6000 {
		t.Errorf("%d frames from pass %d on, totals %+v", len(b.Frames), first, b.Totals)
	}
	if len(b.Events) != 3*2 {
		t.Errorf("%d events of three passes", len(b.Events))
	}
}

func TestTotalsSurviveDrains(t *testing.T) {
	f := New(2)
	var b Batch
	for i := range uint64(10) {
		f.Pass(pass(i, 1))
		f.Drain(&b)
		if b.Totals.Passes != i+1 || len(b.Frames) != 1 || b.Loads[0].ActiveBlocks != int(i) {
			t.Fatalf("drain %d: %d passes, %d frames, load %+v", i, b.Totals.Passes, len(b.Frames), b.Loads[0])
		}
	}
	f.Load(1, 77, engine.Load{Waiting: 5})
	f.Drain(&b)
	if len(b.Frames) != 0 || b.Loads[1].Waiting != 5 || b.Totals.Time != 77 {
		t.Errorf("got %+v", b)
	}
}

func TestConcurrentDrain(t *testing.T) {
	f := New(1)
	var wg sync.WaitGroup
	wg.Add(1)
	const passes = 5000
	go func() {
		defer wg.Done()
		for i := range uint64(passes) {
			f.Pass(pass(i, 0))
		}
	}()
	var b Batch
	next := uint64(0)
	for b.Totals.Passes < passes {
		f.Drain(&b)
		for _, frame := range b.Frames {
			if frame.Number < next {
				t.Fatalf("pass %d after %d", frame.Number, next)
			}
			next = frame.Number + 1
		}
	}
	wg.Wait()
}

func BenchmarkPass(b *testing.B) {
	for name, n := range map[string]int{"empty": 0, "40decodes": 40} {
		b.Run(name, func(b *testing.B) {
			f := New(1)
			p := pass(1, n)
			for b.Loop() {
				f.Pass(p)
			}
		})
	}
}
