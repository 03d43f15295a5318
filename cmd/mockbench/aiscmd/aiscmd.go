// Package aiscmd is the command "mockbench ais": it fetches measured kernel latencies, lists what they cover and shows
// of which operators a predicted pass consists.
package aiscmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/flags"
)

const exitInterrupted = 105

// command is one call of the program.
type command struct {
	ctx            context.Context
	stdout, stderr io.Writer
	arguments
}

type verb struct {
	name, args, help string
	run              func(*command) error
}

func verbs() []verb {
	return []verb{
		{"fetch", "[--package NAME] [--version V] [--to DIR]", "Download the measurements, once; --to names another folder than the cache", (*command).fetch},
		{"list", "[--system S] [--backend B] [--model TEXT] [--markdown]", "Which models work on which systems with which backends", (*command).list},
		{"explain", "--model M --system S --backend B [FLAGS]", "The operators of a pass, with milliseconds and how far each is from a measurement", (*command).explain},
	}
}

// Verbs are the first words of the command.
func Verbs() []string {
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	return names
}

// FlagSet returns the flags of the command, for completion and documentation.
func FlagSet() *pflag.FlagSet { return newFlags(&arguments{}) }

// Main runs the command and returns its exit status. args are those after the word ais.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &command{ctx: ctx, stdout: stdout, stderr: stderr}
	switch err := c.run(args); {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted")
		return exitInterrupted
	case err != nil:
		return flags.Fail(stderr, "mockbench ais", err)
	}
	return 0
}

func (c *command) run(args []string) error {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
		io.WriteString(c.stdout, helpText())
		return nil
	}
	for _, v := range verbs() {
		if v.name != args[0] {
			continue
		}
		if err := c.parse(args[1:]); err != nil {
			return err
		}
		if c.help {
			io.WriteString(c.stdout, helpText())
			return nil
		}
		return v.run(c)
	}
	return &flags.UsageError{Text: fmt.Sprintf("unexpected argument %s, must be one of: %s", args[0], strings.Join(Verbs(), ", "))}
}

func helpText() string {
	var b strings.Builder
	b.WriteString("Measured kernel latencies for --ais-perf-model and --ais-perf-config.\n\nusage:\n")
	for _, v := range verbs() {
		fmt.Fprintf(&b, "  mockbench ais %s %s\n        %s\n", v.name, v.args, v.help)
	}
	b.WriteString("\nFlags:\n" + FlagSet().FlagUsages() + `
Data is looked for in the folder or wheel that MOCKBENCH_AIS_DATA names, then in installed Python packages aisimulate_core
and aiconfigurator_core, then in the cache of fetched data. The package index is that of PIP_INDEX_URL, UV_DEFAULT_INDEX
or UV_INDEX_URL, else pypi.org.

Exit status: 0 done, 1 error, 2 wrong command line, 105 interrupted by a signal.
`)
	return b.String()
}
