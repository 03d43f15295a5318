package replay

import (
	"mockbench/engine"
	"mockbench/engine/report"
)

// Telemetry asks for samples of what a fleet does.
type Telemetry struct {
	Interval engine.Time                 // between two samples, positive
	Write    func(s report.Fields) error // takes a sample
}

// sampler takes the samples of a run.
type sampler struct {
	Telemetry
	s     *sim
	count int
	last  engine.Time // of the latest sample
	sum   traffic     // since then
	pools [2]interval // prefill, decode
}

// traffic is what happened to requests between two samples.
type traffic struct {
	arrived, completed int
	input, output      int
	ttft, itl          float64
	ttfts, itls        int
	hits               float64
	placements         int
	accepted, forwards int
}

// interval is what happened in a pool between two samples.
type interval struct{ reused, prompt, preemptions int }

func (x *sampler) arrive() {
	if x != nil {
		x.sum.arrived++
	}
}

// placed notes how much of a prompt a router found at the rank it chose.
func (x *sampler) placed(overlap, blocks int) {
	if x != nil && blocks > 0 {
		x.sum.hits += float64(overlap) / float64(blocks)
		x.sum.placements++
	}
}

func (x *sampler) pass(p *pool, r *engine.Pass) {
	if x == nil {
		return
	}
	x.sum.accepted += r.Drafts.Accepted
	x.sum.forwards += r.Drafts.Forwards
	i := &x.pools[side(p.stage)]
	i.reused += r.Prefix.Reused
	i.prompt += r.Prefix.Total
	for k := range r.Preemptions {
		if !r.Preemptions[k].Retraction {
			i.preemptions++
		}
	}
}

// complete notes a request that was served.
func (x *sampler) complete(e *report.Entry) {
	if x == nil {
		return
	}
	t := &x.sum
	t.completed++
	t.input += e.Input
	t.output += e.Tokens()
	ttft, itl := e.Latencies()
	if ttft > 0 {
		t.ttft += ttft
		t.ttfts++
	}
	if e.Tokens() > 1 {
		t.itl += itl
		t.itls++
	}
}

// side is where the figures of a stage stand in a sample; an aggregated fleet counts as decode.
func side(s report.Stage) int {
	if s == report.Prefill {
		return 0
	}
	return 1
}

// next returns when the next sample is due.
func (x *sampler) next() engine.Time { return engine.Time(float64(x.count) * float64(x.Interval)) }

// take takes a sample.
func (x *sampler) take(kind string) error {
	now := x.s.now
	var f report.Fields
	add := func(key string, value any) { f = append(f, report.Field{Key: key, Value: value}) }
	add("sample_ordinal", x.count)
	add("kind", kind)
	add("interval_start_ms", float64(x.last))
	add("sampled_at_ms", float64(now))
	if kind == "baseline" {
		add("traffic", (&traffic{}).fields(0))
	} else {
		add("traffic", x.sum.fields(float64(now-x.last)/1000))
	}
	var gauges [2][]report.Fields
	var waiting [2]int
	ids := [2][]int{{}, {}}
	gauges[0], gauges[1] = []report.Fields{}, []report.Fields{}
	for _, p := range x.s.pools {
		k := side(p.stage)
		waiting[k] += p.placer.Waiting()
		for _, w := range p.workers {
			ids[k] = append(ids[k], w.id)
			for rank := range w.loads {
				gauges[k] = append(gauges[k], gauge(w.id, rank, w.loads[rank]))
			}
		}
	}
	add("prefill_scheduler_metrics", gauges[0])
	add("decode_scheduler_metrics", gauges[1])
	counted := x.pools
	if kind == "baseline" {
		counted = [2]interval{}
	}
	add("prefill_interval_metrics", counted[0].fields())
	add("decode_interval_metrics", counted[1].fields())
	add("router_pending_prefill_requests", waiting[0])
	add("router_pending_decode_requests", waiting[1])
	add("active_prefill_ids", ids[0])
	add("active_decode_ids", ids[1])
	for _, key := range []string{"starting_prefill_ids", "starting_decode_ids", "draining_prefill_ids", "draining_decode_ids"} {
		add(key, []int{})
	}
	x.count++
	x.last = now
	if kind != "baseline" {
		x.sum, x.pools = traffic{}, [2]interval{}
	}
	return x.Write(f)
}

// finish takes the last sample, unless there is nothing to tell.
func (x *sampler) finish() error {
	if x.s.now == x.last && x.sum == (traffic{}) && x.pools == ([2]interval{}) {
		return nil
	}
	return x.take("final")
}

func (t *traffic) fields(seconds float64) report.Fields {
	mean := func(sum float64, n int) float64 {
		if n == 0 {
			return 0
		}
		return sum / float64(n)
	}
	var accept any
	if t.forwards > 0 {
		accept = float64(t.accepted) / float64(t.forwards)
	}
	return report.Fields{
		{Key: "duration_s", Value: seconds}, {Key: "arriving_requests", Value: t.arrived}, {Key: "completed_requests", Value: t.completed},
		{Key: "avg_isl", Value: mean(float64(t.input), t.completed)}, {Key: "avg_osl", Value: mean(float64(t.output), t.completed)},
		{Key: "avg_ttft_ms", Value: mean(t.ttft, t.ttfts)}, {Key: "avg_itl_ms", Value: mean(t.itl, t.itls)},
		{Key: "ttft_count", Value: t.ttfts}, {Key: "itl_count", Value: t.itls},
		{Key: "avg_router_kv_hit_rate", Value: mean(t.hits, t.placements)}, {Key: "router_kv_hit_rate_count", Value: t.placements},
		{Key: "avg_accept_length", Value: accept}, {Key: "accept_length_forward_count", Value: t.forwards},
	}
}

func (i interval) fields() report.Fields {
	return report.Fields{{Key: "cache_hit_tokens", Value: i.reused}, {Key: "cache_total_tokens", Value: i.prompt}, {Key: "preemptions", Value: i.preemptions}}
}

func gauge(worker, rank int, l engine.Load) report.Fields {
	total := float64(l.TotalBlocks)
	return report.Fields{
		{Key: "worker_id", Value: worker}, {Key: "dp_rank", Value: rank}, {Key: "active_blocks", Value: l.ActiveBlocks},
		{Key: "inactive_blocks", Value: l.InactiveBlocks}, {Key: "total_blocks", Value: l.TotalBlocks},
		{Key: "active_cache_usage", Value: float64(l.ActiveBlocks) / total},
		{Key: "physical_cache_usage", Value: float64(l.ActiveBlocks+l.InactiveBlocks) / total},
		{Key: "running_requests", Value: l.Running}, {Key: "waiting_requests", Value: l.Waiting},
	}
}
