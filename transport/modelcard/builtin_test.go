package modelcard

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mockbench/engine"
)

func TestBuiltin(t *testing.T) {
	words := Words()
	if len(words) != wordCount {
		t.Fatalf("%d words", len(words))
	}
	cache := t.TempDir()
	m, err := Builtin(cache)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Model struct{ Vocab map[string]int }
	}
	data, err := os.ReadFile(filepath.Join(m.Dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Model.Vocab) != vocabulary || file.Model.Vocab["Ġ"+words[0]] != firstWord || file.Model.Vocab["!"] != len(specials) {
		t.Errorf("%d entries, first word %d", len(file.Model.Vocab), file.Model.Vocab["Ġ"+words[0]])
	}
	if err := os.WriteFile(filepath.Join(m.Dir, "config.json"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Builtin(cache)
	if err != nil || again.Dir != m.Dir {
		t.Fatalf("got %v, %v", again, err)
	}
	card, err := New(Options{Model: again, Name: BuiltinName, Engine: engine.DefaultConfig(engine.VLLM), Ranks: 1})
	if err != nil || card.Architected == nil || *card.Architected != 131072 {
		t.Errorf("got %+v, %v", card, err)
	}
	left, _ := filepath.Glob(filepath.Join(cache, "mockbench", ".model-*"))
	if len(left) > 0 {
		t.Errorf("scraps are left: %v", left)
	}
}

// TestBuiltinWithoutCache puts a file where the cache folder would be: the folder for temporary files takes its place.
func TestBuiltinWithoutCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	m, err := Builtin(file)
	if err != nil || !strings.HasPrefix(m.Dir, temp) {
		t.Errorf("got %v, %v, want a directory in %s", m, err, temp)
	}
	t.Setenv("TMPDIR", file)
	if m, err := Builtin(file); err == nil {
		t.Errorf("got %v where nothing can be written", m)
	}
}

func TestWordsAreDistinctAndReadable(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range Words() {
		if seen[w] || len(w) < 2 || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q is there twice or is no word", w)
		}
		seen[w] = true
	}
}
