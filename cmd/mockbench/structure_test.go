package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// allowed says which of our top folders each top folder may import besides itself.
var allowed = map[string][]string{
	"kv":        {},
	"engine":    {"kv"},
	"transport": {"engine", "kv"},
	"profiles":  {"engine", "kv"},
	"ui":        {"engine", "kv"},
	"cmd":       {"ui", "transport", "profiles", "engine", "kv"},
	"docs":      {},
	"interop":   {"ui", "transport", "profiles", "engine", "kv", "cmd"},
}

// everyFile calls f with every Go file of the repository and its path below the root.
func everyFile(t *testing.T, f func(path string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	const root = "../.."
	count := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		count++
		f(filepath.ToSlash(short), set, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 50 {
		t.Fatalf("only %d files found", count)
	}
}

func TestImportDirections(t *testing.T) {
	everyFile(t, func(path string, _ *token.FileSet, file *ast.File) {
		from, _, inFolder := strings.Cut(path, "/")
		rule, known := allowed[from]
		if !inFolder || !known {
			t.Errorf("%s: lies in none of the agreed folders", path)
			return
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			to, ours := strings.CutPrefix(name, "mockbench/")
			if !ours {
				continue
			}
			to, _, _ = strings.Cut(to, "/")
			ok := to == from
			for _, r := range rule {
				ok = ok || r == to
			}
			if !ok {
				t.Errorf("%s imports %s: %s may import %v only", path, name, from, rule)
			}
		}
	})
}

// Every goroutine goes through engine/spawn, so that a panic in it brings the terminal back.
func TestGoroutinesAreSpawned(t *testing.T) {
	everyFile(t, func(path string, set *token.FileSet, file *ast.File) {
		helper := strings.HasPrefix(path, "ui/uitest/") // only tests import it
		if strings.HasPrefix(path, "engine/spawn/") || helper || strings.HasSuffix(path, "_test.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if stmt, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: goroutine outside engine/spawn", set.Position(stmt.Pos()))
			}
			return true
		})
	})
}
