package replaycmd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/engine/replay"
	"mockbench/engine/report"
	"mockbench/engine/report/limits"
	"mockbench/engine/router"
	"mockbench/engine/trace"
	"mockbench/profiles"
	"mockbench/profiles/profiledata"
)

// job is what the command line asks for.
type job struct {
	a        *arguments
	profile  *profiles.Profile // nil if none
	options  replay.Options
	limits   []limits.Limit
	warnings []string
}

func names() limits.Names { return report.OfflineNames() }

// resolve checks the command line and reads everything it names but the trace.
func resolve(a *arguments) (*job, error) {
	j := &job{a: a, options: replay.Options{Concurrency: a.concurrency, Speedup: a.speedup, Seed: a.seed, Lanes: a.lanes,
		EventLag: engine.Time(a.eventLag), MaxTime: -1, Bounds: report.Bounds{TTFT: a.ttft, ITL: a.itl, E2E: a.e2e},
		Records: a.reportJSONL != "", Cores: a.cores}}
	for _, check := range []func() error{j.readLimits, j.checkWords, j.readProfile, j.checkNumbers, j.readRouter, j.readFleet} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return j, nil
}

func (j *job) readLimits() error {
	for _, text := range j.a.failOn {
		l, err := limits.Parse(text, names())
		if err != nil {
			return &flags.UsageError{Text: "--fail-on: " + err.Error()}
		}
		j.limits = append(j.limits, l)
	}
	abortable := slices.ContainsFunc(j.limits, limits.Limit.Abortable)
	if j.a.abortOnFail && !abortable {
		return wrong("abort-on-fail", engine.KindMissing, "", "needs --fail-on with an upper bound of a maximum or a count, or a lower one of a minimum: nothing else is known before the end")
	}
	return nil
}

func wrong(flag string, kind engine.Kind, given any, allowed string) error {
	return &engine.SettingError{Setting: "--" + flag, Kind: kind, Given: fmt.Sprint(given), Allowed: allowed}
}

func quoted(s string) string { return strconv.Quote(s) }

// offlineOnly lists the flags that a replay on the wall clock does not know.
var offlineOnly = []string{"prefill-engine-args", "decode-engine-args", "kv-event-lag-ms", "telemetry-jsonl", "telemetry-interval-ms",
	"record", "screen", "cores"}

// checkWords checks flags with a closed list of values, and what this build does not do.
func (j *job) checkWords() error {
	a := j.a
	switch a.replayMode {
	case "offline":
	case "online":
		for _, flag := range offlineOnly {
			if a.given(flag) {
				return wrong("replay-mode", engine.KindConflict, a.replayMode, fmt.Sprintf("--%s needs simulated time: use offline", flag))
			}
		}
	default:
		return wrong("replay-mode", engine.KindUnknown, quoted(a.replayMode), "allowed: offline, online")
	}
	if a.routerMode == "kv" { // as the frontend calls it
		a.routerMode = "kv_router"
	}
	if a.routerMode != "round_robin" && a.routerMode != "kv_router" {
		return wrong("router-mode", engine.KindUnknown, quoted(a.routerMode), "allowed: round_robin, kv_router")
	}
	if a.given("model-name") && a.modelName == "" {
		return wrong("model-name", engine.KindRange, quoted(""), "must not be empty")
	}
	if a.given("execution-model") && strings.TrimSpace(a.executionModel) == "" {
		return wrong("execution-model", engine.KindRange, quoted(a.executionModel), "must not be blank")
	}
	return nil
}

