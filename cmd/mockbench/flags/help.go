package flags

import (
	"fmt"
	"io"
	"strings"
)

// ExitCode is one row of the table of exit statuses.
type ExitCode struct {
	Status  string
	Meaning string
}

// ExitCodes is every exit status of the program.
var ExitCodes = []ExitCode{
	{"0", "the run ended as asked: goal reached, screen left, or workers stopped by a signal after a clean drain"},
	{"1", "a setting is wrong, or something failed while running; the error is the last line on stderr"},
	{"2", "the command line cannot be read; also a panic, SIGQUIT or another signal on which Go prints stacks; they are on stderr"},
	{"99", "a limit of --fail-on does not hold, or its figure has no samples; summary and report are complete"},
	{"104", "the profile cannot be read or holds a wrong setting"},
	{"105", "a signal ended a run before its --duration or --requests was reached; summary and report are complete"},
	{"129", "hang-up; cleaned up like any other signal"},
	{"signal", "a second signal, more than a second after the first, ends the program at once; the shell reports it (130, 143)"},
}

// ReferenceVersion is the version of the reference that the program stands in for.
const ReferenceVersion = "1.6.1"

// NextVersion is the one without the flags that the reference has deprecated in this one.
const NextVersion = "Dynamo 1.8.0 (two releases after 1.6.0)"

// VersionText is what --version prints.
const VersionText = "Dynamo Mocker " + ReferenceVersion + "\n"

const intro = `mockbench stands in for LLM engine workers: a real Dynamo frontend lists, routes to and streams from
simulated vLLM, SGLang and TensorRT-LLM engines, and a screen shows what their schedulers and KV caches do.

Usage:
  mockbench                                   demonstration: four workers, a built-in load, the screen
  mockbench --discovery-backend file [...]    workers for a real frontend, until a signal
  mockbench --no-tui --duration 30s --report run.json
  mockbench COMMAND [...]                     something else, see the list of commands
`

const notes = `Differences from the reference that a frontend can see: a worker registers when it can serve, /health tells
the truth, client mistakes are answered in the stream, a speed-up of 0 means no delay. --reference-quirks
brings the reference's behaviour back.
`

// Help writes the help text.
func Help(w io.Writer, commands []Command) {
	fmt.Fprint(w, intro)
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s:\n", g)
		for _, f := range table {
			if f.Group == g && !f.Hidden {
				fmt.Fprintf(w, "  %s\n%s", f.usage(), indent(f.describe(), "        ", 100))
			}
		}
	}
	writeCommands(w, commands)
	fmt.Fprint(w, "\nExit status:\n")
	for _, c := range ExitCodes {
		fmt.Fprintf(w, "  %-6s  %s\n", c.Status, c.Meaning)
	}
	fmt.Fprint(w, "\n"+notes)
}

// usage returns all spellings and the value, "--fps N".
func (f *Flag) usage() string {
	names := append([]string{f.Name}, f.Aliases...)
	names = append(names, f.Off...)
	text := strings.Join(names, ", ")
	if f.Kind != Switch {
		text += " " + f.Arg
	}
	return text
}

// describe returns the help sentence with what the table adds to it.
func (f *Flag) describe() string {
	parts := []string{f.Help}
	if len(f.Allowed) > 0 {
		parts = append(parts, "One of: "+strings.Join(f.Allowed, ", ")+".")
	}
	if f.Default != "" {
		parts = append(parts, "Default: "+f.Default+".")
	}
	if len(f.Env) > 0 {
		parts = append(parts, "Environment: "+strings.Join(f.Env, ", ")+".")
	}
	if f.ReplacedBy != "" {
		parts = append(parts, "Deprecated, use "+f.ReplacedBy+".")
	}
	return strings.Join(parts, " ")
}

// indent breaks text into lines of at most width columns.
func indent(text, prefix string, width int) string {
	var b strings.Builder
	line := prefix
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width && line != prefix {
			b.WriteString(line + "\n")
			line = prefix
		}
		if line != prefix {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}

// Markdown writes the reference page of the command line.
func Markdown(w io.Writer, commands []Command) {
	fmt.Fprint(w, "# Command line\n\nWritten from the flag table by `go generate ./cmd/mockbench/flags`; a test keeps it current.\n\n")
	fmt.Fprint(w, "```\n"+intro+"```\n\n"+notes)
	fmt.Fprint(w, "\n## How arguments are read\n\n")
	for _, rule := range readingRules {
		fmt.Fprintf(w, "- %s\n", rule)
	}
	for _, g := range groups {
		fmt.Fprintf(w, "\n## %s\n\n| flag | meaning |\n|---|---|\n", g)
		for _, f := range table {
			if f.Group == g && !f.Hidden {
				fmt.Fprintf(w, "| `%s` | %s |\n", strings.ReplaceAll(f.usage(), "|", "\\|"), strings.ReplaceAll(f.describe(), "|", "\\|"))
			}
		}
	}
	fmt.Fprint(w, "\n## Commands\n\nEach has its own `--help`.\n\n| command | meaning |\n|---|---|\n")
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		fmt.Fprintf(w, "| `mockbench %s` | %s |\n", strings.TrimSpace(c.Name+" "+strings.ReplaceAll(c.Args, "|", "\\|")), c.Summary)
	}
	fmt.Fprint(w, "\n## Exit status\n\n| status | meaning |\n|---|---|\n")
	for _, c := range ExitCodes {
		fmt.Fprintf(w, "| %s | %s |\n", c.Status, c.Meaning)
	}
}

// readingRules say how arguments are read, in Markdown.
var readingRules = []string{
	"`--flag value` and `--flag=value`; the last of a repeated flag counts, unless it may be repeated. The only positional argument is a first word that names a command.",
	"An unambiguous prefix of a flag is enough. An exact spelling beats a prefix, and a flag of the reference one of our own.",
	"A value that starts with a dash must be a plain negative number (`-1`, `-.5`); anything else needs `--flag=-1e5`.",
	"Whole numbers may hold underscores (`8_192`) and leading zeros; no exponent, no hexadecimal.",
	"Precedence: built-in defaults, then the profile, the environment, the flags. A file given with `--extra-engine-args` replaces all engine flags. `mockbench config show` says where each setting comes from.",
}
