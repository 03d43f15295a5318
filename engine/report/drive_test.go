package report

import (
	"testing"

	"mockbench/engine"
	"mockbench/engine/backend"
)

// drive is the smallest driver there is: it lets requests arrive, runs passes one after the other and shows the records
// to the collector, until everything is done or time is up.
func drive(t *testing.T, cfg engine.Config, requests []*engine.Request, until engine.Time, o Options) Report {
	t.Helper()
	group, err := backend.NewGroup(cfg, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	o.Workers = []string{"w0"}
	c := NewCollector(o)
	m := c.workers[0]
	now, next := engine.Time(0), 0
	for now <= until {
		for ; next < len(requests) && requests[next].Arrival <= now; next++ {
			if err := group.Submit(0, requests[next], now); err != nil {
				t.Fatal(err)
			}
			m.Submitted(0, requests[next], now)
		}
		if !group.Ready() {
			if next == len(requests) {
				break
			}
			now = requests[next].Arrival
			continue
		}
		_, end := group.Begin(now)
		if end > until {
			now = until
			break
		}
		for _, p := range group.Complete() {
			m.Pass(p)
		}
		now = end
	}
	return c.Report(Final{Now: now, Generator: "test", Mode: "replay"})
}

// config is an engine with fixed pass lengths.
func config(blocks int, budget uint64, prefillMS, decodeMS float64) engine.Config {
	cfg := engine.DefaultConfig(engine.VLLM)
	cfg.BlockSize, cfg.NumGPUBlocks, cfg.MaxNumBatchedTokens = 16, blocks, budget
	cfg.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: prefillMS, DecodeMS: decodeMS}
	return cfg
}

// batch returns n requests at time 0 whose prompts have nothing in common.
func batch(n, prompt, output int) (requests []*engine.Request) {
	for i := range n {
		requests = append(requests, request(i, 0, prompt, output))
	}
	return requests
}

func request(number int, arrival engine.Time, prompt, output int) *engine.Request {
	r := &engine.Request{ID: engine.ID{15: byte(number)}, MaxOutput: output, Arrival: arrival}
	for i := range prompt {
		r.Prompt = append(r.Prompt, uint32(number*100_000+i))
	}
	return r
}
