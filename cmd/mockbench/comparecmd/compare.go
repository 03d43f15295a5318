// Package comparecmd is the command "mockbench compare": it puts two reports side by side and says what got better and
// what worse.
package comparecmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine/report"
	"mockbench/engine/report/delta"
	"mockbench/engine/report/limits"
	"mockbench/engine/report/page"
)

// exitLimits is the status for a limit that does not hold.
const exitLimits = 99

// arguments are the values of the command line.
type arguments struct {
	files             []string
	failOn            []string
	json, junit, html string
	all, line, help   bool
}

func newFlags() (*pflag.FlagSet, *arguments) {
	a := &arguments{}
	f := flags.NewSet("mockbench compare")
	f.StringArrayVar(&a.failOn, "fail-on", nil,
		"exit with 99 unless this holds, for example 'p99(ttft_ms) +5%'; repeatable `LIMIT`")
	f.StringVar(&a.json, "json", "", "write all figures as JSON to this `FILE`, - is stdout")
	f.StringVar(&a.html, "html", "", "write a page with plots to this `FILE`")
	f.StringVar(&a.junit, "junit", "", "write the limits as JUnit test cases to this `FILE`, - is stdout")
	f.BoolVar(&a.all, "all", false, "show all figures, also equal ones")
	f.BoolVar(&a.line, "line", false, "print the outcome as KEY=VALUE pairs in one line instead of the table")
	f.BoolVarP(&a.help, "help", "h", false, "print this text and exit")
	return f, a
}

// FlagSet returns the flags of the command, for completion and documentation.
func FlagSet() *pflag.FlagSet {
	f, _ := newFlags()
	return f
}

const usageLine = "usage: mockbench compare A.json B.json [flags]\n"

func helpText() string {
	return "Put two reports side by side, of live runs or replays: what got better, what worse, and whether by more than chance.\n\n" +
		usageLine + "\nFlags:\n" + FlagSet().FlagUsages() + `
Limits are FIGURE CHANGE, about B against A, or FIGURE OPERATOR NUMBER, about B alone:
  p99(ttft_ms) +5%           may rise by at most 5 % of its value in A
  completed_requests -0      must not fall
  mean(itl_ms) +-0.2         may rise or fall by at most 0.2 ms
  p99(e2e_latency_ms) < 2s   as for mockbench replay
A figure that a run lacks or has no samples of fails, unless the word optional follows.

Exit status: 0 all limits hold, 1 error, 2 wrong command line, 99 a limit does not hold.
`
}

// Main runs the command and returns its exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	status, err := run(args, stdout, stderr)
	if err != nil {
		return flags.Fail(stderr, "mockbench compare", err)
	}
	return status
}

// comparison is two runs and what came of them.
type comparison struct {
	a        *arguments
	runs     [2]*delta.Run
	lines    []delta.Line
	outcomes []limits.Outcome
	hold     bool
	notes    []string
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
	if a.files = f.Args(); len(a.files) != 2 {
		return 0, &flags.UsageError{Text: fmt.Sprintf("two reports are needed, got %d", len(a.files))}
	}
	c, err := compare(a)
	if err != nil {
		return 0, err
	}
	if err := c.write(stdout, stderr); err != nil {
		return 0, err
	}
	if !c.hold {
		return exitLimits, nil
	}
	return 0, nil
}

// compare reads both reports and judges them.
func compare(a *arguments) (*comparison, error) {
	c := &comparison{a: a}
	for i, path := range a.files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if c.runs[i], err = delta.Read(data); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if c.runs[i].Interrupted {
			c.notes = append(c.notes, path+": the run was interrupted")
		}
	}
	names := delta.Names(c.runs[0], c.runs[1])
	var rules []limits.Rule
	for _, text := range a.failOn {
		r, err := limits.ParseRule(text, names)
		if err != nil {
			return nil, &flags.UsageError{Text: "--fail-on: " + err.Error()}
		}
		rules = append(rules, r)
	}
	if x, y := c.runs[0].Mode, c.runs[1].Mode; x != y {
		c.notes = append(c.notes, fmt.Sprintf("the runs are of different kinds: %q and %q", x, y))
	}
	for _, figure := range []string{"num_requests", "total_input_tokens"} {
		x, _ := c.runs[0].Figure(figure)
		y, _ := c.runs[1].Figure(figure)
		if x != y {
			c.notes = append(c.notes, fmt.Sprintf("the runs differ in %s: %.0f and %.0f", figure, x, y))
		}
	}
	c.lines = delta.Compare(c.runs[0], c.runs[1])
	c.outcomes, c.hold = limits.CheckRules(rules, c.runs[0], c.runs[1])
	return c, nil
}

// write writes what was asked for. JSON or JUnit on stdout sends the table to stderr.
func (c *comparison) write(stdout, stderr io.Writer) error {
	a, text := c.a, stdout
	if a.json == "-" || a.junit == "-" || a.html == "-" {
		text = stderr
	}
	if a.line {
		fmt.Fprintln(text, c.oneLine())
	} else {
		c.table(text)
	}
	for _, out := range []struct {
		flag, path string
		write      func(w io.Writer) error
	}{
		{"json", a.json, c.json},
		{"junit", a.junit, func(w io.Writer) error {
			return limits.WriteJUnit(w, limits.Run{Name: "mockbench compare"}, c.outcomes)
		}},
		{"html", a.html, func(w io.Writer) error { return page.Write(w, c.page()) }},
	} {
		if out.path == "" {
			continue
		}
		if err := report.WriteTo(out.path, stdout, out.write); err != nil {
			return fmt.Errorf("--%s: %w", out.flag, err)
		}
	}
	return nil
}

func (c *comparison) json(w io.Writer) error {
	data, err := json.MarshalIndent(struct {
		SchemaVersion int              `json:"schema_version"`
		Generator     string           `json:"generator"`
		A             string           `json:"a"`
		B             string           `json:"b"`
		Notes         []string         `json:"notes"`
		Figures       []delta.Line     `json:"figures"`
		Limits        []limits.Outcome `json:"limits"`
	}{report.SchemaVersion, "mockbench " + flags.ReferenceVersion, c.a.files[0], c.a.files[1], append([]string{}, c.notes...),
		c.lines, c.outcomes}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
