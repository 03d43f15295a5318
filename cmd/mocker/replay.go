package mocker

import (
	"context"
	"io"
	"strconv"
	"strings"

	"mockbench/cmd/mockbench/replaycmd"
	"mockbench/engine"
	"mockbench/engine/report"
)

// ReplayOptions describe the replay of a trace. The zero value of a field is the default; what the fields mean and what
// they may be says docs/replay.md under the flag of the same name.
type ReplayOptions struct {
	ExtraEngineArgs string // JSON text of the engine configuration
	RouterConfig    string // JSON text of the settings of kv_router
	RouterMode      string // round_robin (default) or kv_router
	NumWorkers      int    // 0 is 1

	ReplayConcurrency        int     // requests or sessions at a time; 0: when the trace says
	ArrivalSpeedupRatio      float64 // 0 is 1
	TraceFormat              string  // empty is mooncake
	TraceBlockSize           int     // tokens; 0: 512, or what the file says
	TraceSharedPrefixRatio   float64 // applied_compute_agentic alone
	TraceNumPrefixGroups     int     // applied_compute_agentic alone
	AgenticLanes             int     // plays at a time; 0: when the trace says
	ExecutionModel           string  // agentic formats need it
	ModelName                string
	SLATTFTMS                float64 // milliseconds; 0 is no bound, and so below
	SLAITLMS                 float64
	SLAE2EMS                 float64
	CapturePerRequest        bool // keep a record of every request
	WekaNestedTimestampBasis string
}

// ReplayReport is the outcome of a replay.
type ReplayReport struct {
	Summary    report.Fields   // figures by the names of the reference
	PerRequest []report.Fields // in the order of their ids; nil unless they were captured
	Warnings   []string        // settings without effect

	Interrupted bool  // ctx ended first; the figures cover what happened before
	Stuck       error // why the fleet could not go on, a *replay.StuckError; nil if it could

	plan *replaycmd.Plan
}

// WriteJSON writes the whole report: coverage, summary and requests, as docs/report.md describes it.
func (r *ReplayReport) WriteJSON(w io.Writer) error { return r.plan.WriteReport(w) }

// RunTraceReplay replays traces on simulated time, as fast as this machine can. Errors are *flags.UsageError,
// *engine.SettingError, *trace.LineError, or wrap one of the file system; they name settings by their flags.
func RunTraceReplay(ctx context.Context, traces []string, o ReplayOptions) (*ReplayReport, error) {
	args, err := o.arguments()
	if err != nil {
		return nil, err
	}
	plan, err := replaycmd.NewPlan(append(append(args, "--"), traces...))
	if err != nil {
		return nil, err
	}
	if o.CapturePerRequest {
		plan.KeepRecords()
	}
	r, err := plan.Run(ctx, 0)
	if err != nil {
		return nil, err
	}
	out := &ReplayReport{Summary: r.Summary, Warnings: plan.Warnings(), Interrupted: r.Interrupted, Stuck: r.Stuck, plan: plan}
	if o.CapturePerRequest {
		out.PerRequest = r.Requests
	}
	return out, nil
}

// arguments returns the options that are not zero as a command line.
func (o *ReplayOptions) arguments() (args []string, err error) {
	for flag, text := range map[string]string{"extra-engine-args": o.ExtraEngineArgs, "router-config": o.RouterConfig} {
		if strings.HasPrefix(strings.TrimSpace(text), "@") { // a file, on the command line
			return nil, &engine.SettingError{Setting: "--" + flag, Kind: engine.KindType, Given: strconv.Quote(text), Allowed: "must be a JSON object"}
		}
	}
	add := func(flag, value string) { args = append(args, "--"+flag+"="+value) }
	for flag, text := range map[string]string{"extra-engine-args": o.ExtraEngineArgs, "router-config": o.RouterConfig, "router-mode": o.RouterMode,
		"trace-format": o.TraceFormat, "execution-model": o.ExecutionModel, "model-name": o.ModelName,
		"weka-nested-timestamp-basis": o.WekaNestedTimestampBasis} {
		if text != "" {
			add(flag, text)
		}
	}
	for flag, n := range map[string]int{"num-workers": o.NumWorkers, "replay-concurrency": o.ReplayConcurrency,
		"trace-block-size": o.TraceBlockSize, "trace-num-prefix-groups": o.TraceNumPrefixGroups, "agentic-lanes": o.AgenticLanes} {
		if n != 0 {
			add(flag, strconv.Itoa(n))
		}
	}
	for flag, x := range map[string]float64{"arrival-speedup-ratio": o.ArrivalSpeedupRatio, "sla-ttft-ms": o.SLATTFTMS,
		"sla-itl-ms": o.SLAITLMS, "sla-e2e-ms": o.SLAE2EMS, "trace-shared-prefix-ratio": o.TraceSharedPrefixRatio} {
		if x != 0 {
			add(flag, strconv.FormatFloat(x, 'g', -1, 64))
		}
	}
	return args, nil
}
