package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamedTestsExist holds that no row names a test that was renamed or deleted.
func TestNamedTestsExist(t *testing.T) {
	rows, err := readRows(rowsFile)
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]map[string]bool{}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.id] {
			t.Errorf("%s stands twice", r.id)
		}
		seen[r.id] = true
		for _, n := range r.tests {
			if functions[n.pkg] == nil {
				functions[n.pkg] = testFunctions(t, n.pkg)
			}
			if !functions[n.pkg][n.function()] {
				t.Errorf("%s: %s has no %s", r.id, n.pkg, n.function())
			}
		}
	}
}

// testFunctions gives the names of the tests and examples of a package.
func testFunctions(t *testing.T, pkg string) map[string]bool {
	files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`).FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
	}
	return found
}

// TestPageHasEveryRow holds that the page was written from the rows as they are, by a run in which all tests passed.
func TestPageHasEveryRow(t *testing.T) {
	rows, err := readRows(rowsFile)
	if err != nil {
		t.Fatal(err)
	}
	all := result{}
	for _, r := range rows {
		for _, n := range r.tests {
			all[n] = "pass"
		}
	}
	var want bytes.Buffer
	write(&want, rows, all)
	page, err := os.ReadFile(filepath.Join("..", "features.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, want.Bytes()) {
		t.Error("docs/features.md is not what a run without failures writes; run `go tool task features`")
	}
}

func TestStates(t *testing.T) {
	rows, err := readRows("[names]\nx/ = some/pkg TestX/\n[S]\nA | one | x/a*; some/pkg TestY\nB | two |\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ run, want string }{
		{`{"Action":"pass","Package":"mockbench/some/pkg","Test":"TestX/a/b"}
{"Action":"pass","Package":"mockbench/some/pkg","Test":"TestY"}`, "passed"},
		{`{"Action":"pass","Package":"mockbench/some/pkg","Test":"TestX/a/b"}`, "**not run**: some/pkg TestY"},
		{`{"Action":"skip","Package":"mockbench/some/pkg","Test":"TestX/ab"}`, "**skip**: some/pkg TestX/ab"},
		{`{"Action":"pass","Package":"mockbench/other","Test":"TestX/ab"}`, "**not run**: some/pkg TestX/a*"},
	} {
		run, err := readRun(strings.NewReader(c.run))
		if err != nil {
			t.Fatal(err)
		}
		if got := rows[0].state(run); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if got := rows[1].state(nil); got != "no test" {
		t.Errorf("got %s", got)
	}
	if _, err := readRows("[S]\nA | b\n"); err == nil {
		t.Error("a row of two columns was accepted")
	}
}
