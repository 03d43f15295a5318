package replaycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine/replay"
	"mockbench/engine/report"
	"mockbench/engine/report/limits"
	"mockbench/engine/trace"
)

// Exit statuses.
const (
	exitOK      = 0
	exitError   = 1
	exitUsage   = 2
	exitLimits  = 99
	exitAborted = 105
)

// Main runs the command and returns its exit status. args are those after the word replay.
func Main(args []string, stdout, stderr io.Writer) int {
	a, err := parse(args)
	if err != nil {
		return fail(stderr, err)
	}
	if a.help {
		io.WriteString(stdout, helpText())
		return exitOK
	}
	j, err := resolve(a)
	if err != nil {
		return fail(stderr, err)
	}
	status, err := j.run(stdout, stderr)
	if err != nil {
		return fail(stderr, err)
	}
	return status
}

// fail reports an error in one line and returns the exit status of its class.
func fail(w io.Writer, err error) int {
	var usage *flags.UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(w, "%smockbench replay: error: %v\n", usageLine, err)
		return exitUsage
	}
	fmt.Fprintf(w, "error: %v\n", err)
	return exitError
}

// garbagePercent is how much garbage may lie around, in per cent of what is in use. A replay makes little of it, so that
// looking for it often costs next to nothing and keeps the peak low.
const garbagePercent = 25

func (j *job) run(stdout, stderr io.Writer) (status int, err error) {
	a := j.a
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent))
	}
	for _, text := range j.warnings {
		fmt.Fprintf(stderr, "warning: %s\n", text)
	}
	for _, path := range []string{a.reportJSON, a.reportJSONL, a.telemetryJSONL} {
		if path != "" {
			if err := report.CheckFile(path); err != nil {
				return exitError, err
			}
		}
	}
	if err := j.load(); err != nil {
		return exitError, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	j.options.Context = ctx
	if j.options.Cores == 0 {
		j.options.Cores = runtime.GOMAXPROCS(0)
	}
	if a.progress > 0 && !a.quiet && isTerminal(stderr) {
		j.options.Progress = progress(stderr, a.progress)
	}
	samples := j.openTelemetry(stdout)
	start := time.Now()
	r, err := replay.Run(j.options)
	if failure := samples.close(); err == nil && failure != nil {
		err = fmt.Errorf("--telemetry-jsonl: %w", failure)
	}
	var stuck *replay.StuckError
	if err != nil && !errors.As(err, &stuck) {
		return exitError, err
	}
	r.Fleet.WallMS = time.Since(start).Seconds() * 1000
	status, failure := j.finish(r, stdout, stderr)
	if err == nil {
		err = failure
	}
	return status, err
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progress returns what prints a line from time to time.
func progress(w io.Writer, every time.Duration) func(replay.Progress) {
	last := time.Now()
	return func(p replay.Progress) {
		if time.Since(last) >= every {
			last = time.Now()
			of := ""
			if p.Total > 0 {
				of = fmt.Sprintf(" of %d", p.Total)
			}
			fmt.Fprintf(w, "%9.1f s simulated, %d%s requests ended, %d in flight\n", float64(p.Now)/1000, p.Ended, of, p.Arrived-p.Ended)
		}
	}
}

// finish evaluates the limits and writes what was asked for. A report on stdout sends the summary to stderr.
func (j *job) finish(r *replay.Result, stdout, stderr io.Writer) (status int, err error) {
	a, c := j.a, r.Offline
	if g := j.graph(); g != nil {
		r.Fleet.Extra = report.Fields{{Key: "agentic_model_projection", Value: report.Fields{
			{Key: "policy", Value: "project_to_configured_target"}, {Key: "source_models", Value: g.Models()},
			{Key: "target_model", Value: a.executionModel}}}}
	}
	summary := c.Summary(r.Fleet)
	outcomes, hold := limits.CheckAll(j.limits, c.Source(summary, r.Unfinished))
	text := stdout
	if a.reportJSON == "-" || a.reportJSONL == "-" || a.telemetryJSONL == "-" {
		text = stderr
	}
	if !a.quiet {
		if err := j.print(text, r, summary); err != nil {
			return exitError, err
		}
	}
	for _, o := range outcomes {
		fmt.Fprintln(text, o)
	}
	if a.reportJSON != "" {
		err := report.WriteTo(reportPath(a.reportJSON), stdout, func(w io.Writer) error { return j.write(w, r, summary, outcomes) })
		if err != nil {
			return exitError, fmt.Errorf("--report-json: %w", err)
		}
	}
	if a.reportJSONL != "" {
		if err := report.WriteTo(a.reportJSONL, stdout, c.WriteRecords); err != nil {
			return exitError, fmt.Errorf("--report-jsonl: %w", err)
		}
	}
	switch {
	case r.Interrupted:
		return exitAborted, nil
	case !hold:
		return exitLimits, nil
	}
	return exitOK, nil
}

// graph returns the graph of the workload, nil if there is none.
func (j *job) graph() *trace.Graph {
	if j.options.Trace == nil {
		return nil
	}
	return j.options.Trace.Graph
}

// reportPath gives a report in a folder a name.
func reportPath(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() || strings.HasSuffix(path, "/") {
		return strings.TrimSuffix(path, "/") + "/dynamo_replay_report_" + time.Now().Format("20060102_150405") + ".json"
	}
	return path
}

func (j *job) print(w io.Writer, r *replay.Result, summary report.Fields) error {
	if j.a.table {
		return report.WriteTable(w, summary)
	}
	width := 100
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			width = max(80, columns)
		}
	}
	o := &j.options
	cfg := o.Workers.Engine
	if o.Decode.Workers > 0 {
		cfg = o.Decode.Engine
	}
	notes := report.Notes(cfg)
	if o.Trace != nil {
		notes = append(notes, o.Trace.Notes...)
	}
	return r.Offline.WriteText(w, summary, report.OfflineText{Unfinished: r.Unfinished, Interrupted: r.Interrupted,
		Notes: notes}, width)
}

// write writes the report as JSON with sorted keys.
func (j *job) write(w io.Writer, r *replay.Result, summary report.Fields, outcomes []limits.Outcome) error {
	var perRequest any
	if j.options.Records {
		records := r.Offline.Records()
		sorted := make([]report.Fields, len(records))
		for i := range records {
			sorted[i] = records[i].Sorted()
		}
		perRequest = sorted
	}
	f := report.Fields{
		{Key: "coverage", Value: report.Fields{{Key: "capture_per_request", Value: j.options.Records},
			{Key: "capture_planner_details", Value: false}, {Key: "per_request_records", Value: r.Offline.Kept()}}},
		{Key: "generator", Value: "mockbench " + flags.ReferenceVersion}, {Key: "interrupted", Value: r.Interrupted}, {Key: "limits", Value: outcomes},
		{Key: "mode", Value: "replay"}, {Key: "per_request", Value: perRequest}, {Key: "planner", Value: nil},
		{Key: "schema_version", Value: report.SchemaVersion}, {Key: "summary", Value: summary.Sorted()},
		{Key: "unfinished_requests", Value: r.Unfinished},
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
