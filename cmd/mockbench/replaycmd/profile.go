package replaycmd

import (
	"fmt"

	"mockbench/cmd/mockbench/settings"
	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/profiles"
)

// readProfile opens the profile whose workers and placement are to be replayed, and lets it fill in what no flag gives:
// number of workers, placement and limits of latencies. Its load gives way to the trace.
func (j *job) readProfile() error {
	a := j.a
	if a.profile == "" {
		return nil
	}
	p, _, err := profiles.UserStore().Open(a.profile)
	if err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	j.profile = p
	if j.split() && a.replayMode == "online" {
		return wrong("replay-mode", engine.KindConflict, a.replayMode, "the profile has workers of both roles, which needs simulated time: use offline")
	}
	if !a.given("num-workers") {
		a.workers = int(p.Workers)
	}
	if p.PrefillWorkers > 0 && !a.given("num-prefill-workers") {
		a.prefillWorkers = int(p.PrefillWorkers)
	}
	if p.PrefillWorkers > 0 && !a.given("num-decode-workers") {
		a.decodeWorkers = int(p.DecodeWorkers)
	}
	if !a.given("sla-ttft-ms") && !a.given("sla-itl-ms") && !a.given("sla-e2e-ms") {
		j.options.Bounds = report.Bounds{TTFT: p.SLO.TTFT, ITL: p.SLO.ITL}
		if p.SLO.TTFT == 0 && p.SLO.ITL == 0 { // a bound of the whole stands alone
			j.options.Bounds.E2E = p.SLO.E2E
		}
	}
	if p.Load == nil {
		return nil
	}
	j.warnings = append(j.warnings, fmt.Sprintf("--profile %s: its load is not used, requests are those of the replay", p.Name))
	switch {
	case a.given("router-mode"):
	case p.Load.Routing == router.KV:
		a.routerMode = "kv_router"
	case p.Load.Routing != router.RoundRobin:
		j.warnings = append(j.warnings, fmt.Sprintf("--profile %s: a replay has no routing %s, it uses round_robin", p.Name, p.Load.Routing))
	}
	return nil
}

// split reports whether the fleet has workers of both roles.
func (j *job) split() bool {
	a := j.a
	given := a.given("prefill-engine-args") || a.given("decode-engine-args")
	return given || j.profile != nil && j.profile.PrefillWorkers > 0 && !a.given("num-workers")
}

// base returns the engine object of the profile for workers of a role; an empty one without a profile.
func (j *job) base(role engine.Role) *profiles.Object {
	if j.profile == nil {
		return profiles.NewObject()
	}
	o := j.profile.Launch.Clone()
	if role != engine.Aggregated {
		o.Set("engine.worker_type", string(role))
	}
	return o
}

// overlay puts the settings of one object over those of another.
func overlay(base, over *profiles.Object) *profiles.Object {
	settings.Leaves(over, func(path string, v any) { base.Set(path, v) })
	return base
}
