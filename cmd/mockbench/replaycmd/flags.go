// Package replaycmd is the command "mockbench replay": it replays a trace or a synthetic load on simulated time and
// reports the figures.
package replaycmd

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/flags"
)

// arguments are the values of the command line.
type arguments struct {
	files []string
	args  []string // as they were given

	traceFormat, replayMode, routerMode    string
	traceBlockSize                         int
	prefixRatio                            float64
	prefixGroups                           int
	lanes                                  int
	executionModel, modelName, wekaBasis   string
	inputTokens, outputTokens, requests    int
	rate, interval                         float64
	arrivalSeed                            uint64
	turns                                  int
	sharedRatio                            float64
	sharedGroups                           int
	turnDelay, speedup                     float64
	concurrency                            int
	workers, prefillWorkers, decodeWorkers int
	engineArgs, prefillArgs, decodeArgs    string
	routerConfig, profileData, profile     string
	ttft, itl, e2e                         float64
	maxTime, eventLag                      float64
	reportJSON, reportJSONL                string
	telemetryJSONL                         string
	telemetryInterval                      float64
	seed                                   uint64
	failOn                                 []string
	abortOnFail, line                      bool
	junit, html                            string
	cores                                  int
	progress                               time.Duration
	quiet, table, help                     bool
	record                                 string
	screen                                 bool

	set *pflag.FlagSet
}

func (a *arguments) given(name string) bool { return a.set.Changed(name) }

// section is a part of the help.
type section struct {
	title string
	flags []string
}

var sections = []section{
	{"Trace", []string{"trace-format", "trace-block-size", "trace-shared-prefix-ratio", "trace-num-prefix-groups", "agentic-lanes",
		"execution-model", "weka-nested-timestamp-basis"}},
	{"Synthetic load, instead of a trace", []string{"input-tokens", "output-tokens", "request-count", "request-rate", "arrival-interval-ms",
		"arrival-seed", "turns-per-session", "inter-turn-delay-ms", "shared-prefix-ratio", "num-prefix-groups"}},
	{"Load", []string{"replay-concurrency", "arrival-speedup-ratio", "max-sim-time-ms"}},
	{"Fleet", []string{"profile", "num-workers", "extra-engine-args", "num-prefill-workers", "num-decode-workers", "prefill-engine-args",
		"decode-engine-args", "planner-profile-data", "replay-mode"}},
	{"Routing", []string{"router-mode", "router-config", "kv-event-lag-ms", "seed", "model-name"}},
	{"Outcome", []string{"sla-ttft-ms", "sla-itl-ms", "sla-e2e-ms", "fail-on", "abort-on-fail", "report-json", "report-jsonl",
		"telemetry-jsonl", "telemetry-interval-ms", "html", "junit", "record", "screen", "table", "line", "quiet"}},
	{"Run", []string{"cores", "progress", "help"}},
}

