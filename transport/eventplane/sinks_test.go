package eventplane

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/kv"
)

// next returns the payload of the next captured message as JSON.
func (c *capture) next(t *testing.T, v any) {
	t.Helper()
	select {
	case m := <-c.sent:
		e, err := ReadEnvelope(m.envelope)
		if err == nil {
			err = decode(e.Payload, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(generous):
		t.Fatal("no message")
	}
}

func noFailure(t *testing.T) func(error) { return func(err error) { t.Error(err) } }

func TestLoadSettles(t *testing.T) {
	p, c := capturing(KVMetrics, 1)
	l := newLoadSink(testWorker, 2, 2, p, noFailure(t))
	var got struct {
		Worker uint64 `json:"worker_id"`
		Rank   int    `json:"dp_rank"`
		Blocks int    `json:"kv_used_blocks"`
	}
	l.Load(0, 0, engine.Load{})
	if c.next(t, &got); got.Worker != testWorker || got.Rank != 2 || got.Blocks != 0 {
		t.Errorf("first load %+v", got)
	}
	l.Load(0, 0, engine.Load{Running: 5}) // blocks unchanged: silence
	l.Load(1, 0, engine.Load{ActiveBlocks: 9})
	if c.next(t, &got); got.Rank != 3 || got.Blocks != 9 {
		t.Errorf("load of the other rank %+v", got)
	}
	for n := range 1000 {
		l.Load(0, 0, engine.Load{ActiveBlocks: n})
	}
	l.close()
	messages := len(c.sent)
	for range messages {
		c.next(t, &got)
	}
	if got.Blocks != 999 || messages >= 1000 {
		t.Errorf("latest load %d after %d messages", got.Blocks, messages)
	}
}

func TestForwardPassesAndHeartbeats(t *testing.T) {
	p, c := capturing(ForwardPassMetrics, 1)
	f := newForwardSink(testWorker, 0, 2, p, noFailure(t))
	defer f.close()
	f.Pass(&engine.Pass{Rank: 1, End: 5, Work: make([]engine.Work, 1), FPM: engine.ForwardPassMetrics{PrefillTokens: 12, Milliseconds: 5}})
	f.Pass(&engine.Pass{Rank: 1, Start: 5, End: 5, Idle: true, Effect: true}) // events of a command
	var got goldenForward
	c.next(t, &got)
	if got.Worker != fmt.Sprint(testWorker) || got.Rank != 1 || got.Counter != 1 || got.Scheduled.PrefillTokens != 12 || got.WallTime != 0.005 {
		t.Errorf("pass %+v", got)
	}
	counters := map[int][]uint64{}
	for range 4 { // both ranks are silent now
		got = goldenForward{}
		c.next(t, &got)
		if got.metrics() != (engine.ForwardPassMetrics{}) {
			t.Errorf("heartbeat %+v", got)
		}
		counters[got.Rank] = append(counters[got.Rank], got.Counter)
	}
	if !slices.Equal(counters[0], []uint64{1, 2}) || !slices.Equal(counters[1], []uint64{2, 3}) {
		t.Errorf("counters of the ranks %v", counters)
	}
}

func TestForwardQueueIsBounded(t *testing.T) {
	f := &forwardSink{wake: make(chan struct{}, 1)}
	for range forwardQueue + 10 {
		f.Pass(&engine.Pass{End: 1})
	}
	if len(f.pending) != forwardQueue || f.dropped() != 10 {
		t.Errorf("%d wait, %d lost", len(f.pending), f.dropped())
	}
}

func TestSequences(t *testing.T) {
	p, c := capturing(ActiveSequences, 1)
	s := newSequences(testWorker, p, true, noFailure(t))
	const n = 1000
	for i := range n {
		s.PrefillCompleted(fmt.Sprint(i), 3)
	}
	type event struct {
		Request string `json:"request_id"`
		Worker  struct {
			ID   uint64 `json:"worker_id"`
			Rank int    `json:"dp_rank"`
		}
		Data   string
		Router uint64 `json:"router_id"`
	}
	for i := 0; i < n; {
		var batch struct{ Events []event }
		c.next(t, &batch)
		if len(batch.Events) == 0 || len(batch.Events) > sequenceBatch {
			t.Fatalf("batch of %d", len(batch.Events))
		}
		for _, e := range batch.Events {
			if e.Request != fmt.Sprint(i) || e.Worker.ID != testWorker || e.Worker.Rank != 3 || e.Data != "MarkPrefillCompleted" || e.Router != testWorker {
				t.Fatalf("event %d: %+v", i, e)
			}
			i++
		}
	}
	s.close()
	s.PrefillCompleted("late", 0)
	if full, closed := s.Lost(); full != 0 || closed != 1 {
		t.Errorf("lost: full %d, closed %d", full, closed)
	}
	stopped := &Sequences{queue: make(chan sequenceEvent), stop: make(chan struct{})}
	stopped.PrefillCompleted("no room", 0)
	if full, _ := stopped.Lost(); full != 1 {
		t.Error("an event without room was not counted")
	}
}

// More blocks than may wait are published by the driver itself, in order and complete.
func TestIntakeOverflow(t *testing.T) {
	p, c := capturing(KVEvents, 1)
	k := newKVSink(0, source{worker: testWorker}, p, nil, false, noFailure(t))
	defer k.close()
	const blocks = 4000
	pass := &engine.Pass{Effect: true}
	for i := range uint64(blocks) {
		pass.Events.Sequence = append(pass.Events.Sequence, i)
		pass.Events.Local = append(pass.Events.Local, i)
	}
	k.work.Lock() // the goroutine cannot get on
	passes := 0
	for ; len(k.intake.events.Sequence)+blocks <= intakeBlocks; passes++ {
		pass.Events.List = []kv.Event{{Kind: kv.Stored, Count: blocks, Position: -1}}
		k.Pass(pass)
	}
	k.work.Unlock()
	k.Pass(pass)
	passes++
	k.flush()
	if k.pipeline.history.last != uint64(passes) || len(c.sent) != passes {
		t.Errorf("%d events and %d messages of %d passes", k.pipeline.history.last, len(c.sent), passes)
	}
	for want := uint64(1); want <= uint64(passes); want++ {
		var events []struct {
			Event struct {
				ID uint64 `json:"event_id"`
			}
		}
		if c.next(t, &events); len(events) != 1 || events[0].Event.ID != want {
			t.Fatalf("message %d holds %v", want, events)
		}
	}
}

// A pass of another rank, or without events, is none of the sink's business.
func TestOtherRanks(t *testing.T) {
	p, c := capturing(KVEvents, 1)
	k := newKVSink(1, source{worker: testWorker, rank: 1}, p, nil, false, noFailure(t))
	k.Pass(stored(1))
	k.Pass(&engine.Pass{Rank: 1})
	k.close()
	if len(c.sent) != 0 {
		t.Errorf("%d messages", len(c.sent))
	}
}
