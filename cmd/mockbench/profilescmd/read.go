package profilescmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/profiles"
)

// list writes a line a profile.
func (c *command) list(args []string) error {
	if len(args) > 0 {
		return &flags.UsageError{Text: "list: unexpected argument " + args[0]}
	}
	all, err := c.store.List()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	for _, source := range all {
		text := ""
		if p, _, err := c.store.Open(source.Name); err != nil {
			text = "cannot be used: " + err.Error()
		} else {
			text = p.Description
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", source.Name, origin(source), text)
	}
	return w.Flush()
}

func origin(s profiles.Source) string {
	switch {
	case s.Hides():
		return "yours, hides the shipped one"
	case s.Path != "":
		return "yours"
	}
	return "shipped"
}

// show writes the text of a profile, or a command line that runs the same.
func (c *command) show(args []string) error {
	rest := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--command" })
	name, err := one(rest, "the name of a profile")
	if err != nil {
		return err
	}
	if len(rest) < len(args) {
		return c.showCommand(name)
	}
	data, source, err := c.store.Read(name)
	if err != nil {
		return err
	}
	if source.Hides() {
		fmt.Fprintf(c.stderr, "note: %s hides the shipped profile\n", source.Path)
	}
	_, err = c.stdout.Write(data)
	return err
}

func (c *command) showCommand(name string) error {
	p, _, err := c.store.Open(name)
	if err != nil {
		return err
	}
	var base *profiles.Profile
	if p.Load != nil { // no flag gives a load: it is taken from the demonstration, as far as it is the same
		if base, _, err = c.store.Open("demo"); err != nil {
			return err
		}
	}
	args, rest := settings.CommandLine(base, p)
	if len(rest) > 0 {
		fmt.Fprintf(c.stderr, "note: no flag gives %s; beside that it is mockbench %s\n", strings.Join(rest, ", "), settings.Shell(args))
		args = []string{"--profile", name}
	}
	fmt.Fprintln(c.stdout, strings.TrimSpace("mockbench "+settings.Shell(args)))
	return nil
}

// locatedError is what is wrong in a file, in the form that editors follow.
type locatedError struct {
	path string
	err  *profiles.FileError
}

func (e *locatedError) Error() string {
	return fmt.Sprintf("%s:%d: %v", e.path, max(1, e.err.Line), e.err.Err)
}

// check reads profiles and reports the first mistake of each.
func (c *command) check(args []string) error {
	if len(args) == 0 {
		return &flags.UsageError{Text: "check: needs the name of a profile or a file"}
	}
	var all []error
	for _, name := range args {
		p, source, err := c.store.Open(name)
		var wrong *profiles.FileError
		switch {
		case errors.As(err, &wrong):
			all = append(all, &locatedError{source.Path, wrong})
		case err != nil:
			all = append(all, err)
		default:
			err = c.warnings(name, p)
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// warnings tells of settings of a profile that have no effect.
func (c *command) warnings(name string, p *profiles.Profile) error {
	l, err := p.Resolve()
	if err != nil {
		return err
	}
	for _, w := range l.Warnings {
		fmt.Fprintf(c.stderr, "warning: %s: %s\n", name, w)
	}
	fmt.Fprintf(c.stdout, "%s: correct\n", name)
	return nil
}

// schema writes a JSON Schema.
func (c *command) schema(args []string) error {
	s := profiles.ProfileSchema()
	switch {
	case len(args) == 0 || slices.Equal(args, []string{"profile"}):
	case slices.Equal(args, []string{"engine"}):
		s = profiles.EngineSchema()
	default:
		return &flags.UsageError{Text: fmt.Sprintf("schema: got %s, allowed: profile, engine", strings.Join(args, " "))}
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.stdout, "%s\n", data)
	return err
}