func newFlags() (*pflag.FlagSet, *arguments) {
	a := &arguments{}
	f := flags.NewSet("mockbench replay")
	f.SetOutput(os.Stderr)
	a.set = f
	f.StringVar(&a.traceFormat, "trace-format", "mooncake", "`form` of the trace: mooncake, mooncake-delta, agentic_mooncake, weka, applied_compute_agentic or dynamo")
	f.IntVar(&a.traceBlockSize, "trace-block-size", 0, "`tokens` a hash id stands for (512, or what the file says)")
	f.Float64Var(&a.prefixRatio, "trace-shared-prefix-ratio", 0, "applied_compute_agentic: `share` of a first prompt that its group has in common")
	f.IntVar(&a.prefixGroups, "trace-num-prefix-groups", 0, "applied_compute_agentic: `number` of groups")
	f.IntVar(&a.lanes, "agentic-lanes", 0, "plays at a time (when the trace says); `N` at least 1")
	f.StringVar(&a.executionModel, "execution-model", "", "`name` of the model that is simulated; agentic formats need it")
	f.StringVar(&a.wekaBasis, "weka-nested-timestamp-basis", "auto", "weka: `basis` of timestamps inside subagents: auto, absolute, relative")

	f.IntVar(&a.inputTokens, "input-tokens", 0, "`tokens` of every prompt")
	f.IntVar(&a.outputTokens, "output-tokens", 0, "`tokens` of every answer")
	f.IntVar(&a.requests, "request-count", 0, "`number` of requests, or of sessions")
	f.Float64Var(&a.rate, "request-rate", 0, "requests a second, at random; `X` above 0")
	f.Float64Var(&a.interval, "arrival-interval-ms", 0, "`ms` between two requests; 0 is all at once")
	f.Uint64Var(&a.arrivalSeed, "arrival-seed", 42, "`seed` of random arrivals")
	f.IntVar(&a.turns, "turns-per-session", 1, "`turns` of a session")
	f.Float64Var(&a.turnDelay, "inter-turn-delay-ms", 0, "`ms` between an answer and the next turn")
	f.Float64Var(&a.sharedRatio, "shared-prefix-ratio", 0, "`share` of a prompt that its group has in common")
	f.IntVar(&a.sharedGroups, "num-prefix-groups", 0, "`number` of groups")

	f.IntVar(&a.concurrency, "replay-concurrency", 0, "requests or sessions at a time, instead of arrival times; `N` at least 1")
	f.Float64Var(&a.speedup, "arrival-speedup-ratio", 1, "divide arrival times and delays by `X`")
	f.Float64Var(&a.maxTime, "max-sim-time-ms", 0, "cut the run at this simulated time (`ms`)")

	f.StringVar(&a.profile, "profile", "", "workers, placement and limits of a profile, `NAME` or file; the flags below go on top, its load is not used")
	f.IntVar(&a.workers, "num-workers", 1, "`number` of workers")
	f.StringVar(&a.engineArgs, "extra-engine-args", "", "engine configuration: `JSON` or @FILE")
	f.IntVar(&a.prefillWorkers, "num-prefill-workers", 1, "`number` of prefill workers of a disaggregated fleet")
	f.IntVar(&a.decodeWorkers, "num-decode-workers", 1, "`number` of decode workers of a disaggregated fleet")
	f.StringVar(&a.prefillArgs, "prefill-engine-args", "", "engine configuration of prefill workers: `JSON` or @FILE")
	f.StringVar(&a.decodeArgs, "decode-engine-args", "", "engine configuration of decode workers: `JSON` or @FILE")
	f.StringVar(&a.profileData, "planner-profile-data", "", "measured pass times of all workers: NPZ file or a profiler's results directory (`PATH`)")
	f.StringVar(&a.replayMode, "replay-mode", "offline", "`mode`: offline, on simulated time, or online, on the wall clock with live workers")

	f.StringVar(&a.routerMode, "router-mode", "round_robin", "`mode`: round_robin or kv_router")
	f.StringVar(&a.routerConfig, "router-config", "", "settings of kv_router: `JSON` or @FILE")
	f.Float64Var(&a.eventLag, "kv-event-lag-ms", 0, "`ms` by which KV events reach the router late")
	f.Uint64Var(&a.seed, "seed", 0, "`seed` of the router's tie-breaks; 0 is the one of the reference's reproducible mode")
	f.StringVar(&a.modelName, "model-name", "", "`name` that selects a profile of a router policy file; such files are not supported")

	f.Float64Var(&a.ttft, "sla-ttft-ms", 0, "goodput: bound of the time to first token, `ms`")
	f.Float64Var(&a.itl, "sla-itl-ms", 0, "goodput: bound of a request's mean gap between tokens, `ms`")
	f.Float64Var(&a.e2e, "sla-e2e-ms", 0, "goodput: bound of the whole request, `ms`; alone")
	f.StringArrayVar(&a.failOn, "fail-on", nil, "exit with 99 unless this holds, for example 'p99(ttft_ms) < 300'; repeatable `LIMIT`")
	f.BoolVar(&a.abortOnFail, "abort-on-fail", false, "end the run as soon as a limit on a maximum, a minimum or a count cannot hold any more")
	f.StringVar(&a.html, "html", "", "write a page with plots to this `FILE`; over time too if there are samples")
	f.StringVar(&a.junit, "junit", "", "write the limits as JUnit test cases to this `FILE`, - is stdout")
	f.BoolVar(&a.line, "line", false, "print the outcome as KEY=VALUE pairs in one line instead of the summary")
	f.StringVar(&a.reportJSON, "report-json", "", "write the report to this `FILE`, - is stdout")
	f.StringVar(&a.reportJSONL, "report-jsonl", "", "write a record of every request to this `FILE`, one a line")
	f.StringVar(&a.telemetryJSONL, "telemetry-jsonl", "", "write samples of load and caches to this `FILE`, one a line")
	f.Float64Var(&a.telemetryInterval, "telemetry-interval-ms", 1000, "simulated `ms` between two samples")
	f.StringVar(&a.record, "record", "", "record what the fleet does in this `FILE`, for mockbench view")
	f.BoolVar(&a.screen, "screen", false, "open the replay in the screen, with a time slider, when it is done")
	f.BoolVar(&a.table, "table", false, "print the table of the reference's replay instead of the summary")
	f.BoolVar(&a.quiet, "quiet", false, "print no summary and no progress")

	f.IntVar(&a.cores, "cores", 0, "`number` of cores for workers that do not depend on one another (all); results do not depend on it")
	f.DurationVar(&a.progress, "progress", 2*time.Second, "`time` between progress lines on a terminal; 0 is none")
	f.BoolVarP(&a.help, "help", "h", false, "print this text and exit")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name = strings.ReplaceAll(name, "_", "-"); name == "report" {
			name = "report-json"
		}
		return pflag.NormalizedName(name)
	})
	return f, a
}

