package keys

import (
	"os"
	"slices"
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
	for _, b := range slices.Concat(Table, Tape) {
		if len(b.Names()) > 22 || len(b.Long) > 52 || b.Long == "" {
			t.Errorf("%s: %s", b.Names(), b.Long)
		}
	}
}

func TestMarkdownListsEveryRow(t *testing.T) {
	for _, table := range [][]Binding{Table, Tape} {
		if got, want := strings.Count(Markdown(table), "\n"), len(table)+2; got != want {
			t.Errorf("%d lines, want %d", got, want)
		}
	}
}

// The documents have the tables as they are; with UPDATE_GOLDEN set they are written there.
func TestDocumentsHaveTheTables(t *testing.T) {
	checkTable(t, Table, "../../docs/screen.md")
	checkTable(t, Tape, "../../docs/recording.md")
}

func checkTable(t *testing.T, list []Binding, file string) {
	const begin, end = "<!-- keys -->\n", "<!-- end of keys -->\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", file)
	}
	if table == Markdown(list) {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Fatalf("%s does not have the table of the keys; set UPDATE_GOLDEN to write it", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+Markdown(list)+end+after), 0o666); err != nil {
		t.Fatal(err)
	}
}