// checkNumbers checks what must hold of numbers that were given, 0 included.
func (j *job) checkNumbers() error {
	a := j.a
	for _, c := range []struct {
		flag    string
		holds   bool
		given   any
		allowed string
	}{
		{"replay-concurrency", a.concurrency >= 1, a.concurrency, "must be at least 1"},
		{"agentic-lanes", a.lanes >= 1, a.lanes, "must be at least 1"},
		{"trace-block-size", a.traceBlockSize >= 1, a.traceBlockSize, "must be at least 1"},
		{"sla-ttft-ms", positive(a.ttft), a.ttft, "must be finite and positive"},
		{"sla-itl-ms", positive(a.itl), a.itl, "must be finite and positive"},
		{"sla-e2e-ms", positive(a.e2e), a.e2e, "must be finite and positive"},
		{"max-sim-time-ms", a.maxTime == 0 || positive(a.maxTime), a.maxTime, "must be finite and not negative"},
		{"kv-event-lag-ms", a.eventLag == 0 || positive(a.eventLag), a.eventLag, "must be finite and not negative"},
		{"telemetry-interval-ms", positive(a.telemetryInterval), a.telemetryInterval, "must be finite and positive"},
		{"arrival-speedup-ratio", positive(a.speedup), a.speedup, "must be finite and positive"},
		{"request-rate", positive(a.rate), a.rate, "must be finite and positive"},
		{"turns-per-session", a.turns >= 1, a.turns, "must be at least 1"},
		{"cores", a.cores >= 1, a.cores, "must be at least 1"},
	} {
		if a.given(c.flag) && !c.holds {
			return wrong(c.flag, engine.KindRange, c.given, c.allowed)
		}
	}
	if a.given("kv-event-lag-ms") && a.routerMode != "kv_router" {
		return wrong("kv-event-lag-ms", engine.KindMissing, a.eventLag, "needs --router-mode kv_router")
	}
	if a.given("sla-e2e-ms") && (a.given("sla-ttft-ms") || a.given("sla-itl-ms")) {
		return wrong("sla-e2e-ms", engine.KindConflict, a.e2e, "stands alone, without --sla-ttft-ms and --sla-itl-ms")
	}
	if a.given("max-sim-time-ms") {
		j.options.MaxTime = engine.Time(a.maxTime)
	}
	return nil
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// read returns the JSON of a flag, from the file it names with @.
func read(flag, text string) ([]byte, error) {
	path, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		if !strings.HasPrefix(strings.TrimSpace(text), "{") {
			return nil, wrong(flag, engine.KindType, quoted(text), "must be a JSON object, or @ and the name of a file")
		}
		return []byte(text), nil
	}
	data, err := profiles.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return data, nil
}

func (j *job) readRouter() error {
	a := j.a
	if a.routerMode != "kv_router" {
		if a.given("router-config") {
			j.warnings = append(j.warnings, "--router-config has no effect with --router-mode round_robin")
		}
		return nil
	}
	c := router.DefaultConfig()
	if j.profile != nil && j.profile.Load != nil {
		c.Model = j.profile.Load.Router
	}
	if a.routerConfig != "" {
		data, err := read("router-config", a.routerConfig)
		if err != nil {
			return err
		}
		if c, err = router.ParseConfig(data); err != nil {
			return fmt.Errorf("--router-config: %w", err)
		}
	}
	j.options.Router = &c
	return nil
}

// readFleet reads the configurations of the workers.
func (j *job) readFleet() error {
	a, o := j.a, &j.options
	split := j.split()
	switch {
	case split && a.given("extra-engine-args"):
		return wrong("extra-engine-args", engine.KindConflict, "", "cannot be combined with --prefill-engine-args and --decode-engine-args")
	case split && j.profile == nil && !(a.given("prefill-engine-args") && a.given("decode-engine-args")):
		return wrong("prefill-engine-args", engine.KindMissing, "", "and --decode-engine-args must be given together")
	case !split && (a.given("num-prefill-workers") || a.given("num-decode-workers")):
		return wrong("num-prefill-workers", engine.KindConflict, a.prefillWorkers, "and --num-decode-workers are for disaggregated fleets; use --num-workers")
	case split && a.given("num-workers"):
		return wrong("num-workers", engine.KindConflict, a.workers, "is for aggregated fleets; use --num-prefill-workers and --num-decode-workers")
	}
	var err error
	if !split {
		o.Workers, err = j.pool("extra-engine-args", a.engineArgs, a.workers, "num-workers", engine.Aggregated)
		return err
	}
	if o.Prefill, err = j.pool("prefill-engine-args", a.prefillArgs, a.prefillWorkers, "num-prefill-workers", engine.PrefillRole); err != nil {
		return err
	}
	o.Decode, err = j.pool("decode-engine-args", a.decodeArgs, a.decodeWorkers, "num-decode-workers", engine.DecodeRole)
	return err
}

