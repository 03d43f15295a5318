package replaycmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine/report"
	"mockbench/engine/report/limits"
	"mockbench/engine/report/page"
)

// status returns the exit status of a run and the word for it.
func (o *outcome) status() (int, string) {
	switch {
	case o.stuck != nil:
		return exitError, "error"
	case o.lost != "":
		return exitLimits, "aborted"
	case o.Interrupted:
		return exitAborted, "interrupted"
	case !o.hold:
		return exitLimits, "failed"
	}
	return exitOK, "ok"
}

// trouble says why a run ended before its end; empty if it did not.
func (o *outcome) trouble() string {
	switch {
	case o.stuck != nil:
		return o.stuck.Error()
	case o.lost != "":
		return "aborted: " + o.lost + " cannot hold any more"
	case o.Interrupted:
		return "interrupted by a signal"
	}
	return ""
}

// finish writes what was asked for. A report on stdout sends the summary to stderr.
func (j *job) finish(o *outcome, samples *samples, stdout io.Writer) (status int, err error) {
	a := j.a
	status, word := o.status()
	text := stdout
	for _, path := range []string{a.reportJSON, a.reportJSONL, a.telemetryJSONL, a.junit, a.html} {
		if path == "-" {
			text = os.Stderr
		}
	}
	switch {
	case a.line:
		fmt.Fprintln(text, report.OneLine(word, o.source, o.limits))
	case !a.quiet:
		if err := j.print(text, o); err != nil {
			return exitError, err
		}
	}
	if !a.line {
		for _, x := range o.limits {
			fmt.Fprintln(text, x)
		}
		if o.lost != "" {
			fmt.Fprintln(text, o.trouble())
		}
	}
	for _, out := range []struct {
		flag, path string
		write      func(w io.Writer) error
	}{
		{"report-json", reportPath(a.reportJSON), func(w io.Writer) error { return j.write(w, o) }},
		{"report-jsonl", a.reportJSONL, o.Offline.WriteRecords},
		{"junit", a.junit, func(w io.Writer) error {
			return limits.WriteJUnit(w, limits.Run{Name: "mockbench replay", Seconds: o.Fleet.WallMS / 1000, Failure: o.trouble()}, o.limits)
		}},
		{"html", a.html, func(w io.Writer) error { return page.Write(w, j.page(o, samples)) }},
	} {
		if out.path == "" {
			continue
		}
		if err := report.WriteTo(out.path, stdout, out.write); err != nil {
			return exitError, fmt.Errorf("--%s: %w", out.flag, err)
		}
	}
	return status, nil
}

// reportPath gives a report in a folder a name.
func reportPath(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() || strings.HasSuffix(path, "/") {
		return strings.TrimSuffix(path, "/") + "/dynamo_replay_report_" + time.Now().Format("20060102_150405") + ".json"
	}
	return path
}

func (j *job) print(w io.Writer, o *outcome) error {
	if j.a.table {
		return report.WriteTable(w, o.summary)
	}
	width := 100
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			width = max(80, columns)
		}
	}
	return o.Offline.WriteText(w, o.summary, j.text(o), width)
}

// text returns what the summary says beside the figures.
func (j *job) text(o *outcome) report.OfflineText {
	cfg := j.options.Workers.Engine
	if j.options.Decode.Workers > 0 {
		cfg = j.options.Decode.Engine
	}
	notes := report.Notes(cfg)
	if t := j.options.Trace; t != nil {
		notes = append(notes, t.Notes...)
	}
	return report.OfflineText{Unfinished: o.Unfinished, Interrupted: o.Interrupted, Notes: notes}
}

func (j *job) page(o *outcome, samples *samples) page.Page {
	d := report.Document{Title: "Replay", Subtitle: j.commandLine(), Status: o.trouble(), Outcomes: o.limits}
	if samples != nil {
		d.Time = report.TelemetryPlots(samples.kept)
	}
	return o.Offline.Page(o.summary, j.text(o), d)
}

// write writes the report as JSON with sorted keys.
func (j *job) write(w io.Writer, o *outcome) error {
	var perRequest any
	if j.options.Records {
		records := o.Offline.Records()
		sorted := make([]report.Fields, len(records))
		for i := range records {
			sorted[i] = records[i].Sorted()
		}
		perRequest = sorted
	}
	var aborted any
	if o.lost != "" {
		aborted = o.lost
	}
	f := report.Fields{
		{Key: "aborted", Value: aborted},
		{Key: "coverage", Value: report.Fields{{Key: "capture_per_request", Value: j.options.Records},
			{Key: "capture_planner_details", Value: false}, {Key: "per_request_records", Value: o.Offline.Kept()}}},
		{Key: "generator", Value: "mockbench " + flags.ReferenceVersion}, {Key: "interrupted", Value: o.Interrupted}, {Key: "limits", Value: o.limits},
		{Key: "mode", Value: "replay"}, {Key: "per_request", Value: perRequest}, {Key: "planner", Value: nil},
		{Key: "schema_version", Value: report.SchemaVersion}, {Key: "summary", Value: o.summary.Sorted()},
		{Key: "unfinished_requests", Value: o.Unfinished},
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
