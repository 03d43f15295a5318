package replaycmd

import (
	"context"
	"io"
	"strings"

	"mockbench/engine/report"
	"mockbench/engine/report/limits"
)

// Plan is a replay whose command line has been checked. It can be run once.
type Plan struct {
	j *job
	o *outcome // of the run
}

// NewPlan checks a command line of the replay command. Nothing is run or written.
func NewPlan(args []string) (*Plan, error) {
	a, err := parse(args)
	if err != nil {
		return nil, err
	}
	j, err := resolve(a)
	return &Plan{j: j}, err
}

// Result is the outcome of a Plan.
type Result struct {
	Summary     report.Fields
	Requests    []report.Fields // records of the requests that ended, where they were asked for
	Source      limits.Source
	Limits      []limits.Outcome
	Hold        bool  // all limits
	Aborted     bool  // by a limit that was lost: the figures are of a part of the run
	Stuck       error // why the fleet could not go on; nil if it could
	Interrupted bool  // the context ended first
}

// Run reads the load and runs the replay on so many cores.
func (p *Plan) Run(ctx context.Context, cores int) (*Result, error) {
	p.j.options.Cores = cores
	if err := p.j.load(); err != nil {
		return nil, err
	}
	o, err := p.j.execute(ctx)
	if err != nil {
		return nil, err
	}
	p.o = o
	return &Result{Summary: o.summary, Requests: o.Offline.Records(), Source: o.source, Limits: o.limits,
		Hold: o.hold && o.lost == "", Aborted: o.lost != "",
		Stuck: o.stuck, Interrupted: o.Interrupted}, nil
}

// KeepRecords asks for a record of every request, without a file for them.
func (p *Plan) KeepRecords() { p.j.options.Records = true }

// WriteReport writes the report of the run, as --report-json does.
func (p *Plan) WriteReport(w io.Writer) error { return p.j.write(w, p.o) }

// Warnings returns what deserves a word about the settings.
func (p *Plan) Warnings() []string { return p.j.warnings }

// Files returns the files of the load.
func (p *Plan) Files() []string { return p.j.a.files }

// commandLine returns the command line for people.
func (j *job) commandLine() string { return CommandLine("replay", j.a.args) }

// CommandLine returns a command line of the program as a shell would read it.
func CommandLine(command string, args []string) string {
	words := []string{"mockbench", command}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$`!*?[]{}()<>|&;~#") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