func (j *job) pool(flag, text string, workers int, count string, role engine.Role) (replay.Pool, error) {
	if workers < 1 {
		return replay.Pool{}, wrong(count, engine.KindRange, workers, "must be at least 1")
	}
	data := []byte("{}")
	if text != "" {
		var err error
		if data, err = read(flag, text); err != nil {
			return replay.Pool{}, err
		}
	}
	object, err := profiles.ParseJSON("--"+flag, data)
	if err != nil {
		return replay.Pool{}, err
	}
	object = overlay(j.base(role), object)
	if err := j.profileData(flag, object); err != nil {
		return replay.Pool{}, err
	}
	l, err := profiles.Resolve(object)
	if err != nil {
		if text == "" && j.profile != nil {
			flag = "profile " + j.profile.Name
		}
		return replay.Pool{}, fmt.Errorf("--%s: %w", flag, err)
	}
	if l.Engine.Role != role {
		return replay.Pool{}, wrong(flag, engine.KindConflict, l.Engine.Role, fmt.Sprintf("engine.worker_type must be %s", role))
	}
	if err := l.LoadTiming(); err != nil {
		return replay.Pool{}, fmt.Errorf("--%s: AIS timing: %w", flag, err)
	}
	if p := l.Dynamo.RouterQueuePolicy; p != nil && j.options.Router != nil {
		j.options.Router.QueuePolicy = router.QueuePolicy(*p)
	}
	j.warnings = append(j.warnings, l.Warnings...)
	return replay.Pool{Engine: l.Engine, Workers: workers, Ranks: int(l.DPSize), TensorParallel: int(l.TensorParallelSize)}, nil
}

// profileData makes measured pass times the timing model of a pool.
func (j *job) profileData(flag string, o *profiles.Object) error {
	const name = "planner-profile-data"
	if !j.a.given(name) {
		return nil
	}
	path := j.a.profileData
	if _, ok := o.Get("engine.timing_model"); ok {
		return wrong(name, engine.KindConflict, quoted(path), fmt.Sprintf("cannot be combined with engine.timing_model of --%s", flag))
	}
	if err := profiledata.Check(path); err != nil {
		return wrong(name, engine.KindRange, quoted(path), fmt.Sprintf("must be an NPZ file or a profiler's results directory: %v", err))
	}
	o.Set("engine.timing_model.type", "external")
	o.Set("engine.timing_model.provider", "dynamo_profile")
	o.Set("engine.timing_model.config.path", path)
	return nil
}

// synthetic lists the flags of a synthetic load.
var synthetic = []string{"input-tokens", "output-tokens", "request-count", "request-rate", "arrival-interval-ms", "arrival-seed",
	"turns-per-session", "inter-turn-delay-ms", "shared-prefix-ratio", "num-prefix-groups"}

// traceOnly lists the flags of a trace.
var traceOnly = []string{"trace-format", "trace-block-size", "trace-shared-prefix-ratio", "trace-num-prefix-groups", "agentic-lanes",
	"execution-model", "weka-nested-timestamp-basis"}

