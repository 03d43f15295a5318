// Package replay runs a workload against a fleet of engines on simulated time: a discrete-event simulation without a wall
// clock, whose results depend on nothing but its inputs.
//
// [Run] is the whole of it. The order in which things happen at one instant is that of settle in loop.go; how a request
// passes through an aggregated or a disaggregated fleet is told in aggregated.go and disaggregated.go.
package replay

import (
	"context"
	"fmt"
	"math"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/trace"
)

// Options describe a run.
type Options struct {
	Trace       *trace.Trace  // is changed by the run: times are aligned
	Stream      *trace.Stream // instead of Trace; is read as a whole only if that is necessary
	Concurrency int           // requests (sessions, if there are any) at a time; 0: requests come when the trace says
	Speedup     float64       // of arrivals and delays; 0 is 1

	Workers         Pool // of an aggregated fleet
	Prefill, Decode Pool // of a disaggregated one

	Router   *router.Config // cost-based placement; nil: round robin
	Seed     uint64         // of tie-breaks; 0 is the reference's
	EventLag engine.Time    // how much later than they happen KV events reach the router
	MaxTime  engine.Time    // simulated milliseconds after which the run is cut; negative: none
	Bounds   report.Bounds
	Records  bool // keep a record of every request
	Lanes    int  // of a graph: plays at a time; 0: when the trace says

	Telemetry *Telemetry // samples of what the fleet does; nil: none
	Observer  Observer   // sees all that happens; nil: nobody does

	General  bool            // do without the fast path
	Cores    int             // goroutines for workers that do not depend on one another; 0 is 1
	Context  context.Context // cuts the run when it ends; nil: none
	Progress func(Progress)  // called now and then, from one goroutine at a time; may be nil

	// Stop looks now and then at the figures so far and cuts the run when it returns true; nil: none. Workers that do not
	// depend on one another have figures of their own, and call it from several goroutines.
	Stop func(*report.Offline) bool

	send Send // workers of somebody else; nil: the fleet is simulated
}

// Pool is the workers of one role.
type Pool struct {
	Engine         engine.Config
	Workers        int
	Ranks          int // data-parallel ranks of a worker; 0 is 1
	TensorParallel int // 0 is 1
}

func (p *Pool) ranks() int { return max(p.Ranks, 1) }

func (p *Pool) gpus() int { return p.ranks() * max(p.TensorParallel, 1) }

// Progress is how far a run is.
type Progress struct {
	Now     engine.Time // of one of the workers, if they run apart
	Arrived int
	Ended   int
	Total   int // requests; 0 if nobody knows yet
}

// Result is the outcome of a run.
type Result struct {
	Offline     *report.Offline
	Fleet       report.Fleet // without wall time
	End         engine.Time  // of the last event
	Interrupted bool         // Options.Context ended first
	Unfinished  int          // requests that arrived and had not ended
	Passes      uint64
}

// disaggregated reports whether the fleet has separate prefill and decode workers.
func (o *Options) disaggregated() bool { return o.Prefill.Workers > 0 || o.Decode.Workers > 0 }

// validate returns a *engine.SettingError for the first setting that is wrong.
func (o *Options) validate() error {
	wrong := func(setting string, kind engine.Kind, given any, allowed string) error {
		return &engine.SettingError{Setting: setting, Kind: kind, Given: fmt.Sprint(given), Allowed: allowed}
	}
	switch {
	case o.Concurrency < 0:
		return wrong("replay_concurrency", engine.KindRange, o.Concurrency, "must be at least 1")
	case o.Speedup != 0:
		if err := trace.CheckSpeedup(o.Speedup); err != nil {
			return err
		}
	}
	if !(o.EventLag >= 0) || math.IsInf(float64(o.EventLag), 0) {
		return wrong("kv_event_lag_ms", engine.KindRange, float64(o.EventLag), "must be finite and not negative")
	}
	if o.EventLag > 0 && o.Router == nil {
		return wrong("kv_event_lag_ms", engine.KindMissing, float64(o.EventLag), "needs router_mode kv_router")
	}
	if math.IsNaN(float64(o.MaxTime)) {
		return wrong("max_sim_time_ms", engine.KindRange, float64(o.MaxTime), "must be a number")
	}
	if o.Router != nil {
		if err := o.Router.Validate(); err != nil {
			return err
		}
	}
	graph := o.Trace != nil && o.Trace.Graph != nil
	if graph && o.Concurrency > 0 {
		return wrong("replay_concurrency", engine.KindConflict, o.Concurrency, "a graph of requests has no concurrency, use agentic_lanes")
	} else if !graph && o.Lanes != 0 {
		return wrong("agentic_lanes", engine.KindUnsupported, o.Lanes, "needs a trace format with plays: agentic_mooncake, weka, dynamo")
	}
	if o.Lanes < 0 {
		return wrong("agentic_lanes", engine.KindRange, o.Lanes, "must be at least 1")
	}
	if err := o.checkBounds(); err != nil {
		return err
	}
	return o.checkPools()
}

func (o *Options) checkBounds() error {
	b := o.Bounds
	for _, x := range []struct {
		name  string
		value float64
	}{{"sla_ttft_ms", b.TTFT}, {"sla_itl_ms", b.ITL}, {"sla_e2e_ms", b.E2E}} {
		if !(x.value >= 0) || math.IsInf(x.value, 0) {
			return &engine.SettingError{Setting: x.name, Kind: engine.KindRange, Given: fmt.Sprint(x.value), Allowed: "must be finite and positive"}
		}
	}
	if b.E2E > 0 && (b.TTFT > 0 || b.ITL > 0) {
		return &engine.SettingError{Setting: "sla_e2e_ms", Kind: engine.KindConflict, Allowed: "stands alone, without sla_ttft_ms and sla_itl_ms"}
	}
	return nil
}

func (o *Options) checkPools() error {
	if !o.disaggregated() {
		return o.Workers.check("num_workers", "extra_engine_args", engine.Aggregated)
	}
	if err := o.Prefill.check("num_prefill_workers", "prefill_engine_args", engine.PrefillRole); err != nil {
		return err
	}
	if err := o.Decode.check("num_decode_workers", "decode_engine_args", engine.DecodeRole); err != nil {
		return err
	}
	p, d := &o.Prefill.Engine, &o.Decode.Engine
	if p.Backend != d.Backend {
		return &engine.SettingError{Setting: "decode_engine_args.engine.backend", Kind: engine.KindConflict, Given: string(d.Backend),
			Allowed: fmt.Sprintf("must be the backend %s of the prefill workers", p.Backend)}
	}
	if p.BlockSize != d.BlockSize {
		return &engine.SettingError{Setting: "decode_engine_args.engine.block_size", Kind: engine.KindConflict, Given: fmt.Sprint(d.BlockSize),
			Allowed: fmt.Sprintf("must be the block size %d of the prefill workers", p.BlockSize)}
	}
	return nil
}

func (p *Pool) check(count, args string, role engine.Role) error {
	if p.Workers < 1 {
		return &engine.SettingError{Setting: count, Kind: engine.KindRange, Given: fmt.Sprint(p.Workers), Allowed: "must be at least 1"}
	}
	if p.Engine.Role != role {
		return &engine.SettingError{Setting: args + ".engine.worker_type", Kind: engine.KindConflict, Given: string(p.Engine.Role),
			Allowed: "must be " + string(role)}
	}
	return p.Engine.Validate()
}
