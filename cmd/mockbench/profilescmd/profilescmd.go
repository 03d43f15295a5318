// Package profilescmd is the command "mockbench profiles": it lists, shows, saves, checks and edits profiles, those
// shipped in the program and a user's own.
package profilescmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/profiles"
)

// Exit statuses, as flags.ExitCodes says.
const (
	exitOK      = 0
	exitError   = 1
	exitProfile = 104
)

// command is one call of the program.
type command struct {
	store          profiles.Store
	stdout, stderr io.Writer
	editor         string
	lookup         func(string) (string, bool)
}

// Verbs are the first words of the command.
func Verbs() []string {
	var names []string
	for _, v := range verbs() {
		names = append(names, v.Name)
	}
	return names
}

type verb struct {
	Name, Args, Help string
	run              func(c *command, args []string) error
}

func verbs() []verb {
	return []verb{
		{"list", "", "All profiles, and what each shows", (*command).list},
		{"show", "NAME [--command]", "The text of a profile, or a command line that runs the same", (*command).show},
		{"save", "NAME [--force] [--description TEXT] [FLAGS]", "Save what mockbench FLAGS would run as your own profile",
			(*command).save},
		{"check", "NAME|FILE ...", "Check profiles; errors as FILE:LINE: setting: what is wrong", (*command).check},
		{"edit", "NAME", "Edit a profile of your own, or a copy of a shipped one, with $VISUAL or $EDITOR", (*command).edit},
		{"schema", "[profile|engine]", "JSON Schema of profiles, or of --extra-engine-args, for editors", (*command).schema},
	}
}

// Main runs the command and returns the exit status. args are those after the word profiles.
func Main(args []string, stdout, stderr io.Writer) int {
	c := &command{store: profiles.UserStore(), stdout: stdout, stderr: stderr, lookup: os.LookupEnv,
		editor: cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))}
	return c.fail(c.run(args))
}

func (c *command) run(args []string) error {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
		c.help()
		return nil
	}
	for _, v := range verbs() {
		if v.Name == args[0] {
			return v.run(c, args[1:])
		}
	}
	known := strings.Join(Verbs(), ", ")
	return &flags.UsageError{Text: fmt.Sprintf("unexpected argument %s, must be one of: %s", args[0], known)}
}

// fail reports an error in one line and returns the exit status of its class.
func (c *command) fail(err error) int {
	var usage *flags.UsageError
	var inFile *profiles.FileError
	var located *locatedError
	var profile *settings.ProfileError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(c.stderr, "usage: mockbench profiles %s ... (--help says more)\n", strings.Join(Verbs(), "|"))
		fmt.Fprintf(c.stderr, "mockbench profiles: error: %v\n", err)
		return flags.Fail(io.Discard, "", err)
	case errors.As(err, &located):
		fmt.Fprintln(c.stderr, err) // as compilers do, for editors
		return exitProfile
	}
	fmt.Fprintf(c.stderr, "error: %v\n", err)
	if errors.As(err, &inFile) || errors.As(err, &profile) {
		return exitProfile
	}
	return exitError
}

func (c *command) help() {
	fmt.Fprint(c.stdout, "mockbench profiles keeps settings of workers and load under names; --profile NAME runs one.\n\n")
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	for _, v := range verbs() {
		fmt.Fprintf(w, "  mockbench profiles %s\t%s\n", strings.TrimSpace(v.Name+" "+v.Args), v.Help)
	}
	w.Flush()
	fmt.Fprintf(c.stdout, "\nYour own profiles are in %s ($%s chooses another folder).\n", c.folder(), profiles.Variable)
	fmt.Fprintln(c.stdout, "One of your own hides a shipped one of the same name.")
}

func (c *command) folder() string {
	if c.store.Dir == "" {
		return "no folder yet"
	}
	return c.store.Dir
}

// one returns the single argument of a verb.
func one(args []string, what string) (string, error) {
	if len(args) != 1 || strings.HasPrefix(args[0], "-") {
		return "", &flags.UsageError{Text: fmt.Sprintf("got %d arguments, must be one: %s", len(args), what)}
	}
	return args[0], nil
}
