// Package configcmd is the command "mockbench config": it shows what a command line, the environment, a profile and a
// file come to, and checks files without running anything.
package configcmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mockbench/cmd/mockbench/app"
	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/profiles"
)

// Words are the subcommands.
var Words = []string{"show", "check"}

const usage = `usage: mockbench config show [--json] [flags of a run]
       mockbench config check FILE...

show prints every setting of the run that the same flags would start, with its value and where it comes from: the
default, a profile and its line, a variable of the environment, a flag, or the file of --extra-engine-args.
check reads profiles (TOML) and engine configurations (JSON) and says what is wrong, with file, line and setting.

Exit status: 0 all is well, 1 a setting is wrong, 2 wrong command line, 104 show: the profile is wrong.
`

// Main runs the command and returns its exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		io.WriteString(stdout, usage)
		return 0
	}
	var err error
	switch {
	case len(args) > 0 && args[0] == "show":
		err = show(args[1:], stdout, stderr)
	case len(args) > 1 && args[0] == "check":
		return check(args[1:], stdout, stderr)
	case len(args) == 1 && args[0] == "check":
		err = &flags.UsageError{Text: "check needs the names of files"}
	case len(args) == 0:
		err = &flags.UsageError{Text: "needs show or check"}
	default:
		err = &flags.UsageError{Text: fmt.Sprintf("unexpected argument %s, must be show or check", args[0])}
	}
	if err != nil {
		return flags.Fail(stderr, "mockbench config", err)
	}
	return 0
}

// check reads every file and reports each that is wrong.
func check(files []string, stdout, stderr io.Writer) (status int) {
	for _, name := range files {
		if err := checkFile(name); err != nil {
			fmt.Fprintf(stderr, "error: %s\n", flags.Line(err))
			status = 1
			continue
		}
		fmt.Fprintf(stdout, "%s: ok\n", name)
	}
	return status
}

// checkFile takes a file for JSON if its name ends so or its text starts with a brace, and for a profile otherwise.
func checkFile(name string) error {
	text, err := profiles.ReadFile(name)
	if err == nil && (filepath.Ext(name) == ".json" || bytes.HasPrefix(bytes.TrimSpace(text), []byte{'{'})) {
		return settings.CheckJSON(name, text)
	}
	_, _, err = profiles.UserStore().Open(name)
	return err
}

// show prints the settings of a run.
func show(args []string, stdout, stderr io.Writer) error {
	asJSON := slices.Contains(args, "--json")
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--json" })
	v, err := flags.Read(args, os.LookupEnv)
	if err != nil {
		return err
	}
	s, err := app.Resolve(v)
	if err != nil {
		return err
	}
	list, err := List(v, s)
	if err != nil {
		return err
	}
	notes := append(slices.Clone(s.Deprecations), s.Warnings...)
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		err = e.Encode(struct {
			Settings []Setting        `json:"settings"`
			Engine   *profiles.Object `json:"engine_config"` // as for --extra-engine-args
			Notes    []string         `json:"notes"`
		}{list, s.Launch.Canonical(), notes})
	} else {
		_, err = io.WriteString(stdout, table(list))
		for _, note := range notes {
			fmt.Fprintf(stderr, "note: %s\n", note)
		}
	}
	if err != nil {
		return err
	}
	return settings.Refuse(v, s) // what a run would say, after what it would use
}

// table lays settings out in columns.
func table(list []Setting) string {
	var b strings.Builder
	names, values := 0, 0
	for _, s := range list {
		names, values = max(names, len(s.Name)), max(values, min(len(text(s.Value)), 40))
	}
	for _, s := range list {
		fmt.Fprintf(&b, "%-*s  %-*s  %s\n", names, s.Name, values, text(s.Value), s.Source)
	}
	return b.String()
}

// text writes a value as a person does: no quotes, a dash for none.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	if v == nil {
		return "-"
	}
	out, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(out)
}
