// Command features writes docs/features.md: every row of rows.txt with the state of the tests that hold it, read from the
// output of `go test -json` on standard input.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	_ "embed"
)

//go:embed rows.txt
var rowsFile string

// module is what `go test` puts before the names of packages.
const module = "mockbench/"

// row is one thing that the program must do.
type row struct {
	section, id, feature string
	tests                []testName
}

// testName names one test, or all subtests that a pattern matches, as "PACKAGE TEST/SUB*".
type testName struct{ pkg, test string }

func (n testName) String() string { return n.pkg + " " + n.test }

// function is the name of the test's Go function.
func (n testName) function() string {
	f, _, _ := strings.Cut(n.test, "/")
	return f
}

// matches tells whether a test of a run is meant. A star stands for any characters, slashes too.
func (n testName) matches(pkg, test string) bool {
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	ok, err := path.Match(flat(n.test), flat(test))
	return n.pkg == pkg && ok && err == nil
}

// readRows reads the sections of rows.txt.
func readRows(text string) ([]row, error) {
	var rows []row
	var section string
	short := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		switch name, inner := strings.CutPrefix(line, "["); {
		case line == "" || strings.HasPrefix(line, "#"):
		case inner:
			section = strings.TrimSuffix(name, "]")
		case section == "names":
			from, to, ok := strings.Cut(line, " = ")
			if !ok {
				return nil, fmt.Errorf("rows.txt:%d: got %q, want SHORT = PACKAGE TEST", i+1, line)
			}
			short[from] = to
		default:
			r, err := readRow(section, line, short)
			if err != nil {
				return nil, fmt.Errorf("rows.txt:%d: %w", i+1, err)
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func readRow(section, line string, short map[string]string) (row, error) {
	parts := strings.Split(line, "|")
	if len(parts) != 3 {
		return row{}, fmt.Errorf("got %d columns, want ID | feature | tests", len(parts))
	}
	r := row{section: section, id: strings.TrimSpace(parts[0]), feature: strings.TrimSpace(parts[1])}
	for name := range strings.SplitSeq(parts[2], ";") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		head, rest, _ := strings.Cut(name, "/")
		if full, ok := short[head+"/"]; ok {
			name = full + rest
		}
		pkg, test, ok := strings.Cut(name, " ")
		if !ok {
			return row{}, fmt.Errorf("got test %q, want PACKAGE TEST", name)
		}
		r.tests = append(r.tests, testName{pkg, test})
	}
	return r, nil
}

// result is how the tests of a run ended: "pass", "fail" or "skip" by package and test.
type result map[testName]string

// readRun reads the output of `go test -json`.
func readRun(in io.Reader) (result, error) {
	ended := result{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var e struct{ Action, Package, Test string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("not the output of go test -json: %w", err)
		}
		if e.Test != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			ended[testName{strings.TrimPrefix(e.Package, module), e.Test}] = e.Action
		}
	}
	return ended, lines.Err()
}

// state is one word on a row: "passed" when every test that it names ran and passed.
func (r row) state(run result) string {
	if len(r.tests) == 0 {
		return "no test"
	}
	for _, n := range r.tests {
		found := false
		for ran, how := range run {
			if !n.matches(ran.pkg, ran.test) {
				continue
			}
			found = true
			if how != "pass" {
				return "**" + how + "**: " + ran.String()
			}
		}
		if !found {
			return "**not run**: " + n.String()
		}
	}
	return "passed"
}

// write writes the page.
func write(out io.Writer, rows []row, run result) {
	fmt.Fprint(out, "# What it does, and which test holds it\n\n"+
		"Written by `go tool task features`, which runs all tests. `passed` means that every named test ran and passed.\n")
	section := ""
	for _, r := range rows {
		if r.section != section {
			section = r.section
			fmt.Fprintf(out, "\n## %s\n\n| | feature | state | tests |\n|---|---|---|---|\n", section)
		}
		names := make([]string, len(r.tests))
		for i, n := range r.tests {
			names[i] = "`" + n.String() + "`"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", r.id, r.feature, r.state(run), strings.Join(names, "<br>"))
	}
}

func main() {
	rows, err := readRows(rowsFile)
	if err == nil {
		var run result
		if run, err = readRun(os.Stdin); err == nil {
			write(os.Stdout, rows, run)
			return
		}
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
