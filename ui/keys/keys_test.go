package keys

import (
	"os"
	"strings"
	"testing"
)

func TestNoKeyHasTwoMeaningsInOnePanel(t *testing.T) {
	seen := map[string]Where{}
	for _, b := range Table {
		for _, k := range b.Keys {
			if both := seen[k] & b.Where; both != 0 {
				t.Errorf("key %q has two meanings in panels %b", k, both)
			}
			seen[k] |= b.Where
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		key   string
		panel Where
		want  Action
	}{
		{"q", Overview, Quit}, {"f", Blocks, Lens}, {"f", Events, Freeze}, {"f", Latency, None}, {"5", Routing, Panel},
		{" ", Knobs, Pause}, {"left", Events, None},
	} {
		if b, _ := Find(c.key, c.panel); b.Action != c.want {
			t.Errorf("%q: got %v, want %v", c.key, b.Action, c.want)
		}
	}
}

func TestTextsFitTheHelp(t *testing.T) {
	for _, b := range Table {
		if len(b.Names()) > 22 || len(b.Long) > 52 || b.Long == "" {
			t.Errorf("%s: %s", b.Names(), b.Long)
		}
	}
}

func TestMarkdownListsEveryRow(t *testing.T) {
	if got, want := strings.Count(Markdown(), "\n"), len(Table)+2; got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
}

// The documents have the table as it is; with UPDATE_GOLDEN set it is written there.
func TestDocumentsHaveTheTable(t *testing.T) {
	const file, begin, end = "../../docs/screen.md", "<!-- keys -->\n", "<!-- end of keys -->\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", file)
	}
	if table == Markdown() {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Fatalf("%s does not have the table of the keys; set UPDATE_GOLDEN to write it", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+Markdown()+end+after), 0o666); err != nil {
		t.Fatal(err)
	}
}