// load reads the trace or makes the synthetic load.
func (j *job) load() (err error) {
	a := j.a
	made := a.given("input-tokens") || a.given("output-tokens") || a.given("request-count")
	switch {
	case made && len(a.files) > 0:
		return &flags.UsageError{Text: "a trace and a synthetic load cannot be combined"}
	case made:
		j.options.Trace, err = j.generate()
		return err
	case len(a.files) == 0:
		return &flags.UsageError{Text: "a trace file is needed, or --input-tokens, --output-tokens and --request-count"}
	}
	for _, name := range synthetic {
		if a.given(name) {
			return &flags.UsageError{Text: fmt.Sprintf("--%s is for a synthetic load, not for a trace", name)}
		}
	}
	format, err := trace.ParseFormat(a.traceFormat)
	if err != nil {
		return err
	}
	agentic := format == trace.Agentic || format == trace.Weka
	basis := trace.Basis(a.wekaBasis)
	if err := trace.CheckBasis(basis); err != nil {
		return err
	}
	switch {
	case format == trace.Applied && a.concurrency == 0:
		return wrong("trace-format", engine.KindMissing, a.traceFormat, "has no arrival times, it needs --replay-concurrency")
	case agentic && a.executionModel == "":
		return wrong("execution-model", engine.KindMissing, "", fmt.Sprintf("is needed for traces of format %s: they name other models", a.traceFormat))
	case a.lanes > 0 && !agentic && format != trace.Dynamo:
		return wrong("agentic-lanes", engine.KindUnsupported, a.lanes, "needs a trace format with plays: agentic_mooncake, weka, dynamo")
	case format != trace.Weka && a.given("weka-nested-timestamp-basis"):
		return wrong("weka-nested-timestamp-basis", engine.KindUnsupported, a.wekaBasis, "needs --trace-format weka")
	}
	if format != trace.Applied && (a.given("trace-shared-prefix-ratio") || a.given("trace-num-prefix-groups")) {
		j.warnings = append(j.warnings, fmt.Sprintf("--trace-shared-prefix-ratio and --trace-num-prefix-groups have no effect on traces of format %s", a.traceFormat))
	}
	if (format == trace.Mooncake || format == trace.MooncakeDelta) && len(a.files) == 1 && a.telemetryJSONL == "" {
		if j.options.Stream = trace.NewStream(a.files[0], a.traceBlockSize, a.speedup); j.options.Stream != nil {
			return nil
		}
	}
	j.options.Trace, err = trace.Read(a.files, trace.Options{Format: format, BlockSize: a.traceBlockSize, PrefixRatio: a.prefixRatio,
		PrefixGroups: a.prefixGroups, Nested: basis})
	if err == nil && j.options.Trace.Graph != nil && a.executionModel == "" {
		return wrong("execution-model", engine.KindMissing, "", "is needed for traces of agents: they name other models")
	}
	return err
}

func (j *job) generate() (*trace.Trace, error) {
	a := j.a
	for _, name := range traceOnly {
		if a.given(name) {
			return nil, &flags.UsageError{Text: fmt.Sprintf("--%s is for a trace, not for a synthetic load", name)}
		}
	}
	ways := 0
	for _, name := range []string{"replay-concurrency", "request-rate", "arrival-interval-ms"} {
		if a.given(name) {
			ways++
		}
	}
	if ways != 1 {
		return nil, &flags.UsageError{Text: "a synthetic load needs exactly one of --replay-concurrency, --request-rate and --arrival-interval-ms"}
	}
	o := &j.options
	size := o.Workers.Engine.BlockSize
	if o.Prefill.Workers > 0 {
		size = o.Prefill.Engine.BlockSize
	}
	s := trace.Synthetic{Input: a.inputTokens, Output: a.outputTokens, Requests: a.requests, Turns: a.turns, PrefixRatio: a.sharedRatio,
		PrefixGroups: a.sharedGroups, Delay: a.turnDelay, BlockSize: size,
		Arrivals: trace.Arrivals{Given: !a.given("replay-concurrency"), Rate: a.rate, Interval: a.interval, Seed: a.arrivalSeed}}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s.Generate(), nil
}
