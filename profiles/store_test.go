package profiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mockbench/profiles"
)

func TestStore(t *testing.T) {
	s := profiles.Store{Dir: filepath.Join(t.TempDir(), "a", "b")}
	if !slices.Equal(s.Names(), profiles.Names()) {
		t.Error("a folder that does not exist has the shipped profiles")
	}
	path, err := s.Write("demo", []byte("workers = 7\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write("demo", []byte("workers = 8\n"), false); !errors.Is(err, profiles.ErrExists) {
		t.Errorf("a profile is replaced unasked: %v", err)
	}
	p, source, err := s.Open("demo")
	if err != nil || p.Workers != 7 || !source.Hides() || source.Path != path {
		t.Errorf("%+v from %+v, %v", p, source, err)
	}
	if _, err := s.Write("demo", []byte("workers = 8\n"), true); err != nil {
		t.Error(err)
	}
	var wrong *profiles.FileError
	if _, err := s.Write("new", []byte("workers = 0\n"), false); !errors.As(err, &wrong) || wrong.Line != 1 {
		t.Errorf("what is no profile is stored: %v", err)
	}
	for _, name := range []string{"", ".", "../x", "a/b", "a.toml", "-x"} {
		if _, err := s.Write(name, []byte("workers = 1\n"), true); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
	for file, text := range map[string]string{".hidden.toml": "", "no profile.txt": "", "own.toml": "workers = 2"} {
		if err := os.WriteFile(filepath.Join(s.Dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if names := s.Names(); len(names) != len(profiles.Names())+1 || !slices.Contains(names, "own") {
		t.Errorf("names %q", names)
	}
	if files, _ := os.ReadDir(s.Dir); len(files) != 4 {
		t.Errorf("the folder holds %v", files)
	}
}

// A store without a folder has the shipped profiles and says why it cannot take any.
func TestStoreWithoutFolder(t *testing.T) {
	if _, _, err := (profiles.Store{}).Open("demo"); err != nil {
		t.Error(err)
	}
	if _, err := (profiles.Store{}).Write("x", nil, false); err == nil {
		t.Error("a profile is stored nowhere")
	}
}
