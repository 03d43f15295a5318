package workload

import (
	"context"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/report"
	"mockbench/engine/router"
)

// The whole of the embedded demonstration without its screen: load, router, live workers, report.
func TestLoadOnLiveWorkers(t *testing.T) {
	const workers, requests = 2, 150
	cfg := engine.DefaultConfig(engine.VLLM)
	cfg.EmitKVEvents = true
	place, err := router.New(router.Options{Policy: router.KV, Workers: workers, BlockSize: cfg.BlockSize})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"w0", "w1"}
	figures := report.NewCollector(report.Options{Workers: names})
	clock := live.NewClock(50)
	var fleet []*live.Worker
	for i, name := range names {
		w, err := live.Start(context.Background(), live.Options{Name: name, Index: i, Engine: cfg, Ranks: 1, Clock: clock,
			Readers: []engine.Reader{place.Reader(i), figures.Reader(i)}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		fleet = append(fleet, w)
	}
	o := Demo(workers)
	o.Requests, o.Rate = requests, 20
	l := newLoad(t, o)
	if err := within(t, func(ctx context.Context) error { return l.Run(ctx, Fleet(clock, place, fleet)) }); err != nil {
		t.Fatal(err, l.Counts())
	}
	r := figures.Report(report.Final{Now: clock.Now(), Wall: time.Second, Mode: "live"})
	s := r.Summary
	if s.Requests != requests || s.Completed != requests || s.Unfinished != 0 || s.TTFT.Samples != requests {
		t.Errorf("report: %d submitted, %d completed, %d unfinished", s.Requests, s.Completed, s.Unfinished)
	}
	if s.HitRate == nil || *s.HitRate < 0.2 {
		t.Errorf("prefixes are shared but the hit rate is %v", *s.HitRate)
	}
	var predicted, reused, prompt uint64
	for i, c := range place.Counters(nil) {
		predicted, reused, prompt = predicted+c.Predicted, reused+c.Reused, prompt+c.Prompt
		if c.Active != 0 || c.ActiveBlocks != 0 || c.Prefill != 0 || c.Placed == 0 || c.Errors != 0 {
			t.Errorf("worker %d at the end: %+v", i, c)
		}
	}
	if *s.HitRate != float64(reused)/float64(prompt) || prompt != s.InputTokens || predicted == 0 {
		t.Errorf("router saw %d of %d tokens reused, the report %v of %d", reused, prompt, *s.HitRate, s.InputTokens)
	}
	t.Logf("hit rate %.3f, predicted %.3f", *s.HitRate, float64(predicted)/float64(prompt))
}
