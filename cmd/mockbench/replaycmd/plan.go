package replaycmd

import (
	"context"
	"strings"

	"mockbench/engine/report"
	"mockbench/engine/report/limits"
)

// Plan is a replay whose command line has been checked. It can be run once.
type Plan struct{ j *job }

// NewPlan checks a command line of the replay command. Nothing is run or written.
func NewPlan(args []string) (*Plan, error) {
	a, err := parse(args)
	if err != nil {
		return nil, err
	}
	j, err := resolve(a)
	return &Plan{j}, err
}

// Result is the outcome of a Plan.
type Result struct {
	Summary     report.Fields
	Source      limits.Source
	Limits      []limits.Outcome
	Hold        bool  // all limits
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
	return &Result{o.summary, o.source, o.limits, o.hold && o.lost == "", o.stuck, o.Interrupted}, nil
}

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
