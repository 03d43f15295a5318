package flags

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Command is a first word with a command line of its own, "mockbench NAME ...".
type Command struct {
	Name    string
	Args    string // what follows the name, as the help shows it
	Summary string // one line, no full stop
	Hidden  bool   // not in the help

	// What completion offers after the name: fixed first words, flags of its own, all flags of a run.
	Words       []string
	Flags       func() *pflag.FlagSet
	WorkerFlags bool

	// Run gets the words after the name and returns the exit status.
	Run func(args []string, stdout, stderr io.Writer) int
}

// FindCommand returns the command that a command line starts with, nil if it starts with a flag or is empty. A first
// word that is neither is a *UsageError.
func FindCommand(commands []Command, args []string) (*Command, error) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return nil, nil
	}
	var names []string
	for i, c := range commands {
		if c.Name == args[0] {
			return &commands[i], nil
		}
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	hint := didYouMean(args[0], names)
	if hint == "" {
		hint = ", commands are: " + strings.Join(names, ", ")
	}
	return nil, &UsageError{fmt.Sprintf("unexpected argument %s: no such command%s", args[0], hint), UnknownFlag}
}

// writeCommands lists the commands in the help.
func writeCommands(w io.Writer, commands []Command) {
	fmt.Fprint(w, "\nCommands (each has its own --help):\n")
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		fmt.Fprintf(w, "  mockbench %-24s %s\n", strings.TrimSpace(c.Name+" "+c.Args), c.Summary)
	}
}
