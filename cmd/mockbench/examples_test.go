package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/replaycmd"
	"mockbench/cmd/mockbench/settings"
)

// TestExamplesOfTheDocuments reads every command line that the documents show, as the program would before it runs.
func TestExamplesOfTheDocuments(t *testing.T) {
	files := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == "cli.md" }) // the help, no examples
	examples := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range shellLines(string(data)) {
			for _, args := range commandLines(line) {
				examples++
				if err := readable(args); err != nil {
					t.Errorf("%s: %s\n%v", filepath.Base(file), line, err)
				}
			}
		}
	}
	if examples < 30 {
		t.Errorf("only %d examples were found", examples)
	}
}

// TestEngineObjectsOfTheDocuments reads the engine objects that the text about replays shows.
func TestEngineObjectsOfTheDocuments(t *testing.T) {
	data, err := os.ReadFile("../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("`(\\{\"[^`]*)`").FindAllStringSubmatch(string(data), -1)
	if len(found) == 0 {
		t.Error("there are none")
	}
	for _, m := range found {
		if _, err := replaycmd.NewPlan([]string{"--extra-engine-args", m[1], "trace.jsonl"}); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
}

// shellLines returns the lines of code blocks that start the program, continued ones in one piece.
func shellLines(text string) (list []string) {
	code := false
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		trimmed := strings.TrimPrefix(strings.TrimSpace(line), "go run ./cmd/")
		switch {
		case strings.HasPrefix(trimmed, "```"):
			code = !code
		case code && strings.HasPrefix(trimmed, "mockbench") && line[0] != ' ': // indented ones are screens and usage lines
			list = append(list, trimmed)
		}
	}
	return list
}

// commandLines splits a line as a shell does, comments and what reads its output left out, into the arguments of each start
// of the program.
func commandLines(line string) (list [][]string) {
	var words []string
	end := func() {
		if len(words) > 0 && words[0] == "mockbench" {
			list = append(list, words[1:])
		}
		words = nil
	}
	word, open, quote := "", false, rune(0)
	closeWord := func() {
		if open && word != "go" && word != "run" {
			words = append(words, strings.TrimPrefix(word, "./cmd/"))
		}
		word, open = "", false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == '#' && !open:
			end()
			return list
		case r == '|' || r == '&' || r == ';':
			closeWord()
			end()
		case unicode.IsSpace(r):
			closeWord()
		default:
			word, open = word+string(r), true
		}
	}
	closeWord()
	end()
	return list
}

// readable reads a command line without running it.
func readable(args []string) error {
	for i := range args { // profiles that a reader has saved meanwhile, and a variable of a loop
		if i > 0 && args[i-1] == "--profile" && (args[i] == "mine" || strings.HasPrefix(args[i], "tuned-")) {
			args[i] = "demo"
		}
		args[i] = strings.ReplaceAll(args[i], "$n", "512")
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return readableRun(args)
	}
	all := commands()
	at := slices.IndexFunc(all, func(c flags.Command) bool { return c.Name == args[0] })
	if at < 0 {
		return fmt.Errorf("no command %s", args[0])
	}
	c, rest := all[at], args[1:]
	switch {
	case c.Name == "replay":
		_, err := replaycmd.NewPlan(rest)
		return err
	case c.Name == "doctor":
		return readableRun(rest)
	case len(c.Words) > 0 && (len(rest) == 0 || !slices.Contains(c.Words, rest[0])):
		return fmt.Errorf("%s: must be followed by one of %q", c.Name, c.Words)
	case c.Flags != nil:
		set := c.Flags()
		set.SetOutput(io.Discard)
		return set.Parse(rest)
	}
	return nil
}

// readableRun reads the flags of a run.
func readableRun(args []string) error {
	none := func(string) (string, bool) { return "", false }
	v, err := flags.Read(args, none)
	if err != nil {
		return err
	}
	s, err := settings.Resolve(v, none, settings.Demo)
	if err != nil {
		return err
	}
	return settings.Refuse(v, s)
}
