// Package sweepcmd is the commands "mockbench sweep", which replays a load under many settings, and "mockbench tune",
// which looks for the smallest setting that keeps service level objectives.
package sweepcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/replaycmd"
	"mockbench/engine/report"
	"mockbench/engine/report/limits"
)

// Exit statuses.
const (
	exitOK      = 0
	exitError   = 1
	exitLimits  = 99
	exitAborted = 105
)

// arguments are the flags of a sweep besides those of its replays.
type arguments struct {
	vary, objectives    []string
	csv, jsonl, journal string
	html                string
	jobs                int
	progress            time.Duration
	quiet, help, dryRun bool
	others              map[string]bool // names of flags that are not of the replay
	progressGiven       bool
}

func newFlags() (*pflag.FlagSet, *arguments) {
	a := &arguments{others: map[string]bool{}}
	own := flags.NewSet("mockbench sweep")
	own.StringArrayVar(&a.vary, "vary", nil,
		"a setting or flag and its values: `NAME=VALUES`; repeatable, all combinations are run")
	own.StringArrayVar(&a.objectives, "objective", nil,
		"a `FIGURE` to weigh, for example 'p99(ttft_ms)' or 'max output_throughput_tok_s'; "+
			"repeatable (p99(ttft_ms), gpu_hours)")
	own.StringVar(&a.csv, "csv", "", "write a row a run to this `FILE`, - is stdout")
	own.StringVar(&a.jsonl, "jsonl", "", "write a row a run to this `FILE` as JSON, - is stdout")
	own.StringVar(&a.html, "html", "", "write a page with plots to this `FILE`")
	own.StringVar(&a.journal, "journal", "",
		"keep finished runs in this `FILE`; the same command goes on where it ended, even after kill -9")
	own.IntVar(&a.jobs, "jobs", 0, "`number` of runs at a time (all cores)")
	own.BoolVar(&a.dryRun, "dry-run", false, "check everything and print the command line of each run")
	return joined(own, a), a
}

// joined returns own flags and those of the replay command in one set. Of two of one name the own one counts.
func joined(own *pflag.FlagSet, a *arguments) *pflag.FlagSet {
	own.BoolVar(&a.quiet, "quiet", false, "print no table and no progress")
	own.DurationVar(&a.progress, "progress", 2*time.Second, "`time` between progress lines on a terminal; 0 is none")
	own.BoolVarP(&a.help, "help", "h", false, "print this text and exit")
	own.VisitAll(func(f *pflag.Flag) { a.others[f.Name] = true })
	replay := replaycmd.FlagSet()
	replay.VisitAll(func(f *pflag.Flag) {
		if !ownOutputs[f.Name] && own.Lookup(f.Name) == nil {
			own.AddFlag(f)
		}
	})
	own.SetNormalizeFunc(replay.GetNormalizeFunc())
	return own
}

// FlagSet returns the flags of the command, for completion and documentation.
func FlagSet() *pflag.FlagSet {
	f, _ := newFlags()
	return f
}

const usageLine = "usage: mockbench sweep --vary NAME=VALUES [--vary ...] TRACE... [flags of mockbench replay]\n"

// ownUsages describes the flags that are not of the replay.
func ownUsages(f *pflag.FlagSet, names map[string]bool) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = false
	f.VisitAll(func(x *pflag.Flag) {
		if names[x.Name] {
			own.AddFlag(x)
		}
	})
	return own.FlagUsages()
}

func helpText() string {
	f, a := newFlags()
	return "Replay a load under all combinations of some settings, on all cores.\n\n" +
		usageLine + "\nFlags:\n" + ownUsages(f, a.others) + `
All flags of mockbench replay that are about the run itself, and --fail-on, hold for every run.

NAME is a flag of mockbench replay (num_workers, router_mode, request_rate ...) or an engine setting under its name in the
engine JSON (engine.num_gpu_blocks, engine.max_num_seqs, dp_size ...; prefill. or decode. before it means one pool).
VALUES are a list, 4096,8192, or a range: 4096:65536:x2 multiplies, 1:16:+5 adds, 1:8 counts.

Exit status: 0 done, 1 error or no run was possible, 2 wrong command line, 99 there are limits and no run keeps them all,
105 interrupted by a signal; files then hold the runs that were done.
`
}

// Main runs the command and returns its exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	status, err := run(args, stdout, stderr)
	if err != nil {
		return flags.Fail(stderr, "mockbench sweep", err)
	}
	return status
}

