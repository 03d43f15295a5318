// Package completion completes command lines of mockbench in bash, zsh, fish and PowerShell. The scripts it prints ask
// the program itself at every key, so that they never say anything else than the tables of flags and commands do.
package completion

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/flags"
	"mockbench/profiles"
)

// Candidate is one way to go on.
type Candidate struct {
	Text string
	Help string // one line
}

// Kind is what the shell adds to the candidates.
type Kind string

// Kinds of additions.
const (
	Nothing Kind = ""
	Files   Kind = ":files"
	Dirs    Kind = ":dirs"
)

// Complete returns what the last of the words can become. Words are those after the name of the program; the last is
// the one at the cursor, empty between two words. A word "=" of its own counts as the sign within --flag=value, which
// bash splits.
func Complete(commands []flags.Command, words []string) ([]Candidate, Kind) {
	words, current, glued := split(words)
	known := flags.All()
	var command *flags.Command
	if len(words) > 0 {
		if command, _ = flags.FindCommand(commands, words); command != nil {
			words, known = words[1:], flagsOf(command)
		}
	}
	prefix := ""
	if name, value, joined := strings.Cut(current, "="); joined && strings.HasPrefix(name, "-") {
		words, prefix, current = append(words, name), name+"=", value
	}
	if len(words) > 0 {
		if f := valueOf(known, words[len(words)-1]); f != nil {
			list, kind := values(f)
			return matching(list, prefix, current), kind
		}
	}
	switch {
	case prefix != "" || glued:
		return nil, Nothing // a value for something that takes none
	case strings.HasPrefix(current, "-"):
		return matching(names(known), "", current), Nothing
	case command == nil && len(words) == 0:
		return matching(append(commandNames(commands), names(known)...), "", current), Nothing
	case command == nil:
		return matching(names(known), "", current), Nothing
	case command.Name == "help":
		return matching(commandNames(commands), "", current), Nothing
	case len(command.Words) > 0 && len(words) == 0:
		return matching(plain(command.Words), "", current), Nothing
	}
	return matching(names(known), "", current), Files
}

// split parts the word at the cursor from the others.
func split(words []string) (before []string, current string, glued bool) {
	if len(words) == 0 {
		return nil, "", false
	}
	last := len(words) - 1
	current, before = words[last], words[:last]
	switch {
	case current == `""`: // how some versions of PowerShell pass an empty word
		current = ""
	case current == "=":
		current, glued = "", true
	case last > 0 && words[last-1] == "=":
		glued = true
	}
	return slices.DeleteFunc(slices.Clone(before), func(w string) bool { return w == "=" }), current, glued
}

// flagsOf returns the flags of a command.
func flagsOf(c *flags.Command) []*flags.Flag {
	var list []*flags.Flag
	if c.Flags != nil {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			arg, help := pflag.UnquoteUsage(f)
			own := &flags.Flag{Name: "--" + f.Name, Kind: flags.String, Arg: arg, Help: help, Hidden: f.Hidden}
			if f.Value.Type() == "bool" {
				own.Kind = flags.Switch
			}
			list = append(list, own)
		})
	}
	if c.WorkerFlags {
		list = append(list, flags.All()...)
	}
	return list
}

// valueOf returns the flag whose value follows a word, nil if none does.
func valueOf(known []*flags.Flag, word string) *flags.Flag {
	for _, f := range known {
		if f.Kind != flags.Switch && (f.Name == word || slices.Contains(f.Aliases, word)) {
			return f
		}
	}
	return nil
}

// values returns what a flag can be given, as far as that is a list or a file.
func values(f *flags.Flag) ([]Candidate, Kind) {
	words := f.Allowed
	if len(words) == 0 {
		words = f.Words
	}
	if f.Name == "--profile" {
		words = profiles.UserStore().Names()
	}
	switch arg := f.Arg; {
	case arg == "DIR":
		return plain(words), Dirs
	case strings.Contains(arg, "FILE"), strings.Contains(arg, "PATH"):
		return plain(words), Files
	}
	return plain(words), Nothing
}

func plain(words []string) []Candidate {
	list := make([]Candidate, len(words))
	for i, w := range words {
		list[i].Text = w
	}
	return list
}

func commandNames(commands []flags.Command) (list []Candidate) {
	for _, c := range commands {
		if !c.Hidden {
			list = append(list, Candidate{c.Name, c.Summary})
		}
	}
	return list
}

// names returns the spellings of flags that are not on their way out.
func names(known []*flags.Flag) (list []Candidate) {
	for _, f := range known {
		if f.Hidden || f.ReplacedBy != "" {
			continue
		}
		for _, name := range append([]string{f.Name}, f.Off...) {
			list = append(list, Candidate{name, f.Help})
		}
	}
	return list
}

// matching returns the candidates that continue a text, with what stands in front of it.
func matching(list []Candidate, prefix, text string) (out []Candidate) {
	for _, c := range list {
		if strings.HasPrefix(c.Text, text) {
			out = append(out, Candidate{prefix + c.Text, c.Help})
		}
	}
	return out
}

// Answer is the hidden command that the scripts call: it writes one candidate a line, text and help parted by a tab,
// and at last what the shell shall add.
func Answer(commands func() []flags.Command) func(args []string, stdout, _ io.Writer) int {
	return func(args []string, stdout, _ io.Writer) int {
		list, kind := Complete(commands(), args)
		var b strings.Builder
		for _, c := range list {
			b.WriteString(c.Text)
			if c.Help != "" {
				b.WriteString("\t" + c.Help)
			}
			b.WriteByte('\n')
		}
		if kind != Nothing {
			b.WriteString(string(kind) + "\n")
		}
		io.WriteString(stdout, b.String())
		return 0
	}
}

// Main is the command that prints the script of a shell.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 {
		if args[0] == "--help" || args[0] == "-h" {
			io.WriteString(stdout, usage)
			return 0
		}
		if text, err := scripts.ReadFile("scripts/" + args[0]); err == nil {
			stdout.Write(text)
			return 0
		}
	}
	given := "nothing"
	if len(args) > 0 {
		given = strings.Join(args, " ")
	}
	return flags.Fail(stderr, "mockbench completion", &flags.UsageError{
		Text: "got " + given + ", must be one of: " + strings.Join(Shells, ", ")})
}
