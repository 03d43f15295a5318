package profiles_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"mockbench/profiles"
)

// The table of profiles in the documentation is what the files say of themselves.
func TestDocumentation(t *testing.T) {
	const path, begin, end = "../docs/profiles.md", "<!-- profiles -->\n", "<!-- end of profiles -->"
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := bytes.Cut(have, []byte(begin))
	_, tail, both := bytes.Cut(rest, []byte(end))
	if !ok || !both {
		t.Fatal("the marks around the table are missing")
	}
	var want bytes.Buffer
	fmt.Fprintf(&want, "%s%s\n| profile | shows | look at | change |\n|---|---|---|---|\n", head, begin)
	for _, name := range profiles.Names() {
		data, _, err := profiles.Store{}.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		a := profiles.Notes(data)
		fmt.Fprintf(&want, "| [%s](../profiles/%s.toml) | %s | %s | %s |\n", name, name, a.Title, a.LookAt, a.Change)
	}
	fmt.Fprintf(&want, "\n%s%s", end, tail)
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(have, want.Bytes()) && !*update {
		t.Error("docs/profiles.md is not current, run: go generate ./profiles")
	}
}
