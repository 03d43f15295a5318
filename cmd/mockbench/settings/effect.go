package settings

import (
	"fmt"
	"slices"
	"strings"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
)

// withoutEffect warns of given flags that change nothing.
func (r *resolver) withoutEffect(file bool) {
	if file {
		r.replacedByFile()
	}
	var loose []string
	for _, f := range flags.All() {
		if f.Group == flags.GroupTiming && strings.HasPrefix(f.Name, "--ais-") && f.Name != "--ais-perf-model" && f.Name != "--ais-perf-config" && r.given(f.Name) {
			loose = append(loose, f.Name)
		}
	}
	if len(loose) > 0 && !r.v.On("--ais-perf-model") && !r.given("--ais-perf-config") {
		r.warn("%s has no effect without --ais-perf-model", strings.Join(loose, ", "))
	}
	e := &r.s.Launch.Engine
	if r.given("--sglang-page-size") && e.Backend != engine.SGLang {
		r.warn("--sglang-page-size has no effect with engine %s", e.Backend)
	}
	role := r.s.Pools[0].Role
	if len(r.s.Ports.Bootstrap) > 0 && role != engine.PrefillRole {
		r.warn("--bootstrap-ports has no effect with role %s", role)
	}
	if len(r.s.Ports.Bootstrap) > 0 && role == engine.PrefillRole && e.Backend == engine.TRTLLM {
		r.warn("--bootstrap-ports has no effect with engine %s, which prefills and decodes one after the other", e.Backend)
	}
	if len(r.s.Ports.ZMQEvents) > 0 && (!e.EnablePrefixCaching || role == engine.DecodeRole) {
		r.warn("--zmq-kv-events-ports has no effect because this worker publishes no KV events")
	}
	if e.KVTransferBandwidth > 0 && e.KVTransferBytesPerToken == 0 && role == engine.PrefillRole {
		r.warn("--kv-transfer-bandwidth has no effect without --kv-bytes-per-token, since the model does not say its size")
	}
	if r.s.Load != nil {
		for _, name := range []string{"--endpoint", "--request-plane", "--response-plane", "--event-plane", "--embedded-nats", "--router-mode",
			"--bootstrap-ports"} {
			if r.given(name) {
				r.warn("%s has no effect on a built-in load, give --discovery-backend to serve a frontend", name)
			}
		}
		if v := r.v.Get("--discovery-backend"); v.Source == flags.FromEnv && v.Text != "mem" {
			r.warn("%s=%s has no effect on a built-in load, give --discovery-backend to serve a frontend", v.Spelling, v.Text)
		}
	}
}

// replacedByFile warns of what a configuration file overrides.
func (r *resolver) replacedByFile() {
	var ignored []string
	for _, v := range r.v.FromCommandLine() {
		switch v.Flag.Group {
		case flags.GroupEngine, flags.GroupHost, flags.GroupTiming, flags.GroupOutput, flags.GroupSGLang:
			if v.Flag.Name != "--extra-engine-args" && v.Flag.Name != "--kv-bytes-per-token" && v.Flag.Name != "--sglang-generate" {
				ignored = append(ignored, v.Spelling)
			}
		}
	}
	if len(ignored) > 0 {
		r.warn("%s ignored because --extra-engine-args replaces the engine flags", strings.Join(ignored, ", "))
	}
	if role := r.s.Launch.Engine.Role; role != r.s.Pools[0].Role {
		r.warn("engine.worker_type %s of the file differs from the registered role %s", role, r.s.Pools[0].Role)
	}
	d := &r.s.Launch.Dynamo
	if !d.EnableLocalIndexer && r.s.Launch.Engine.EnablePrefixCaching {
		r.warn("dynamo.enable_local_indexer is false in the file, so routers cannot recover lost KV events")
	}
}

// Refuse returns an error for the first setting that this build recognises and cannot do.
func Refuse(v *flags.Values, s *Settings) error {
	for _, f := range flags.All() {
		given := v.Get(f.Name)
		unused := s.Load != nil && f.Group == flags.GroupWorkers || s.Router == nil && f.Group == flags.GroupRouter
		if !unused && given.Source == flags.FromEnv && len(f.Allowed) > 0 && !given.Unset && !slices.Contains(f.Allowed, given.Text) {
			return wrongWord(given.Spelling, given.Text, f.Allowed)
		}
	}
	if h := s.Launch.Engine.HostOffload; h != nil && h.Scope == engine.ScopeShared {
		return unsupported("engine.native_host_offload.scope", h.Scope, "a live worker has only "+engine.ScopeRank)
	}
	if role := s.Launch.Engine.Role; s.Load != nil && role != engine.Aggregated && !s.Split() {
		return unsupported("engine.worker_type", string(role),
			fmt.Sprintf("a built-in load needs %s workers, or --prefill-workers and --decode-workers", engine.Aggregated))
	}
	return s.CheckPorts()
}