// FlagSet returns the flags of the command, for completion and documentation.
func FlagSet() *pflag.FlagSet {
	f, _ := newFlags()
	return f
}

// parse reads the command line.
func parse(args []string) (*arguments, error) {
	f, a := newFlags()
	if err := flags.ParseSet(f, args); err != nil {
		return nil, err
	}
	a.files, a.args = f.Args(), args
	return a, nil
}

const usageLine = "usage: mockbench replay TRACE... [flags]\n       mockbench replay --input-tokens N --output-tokens N --request-count N [flags]\n"

// helpText returns the help.
func helpText() string {
	f, _ := newFlags()
	var b strings.Builder
	b.WriteString("Replay a trace or a synthetic load against simulated engines, on simulated time.\n\n" + usageLine)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n%s:\n", s.title)
		for _, name := range s.flags {
			flag := f.Lookup(name)
			arg, text := pflag.UnquoteUsage(flag)
			head := strings.TrimRight("--"+name+" "+arg, " ")
			if flag.Value.Type() == "bool" {
				head = "--" + name
			}
			fmt.Fprintf(&b, "  %-34s %s", head, text)
			if d := flag.DefValue; d != "" && d != "0" && d != "false" && d != "[]" && d != "0s" {
				fmt.Fprintf(&b, " (%s)", d)
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString("\nLimits are STATISTIC(METRIC) OPERATOR NUMBER or FIGURE OPERATOR NUMBER; a figure without samples fails.\n")
	fmt.Fprintf(&b, "  metrics: %s\n  figures: the keys of the report's summary\n", strings.Join(names().Metrics, ", "))
	b.WriteString("\nExit status: 0 done, 1 error, 2 wrong command line, 99 a limit does not hold, 105 interrupted by a signal.\n")
	return b.String()
}
