package sweepcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/replaycmd"
	"mockbench/engine/report"
	"mockbench/engine/report/limits"
)

// tuning are the flags of a search besides those of its replays.
type tuning struct {
	arguments
	slo                []string
	minimise, maximise string
	span               string
	json               string
	verify             int
}

func newTuneFlags() (*pflag.FlagSet, *tuning) {
	a := &tuning{arguments: arguments{others: map[string]bool{}}}
	own := flags.NewSet("mockbench tune")
	own.StringArrayVar(&a.slo, "slo", nil,
		"objectives to keep, for example 'ttft_p99<500ms,itl_p99<30ms'; repeatable `LIMITS`")
	own.StringVar(&a.minimise, "minimise", "", "the setting or flag whose smallest value is looked for: `NAME`")
	own.StringVar(&a.maximise, "maximise", "", "the setting or flag whose largest value is looked for: `NAME`")
	own.StringVar(&a.span, "range", "",
		"the `VALUES` to choose from, as for mockbench sweep (1:64 for numbers of workers)")
	own.IntVar(&a.verify, "verify", 2, "`number` of values on each side of the result that are tried too")
	own.StringVar(&a.json, "json", "", "write the result and all runs as JSON to this `FILE`, - is stdout")
	own.IntVar(&a.jobs, "jobs", 0, "`number` of runs at a time (all cores)")
	return joined(own, &a.arguments), a
}

// TuneFlagSet returns the flags of the command, for completion and documentation.
func TuneFlagSet() *pflag.FlagSet {
	f, _ := newTuneFlags()
	return f
}

const tuneUsage = "usage: mockbench tune --slo LIMITS --minimise NAME TRACE... [flags of mockbench replay]\n"

func tuneHelp() string {
	f, a := newTuneFlags()
	return "Look for the smallest fleet, or the least or greatest value of a setting, with which a load keeps its objectives.\n\n" +
		tuneUsage + "\nFlags:\n" + ownUsages(f, a.others) + `
All flags of mockbench replay that are about the run itself hold for every run.

The search halves the range again and again, which is right if every value that is easier than one that keeps the
objectives keeps them too. Values around the result are tried as well; if the assumption fails at any value that was
tried, this is said, and all values that would be better than the result are tried one by one.

Exit status: 0 found, 1 error, 2 wrong command line, 99 no value keeps the objectives, 105 interrupted by a signal.
`
}

// TuneMain runs the command and returns its exit status.
func TuneMain(args []string, stdout, stderr io.Writer) int {
	status, err := runTune(args, stdout, stderr)
	if err != nil {
		return flags.Fail(stderr, "mockbench tune", err)
	}
	return status
}

func runTune(args []string, stdout, stderr io.Writer) (int, error) {
	f, a := newTuneFlags()
	if err := flags.ParseSet(f, args); err != nil {
		return 0, err
	}
	if a.help {
		_, err := io.WriteString(stdout, tuneHelp())
		return 0, err
	}
	s, err := newSearch(f, a)
	if err != nil {
		return 0, err
	}
	for _, text := range s.warnings {
		fmt.Fprintf(stderr, "warning: %s\n", text)
	}
	if a.progress > 0 && !a.quiet && (f.Changed("progress") || isTerminal(stderr)) {
		s.tell = func(line string) { fmt.Fprintln(stderr, line) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.find(ctx); err != nil {
		return 0, err
	}
	if err := s.write(stdout, stderr); err != nil {
		return 0, err
	}
	switch {
	case ctx.Err() != nil:
		return exitAborted, nil
	case s.best < 0:
		return exitLimits, nil
	}
	return exitOK, nil
}

// newSearch checks everything that can be checked before the first run.
func newSearch(f *pflag.FlagSet, a *tuning) (*search, error) {
	s := &search{a: a, best: -1, done: map[int]*result{}, jobs: a.jobs, began: time.Now()}
	if s.jobs <= 0 {
		s.jobs = runtime.GOMAXPROCS(0)
	}
	name, flag := a.minimise, "--minimise"
	switch {
	case a.minimise != "" && a.maximise != "":
		return nil, usage("--minimise and --maximise exclude each other")
	case a.maximise != "":
		name, flag = a.maximise, "--maximise"
	case a.minimise == "":
		return nil, usage("--minimise or --maximise is needed, for example --minimise num_workers")
	}
	if len(a.slo) == 0 && !f.Changed("fail-on") {
		return nil, usage("--slo is needed, for example --slo 'ttft_p99<500ms,itl_p99<30ms'")
	}
	if a.verify < 0 {
		return nil, usage("--verify: got %d, must not be negative", a.verify)
	}
	b, err := newBase(f, a.others)
	if err != nil {
		return nil, err
	}
	for _, text := range a.slo {
		list, err := limits.ParseList(text, report.OfflineNames())
		if err != nil {
			return nil, usage("--slo: %v", err)
		}
		for _, l := range list {
			b.flags = append(b.flags, "--fail-on="+l.Text)
			s.limits = append(s.limits, l)
		}
	}
	if err := s.choose(flag, name); err != nil {
		return nil, err
	}
	if a.json != "" {
		if err := report.CheckFile(a.json); err != nil {
			return nil, err
		}
	}
	for _, v := range s.values {
		p, args, err := b.plan([]target{s.target}, []string{v})
		if err != nil {
			return nil, err
		}
		if s.commands == nil {
			s.warnings = p.Warnings()
		}
		s.commands = append(s.commands, args)
	}
	return s, nil
}

// fleetRange is what is chosen from if a number of workers is looked for.
const fleetRange = "1:64"

// choose finds what is looked for and puts its values in order, the one that is wanted most first.
func (s *search) choose(flag, name string) (err error) {
	if s.target, err = findTarget(flag, name); err != nil {
		return err
	}
	span := s.a.span
	if span == "" {
		if !strings.HasSuffix(s.target.flag, "-workers") {
			return usage("--range is needed for %s, for example --range 256:65536:x2", name)
		}
		span = fleetRange
	}
	if s.values, err = parseValues(span); err != nil {
		return usage("--range: %v", err)
	}
	for _, v := range s.values {
		if !number(v) {
			return usage("--range: got %q, all values must be numbers", v)
		}
	}
	slices.SortFunc(s.values, byNumber)
	if flag == "--maximise" {
		slices.Reverse(s.values)
	}
	return nil
}

// commandLine returns the replay with the value that was found.
func (s *search) commandLine() string { return replaycmd.CommandLine("replay", s.commands[s.best]) }
