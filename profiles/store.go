package profiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const extension = ".toml"

// Store is the folder of a user's own profiles, beside those shipped in the program. A name means the user's profile,
// else the shipped one.
type Store struct{ Dir string }

// Variable names the folder of a user's profiles in the environment.
const Variable = "MOCKBENCH_PROFILES"

// UserStore returns the store of the user: $MOCKBENCH_PROFILES, else mockbench/profiles in the folder where the
// platform keeps configuration. Where there is none, the store has only the shipped profiles.
func UserStore() Store {
	if dir := os.Getenv(Variable); dir != "" {
		return Store{dir}
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return Store{}
	}
	return Store{filepath.Join(config, "mockbench", "profiles")}
}

// ErrExists says that a profile is not replaced unasked.
var ErrExists = errors.New("exists")

// Source is where a profile comes from.
type Source struct {
	Name    string
	Path    string // of a file; empty for a shipped profile
	Shipped bool   // the program ships a profile of this name
}

// Hides reports whether a user's profile stands in front of a shipped one.
func (s Source) Hides() bool { return s.Path != "" && s.Shipped }

// List returns where all profiles come from, sorted by name.
func (s Store) List() ([]Source, error) {
	var all []Source
	files, err := os.ReadDir(s.Dir)
	if err != nil && s.Dir != "" && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := Names()
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), extension); ok && validName.MatchString(name) && !f.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		all = append(all, s.find(name))
	}
	return all, nil
}

// find returns where a name leads, without looking for other files.
func (s Store) find(name string) Source {
	_, isShipped := shipped(name)
	source := Source{Name: name, Shipped: isShipped}
	if s.Dir == "" || !validName.MatchString(name) {
		return source
	}
	if info, err := os.Stat(s.path(name)); err == nil && !info.IsDir() {
		source.Path = s.path(name)
	}
	return source
}

func (s Store) path(name string) string { return filepath.Join(s.Dir, name+extension) }

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// Read returns the text of a profile: the user's, else one shipped in the program, else a file of that path.
func (s Store) Read(name string) ([]byte, Source, error) {
	source := s.find(name)
	if source.Path == "" && source.Shipped {
		data, _ := shipped(name)
		return data, source, nil
	}
	if source.Path == "" {
		source.Path = name
	}
	data, err := ReadFile(source.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, source, fmt.Errorf("no profile %q, there are: %s; anything else is a file", name, strings.Join(s.Names(), ", "))
	}
	return data, source, err
}

// Names returns the names of all profiles, the shipped ones alone if the user's cannot be listed.
func (s Store) Names() []string {
	all, err := s.List()
	if err != nil {
		return Names()
	}
	names := make([]string, len(all))
	for i, source := range all {
		names[i] = source.Name
	}
	return names
}

// Open reads and checks a profile.
func (s Store) Open(name string) (*Profile, Source, error) {
	data, source, err := s.Read(name)
	if err != nil {
		return nil, source, err
	}
	p, err := Parse(name, data)
	return p, source, err
}

// check says why a name cannot be that of a user's profile.
func (s Store) check(name string) error {
	switch {
	case s.Dir == "":
		return fmt.Errorf("there is no folder for profiles, set %s", Variable)
	case !validName.MatchString(name):
		return fmt.Errorf("profile name: got %q, must be letters, digits, - and _", name)
	}
	return nil
}

// Draft returns the path at which the text of a profile is edited. It is no profile.
func (s Store) Draft(name string) (string, error) {
	return filepath.Join(s.Dir, "."+name+".draft"+extension), s.check(name)
}

// Write stores the text of a profile under a name and returns its path. The text must be a profile. The file appears
// complete or not at all; one that is there is replaced only with force, else the error is ErrExists.
func (s Store) Write(name string, data []byte, force bool) (string, error) {
	if err := s.check(name); err != nil {
		return "", err
	}
	if _, err := Parse(name, data); err != nil {
		return "", err
	}
	if err := os.MkdirAll(s.Dir, 0o777); err != nil {
		return "", err
	}
	path := s.path(name)
	f, err := os.CreateTemp(s.Dir, "."+name+".*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name()) // gone already if it was renamed
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", err
	}
	if force {
		return path, os.Rename(f.Name(), path)
	}
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) { // unlike a rename, a link never replaces a file
		err = fmt.Errorf("profile %s: %s %w", name, path, ErrExists)
	}
	return path, err
}
