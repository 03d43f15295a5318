package profilescmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/profiles"
)

// saving is what the words after "save" ask for.
type saving struct {
	name, description string
	described, force  bool
	flags             []string // of the run that is saved
}

func parseSave(args []string) (s saving, err error) {
	for i := 0; i < len(args); i++ {
		text, joined := strings.CutPrefix(args[i], "--description=")
		switch {
		case args[i] == "--force":
			s.force = true
		case joined:
			s.description, s.described = text, true
		case args[i] == "--description" && i+1 < len(args):
			i++
			s.description, s.described = args[i], true
		case s.name == "" && len(s.flags) == 0:
			s.name = args[i]
		default:
			s.flags = append(s.flags, args[i])
		}
	}
	if s.name == "" || strings.HasPrefix(s.name, "-") {
		return s, &flags.UsageError{Text: "save: needs the name of the profile first"}
	}
	return s, nil
}

// save writes the settings of a command line as a profile.
func (c *command) save(args []string) error {
	s, err := parseSave(args)
	if err != nil {
		return err
	}
	v, err := flags.Read(s.flags, c.lookup)
	if err != nil {
		return err
	}
	if v.Exit != flags.ExitNone {
		c.help()
		return nil
	}
	run, err := settings.Resolve(v, c.lookup, settings.Demo)
	if err == nil {
		err = settings.Refuse(v, run)
	}
	if err != nil {
		return err
	}
	p := run.AsProfile()
	p.Description = s.description
	if !s.described && run.Profile != "" {
		if p.Description, err = c.changes(run.Profile, p); err != nil {
			return err
		}
	}
	data, err := p.Encode()
	if err != nil {
		return err
	}
	path, err := c.store.Write(s.name, data, s.force)
	if errors.Is(err, profiles.ErrExists) {
		return fmt.Errorf("%w, --force replaces it", err)
	}
	if err != nil {
		return err
	}
	c.saved(s.name, path, run.Warnings, settings.NotInProfile(v))
	return nil
}

// changes describes a profile by what it changes of another one.
func (c *command) changes(from string, p *profiles.Profile) (string, error) {
	base, _, err := c.store.Open(from)
	if err != nil {
		return "", err
	}
	args, _ := settings.CommandLine(base, p)
	if args = args[len([]string{"--profile", from}):]; len(args) == 0 {
		return "From " + from, nil
	}
	return "From " + from + " with " + settings.Shell(args), nil
}

func (c *command) saved(name, path string, warnings, left []string) {
	for _, w := range warnings {
		fmt.Fprintf(c.stderr, "warning: %s\n", w)
	}
	if len(left) > 0 {
		fmt.Fprintf(c.stderr, "note: profiles do not hold %s; give it with each run\n", strings.Join(left, ", "))
	}
	if slices.Contains(profiles.Names(), name) {
		fmt.Fprintf(c.stderr, "note: this hides the shipped profile %s\n", name)
	}
	fmt.Fprintf(c.stdout, "%s\n", path)
}

// edit lets the user change a profile in an editor. What is wrong takes no effect: the profile stays as it was, and the
// text is kept for the next edit.
func (c *command) edit(args []string) error {
	name, err := one(args, "the name of a profile")
	if err != nil {
		return err
	}
	if strings.TrimSpace(c.editor) == "" {
		return errors.New("edit: needs an editor, set VISUAL or EDITOR")
	}
	before, _, err := c.store.Read(name)
	if err != nil {
		return err
	}
	draft, err := c.openDraft(name, before)
	if err != nil {
		return err
	}
	editor := exec.Command("sh", "-c", c.editor+` "$@"`, "sh", draft)
	editor.Stdin, editor.Stdout, editor.Stderr = os.Stdin, c.stdout, c.stderr
	failed := editor.Run()
	after, err := os.ReadFile(draft)
	if err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	switch {
	case bytes.Equal(before, after):
		os.Remove(draft)
		if failed != nil {
			return fmt.Errorf("edit: %s: %w", c.editor, failed)
		}
		fmt.Fprintf(c.stdout, "%s: unchanged\n", name)
		return nil
	case failed != nil:
		return fmt.Errorf("edit: %s: %w; the profile is as it was, the text is kept in %s", c.editor, failed, draft)
	}
	path, err := c.store.Write(name, after, true)
	if err != nil {
		return fmt.Errorf("%w; the profile is as it was, the text is kept in %s for the next edit", err, draft)
	}
	os.Remove(draft)
	c.saved(name, path, nil, nil)
	return nil
}

// openDraft puts the text to edit into a file: that of an earlier edit that failed, else the profile's.
func (c *command) openDraft(name string, text []byte) (string, error) {
	path, err := c.store.Draft(name)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		fmt.Fprintf(c.stderr, "note: this is the text of an earlier edit, %s\n", path)
		return path, nil
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return path, err
}