// sweep is a sweep that has been checked.
type sweep struct {
	a          *arguments
	args       []string // as they were given
	parameters []parameter
	targets    []target
	objectives []objective
	points     [][]string // values of the parameters, by run
	commands   [][]string // of mockbench replay, by run; all have been checked
	warnings   []string
	inputs     []string // files that runs read
	limited    bool     // there are limits
}

func run(args []string, stdout, stderr io.Writer) (int, error) {
	f, a := newFlags()
	if err := flags.ParseSet(f, args); err != nil {
		return 0, err
	}
	if a.help {
		_, err := io.WriteString(stdout, helpText())
		return 0, err
	}
	a.progressGiven = f.Changed("progress")
	s, err := newSweep(f, a)
	if err == nil {
		s.args = args
	}
	if err != nil {
		return 0, err
	}
	if a.dryRun {
		for _, c := range s.commands {
			fmt.Fprintln(stdout, replaycmd.CommandLine("replay", c))
		}
		return exitOK, nil
	}
	return s.run(stdout, stderr)
}

// newSweep checks everything that can be checked before the first run.
func newSweep(f *pflag.FlagSet, a *arguments) (*sweep, error) {
	s := &sweep{a: a, limited: f.Changed("fail-on")}
	if len(a.vary) == 0 {
		return nil, usage("--vary is needed, for example --vary engine.num_gpu_blocks=4096:65536:x2")
	}
	if a.jobs < 0 {
		return nil, usage("--jobs: got %d, must be at least 1", a.jobs)
	}
	runs := 1
	for _, text := range a.vary {
		p, err := parseVary(text)
		if err != nil {
			return nil, err
		}
		for _, before := range s.parameters {
			if before.flag == p.flag && before.path == p.path && before.pool == p.pool {
				return nil, usage("--vary: %s is varied twice", p.name)
			}
		}
		s.parameters, s.targets = append(s.parameters, p), append(s.targets, p.target)
		if runs *= len(p.values); runs > mostRuns {
			return nil, usage("--vary: got %d runs or more, must be at most %d", runs, mostRuns)
		}
	}
	var err error
	if s.objectives, err = parseObjectives(a.objectives); err != nil {
		return nil, err
	}
	b, err := newBase(f, a.others)
	if err != nil {
		return nil, err
	}
	s.inputs = b.inputs
	for _, path := range []string{a.csv, a.jsonl, a.html} {
		if path != "" {
			if err := report.CheckFile(path); err != nil {
				return nil, err
			}
		}
	}
	return s, s.plan(b, runs)
}

// plan checks all runs, the last parameter the fastest to change.
func (s *sweep) plan(b *base, runs int) error {
	for i := range runs {
		values, rest := make([]string, len(s.parameters)), i
		for k := len(s.parameters) - 1; k >= 0; k-- {
			n := len(s.parameters[k].values)
			values[k], rest = s.parameters[k].values[rest%n], rest/n
		}
		p, args, err := b.plan(s.targets, values)
		if err != nil {
			return err
		}
		if i == 0 {
			s.warnings = p.Warnings()
		}
		s.points, s.commands = append(s.points, values), append(s.commands, args)
	}
	return nil
}

// run does the runs that the journal lacks and writes what was asked for.
func (s *sweep) run(stdout, stderr io.Writer) (int, error) {
	name, err := digest(s.commands, s.inputs)
	if err != nil {
		return 0, err
	}
	j, done, err := openJournal(s.a.journal, name, len(s.points))
	if err != nil {
		return 0, err
	}
	for _, text := range s.warnings {
		fmt.Fprintf(stderr, "warning: %s\n", text)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := pool{sweep: s, journal: j, done: done}
	if s.a.progress > 0 && !s.a.quiet && (s.a.progressGiven || isTerminal(stderr)) {
		p.tell = func(line string) { fmt.Fprintln(stderr, line) }
	}
	jobs := s.a.jobs
	if jobs == 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	err = p.run(ctx, jobs)
	if failure := j.close(); err == nil {
		err = failure
	}
	if err != nil {
		return 0, err
	}
	rows := p.rows()
	if err := s.write(rows, stdout, stderr); err != nil {
		return 0, err
	}
	return s.status(rows), nil
}

func (s *sweep) status(rows []*result) int {
	var ok, errors int
	for _, r := range rows {
		switch r.word("status") {
		case statusOK:
			ok++
		case statusError:
			errors++
		}
	}
	switch {
	case len(rows) < len(s.points):
		return exitAborted
	case errors == len(rows):
		return exitError
	case s.limited && ok == 0:
		return exitLimits
	}
	return exitOK
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// objective is a figure that is to be as small, or as large, as possible.
type objective struct {
	limits.Limit         // names the figure
	sign         float64 // +1 if larger is better, else -1
}
