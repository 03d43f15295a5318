package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mockbench/engine"
)

// Read reads a command line. The error is a *UsageError for the command line and a plain error for a bad value in the
// environment. lookup is os.LookupEnv in programs.
func Read(args []string, lookup func(string) (string, bool)) (*Values, error) {
	r := reader{values: map[string]Value{}, spelled: map[string]string{}}
	exit, err := r.args(args)
	if err != nil {
		return nil, err
	}
	v := &Values{byName: r.values, Exit: exit}
	if exit != ExitNone {
		return v, nil
	}
	if len(r.left) > 0 {
		return nil, &UsageError{r.left[0].text(), UnknownFlag}
	}
	return v, environment(v.byName, lookup)
}

// reader collects the values of one command line.
type reader struct {
	values  map[string]Value
	spelled map[string]string // flag name to the family of its spelling, "--ais" or "--aic"
	left    []leftOver        // words that belong to nothing
	last    Value             // the flag that was read before; Flag is nil if none was
}

// args walks the words; the first help or version flag ends the walk.
func (r *reader) args(args []string) (Exit, error) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			for _, word := range args[i+1:] {
				r.leave(word)
			}
			break
		}
		if !looksLikeFlag(args[i]) {
			r.leave(args[i])
			continue
		}
		name, value, hasValue := strings.Cut(args[i], "=")
		s, err := resolve(args[i], name)
		if err != nil {
			return ExitNone, err
		}
		if s.flag == nil {
			r.leave(args[i])
			continue
		}
		if s.flag.Kind == Switch {
			if hasValue {
				return ExitNone, &UsageError{fmt.Sprintf("%s takes no value, got %q", s.name, value), UnexpectedValue}
			}
			if exit := exitOf(s.flag.Name); exit != ExitNone {
				return exit, nil
			}
		} else if !hasValue {
			if i+1 >= len(args) || args[i+1] == "--" || looksLikeFlag(args[i+1]) {
				return ExitNone, &UsageError{s.name + " needs a value" + wants(s.flag), MissingValue}
			}
			i++
			value = args[i]
		}
		if err := r.set(s, value); err != nil {
			return ExitNone, abbreviated(err, name, s)
		}
	}
	return ExitNone, nil
}

// abbreviated adds to what is wrong with a value that its flag was abbreviated, if a flag of our own starts so too.
func abbreviated(err error, typed string, s spelling) error {
	var usage *UsageError
	if typed == s.name || !errors.As(err, &usage) {
		return err
	}
	if _, ours := matching(typed); len(ours) > 0 && !s.flag.Ours {
		return &UsageError{fmt.Sprintf("%s; %s is short for it as in the reference, if %s is meant write it in full",
			usage.Text, typed, strings.Join(ours, " or ")), usage.Kind}
	}
	return err
}

func exitOf(name string) Exit {
	switch name {
	case "--help":
		return ExitHelp
	case "--version":
		return ExitVersion
	}
	return ExitNone
}

// set stores one value from the command line.
func (r *reader) set(s spelling, text string) error {
	f := s.flag
	if family := s.name[:min(5, len(s.name))]; family == "--ais" || family == "--aic" {
		if before, ok := r.spelled[f.Name]; ok && before != family {
			return &UsageError{fmt.Sprintf("%s and its older spelling with --aic cannot be combined", f.Name), Conflict}
		}
		r.spelled[f.Name] = family
	}
	v := Value{Flag: f, Source: FromFlag, Spelling: s.name, Text: text, On: !s.off}
	if reason := v.read(); reason != "" {
		return &UsageError{fmt.Sprintf("%s: got %q, %s", s.name, text, reason), WrongType}
	}
	if len(f.Allowed) > 0 && !slices.Contains(f.Allowed, text) && !v.Unset {
		return &UsageError{fmt.Sprintf("%s: got %q, allowed: %s%s", s.name, text, strings.Join(f.Allowed, ", "),
			didYouMean(text, f.Allowed)), UnknownValue}
	}
	if f.Repeat {
		v.Texts = append(r.values[f.Name].Texts, text)
	}
	r.values[f.Name], r.last = v, v
	return nil
}

// read converts the text; it returns what is wrong with it.
func (v *Value) read() string {
	if v.Flag.Null && (v.Text == "None" || v.Text == "") {
		v.Unset = true
		return ""
	}
	ok := true
	switch v.Flag.Kind {
	case Int:
		if v.Int, ok = ParseInt(v.Text); !ok {
			return "must be a whole number" + v.Flag.what(v.Text)
		}
	case Float:
		if v.Float, ok = parseFloat(v.Text); !ok {
			return "must be a number" + v.Flag.what(v.Text)
		}
	}
	return ""
}

func wants(f *Flag) string {
	switch {
	case len(f.Allowed) > 0:
		return ", one of: " + strings.Join(f.Allowed, ", ")
	case f.Kind == Int:
		return ", a whole number"
	case f.Kind == Float:
		return ", a number"
	}
	return ""
}

// environment fills in the values that the environment gives. Closed lists are not checked here.
func environment(values map[string]Value, lookup func(string) (string, bool)) error {
	for _, f := range table {
		if _, given := values[f.Name]; given {
			continue
		}
		for _, name := range f.Env {
			text, set := lookup(name)
			if !set {
				continue
			}
			v := Value{Flag: f, Source: FromEnv, Spelling: name, Text: text, On: parseBool(text)}
			if reason := v.read(); reason != "" {
				return &engine.SettingError{Setting: name, Kind: engine.KindType, Given: strconv.Quote(text), Allowed: reason}
			}
			values[f.Name] = v
			break
		}
	}
	return nil
}

// looksLikeFlag reports whether a word is read as a flag rather than as a value.
func looksLikeFlag(word string) bool {
	if len(word) < 2 || word[0] != '-' {
		return false
	}
	name, _, _ := strings.Cut(word, "=")
	if _, known := spellings[name]; known {
		return true
	}
	if negativeForm.MatchString(word) {
		return false
	}
	theirs, ours := matching(name)
	return !strings.Contains(word, " ") || len(theirs)+len(ours) > 0
}

// spelling is one way to write a flag.
type spelling struct {
	name string
	flag *Flag
	off  bool
}

// resolve finds the flag that a word means: an exact spelling, else the only spelling it is a prefix of. The flag is
// nil if there is none.
func resolve(word, name string) (spelling, error) {
	if s, ok := spellings[name]; ok {
		return s, nil
	}
	found, ours := matching(name)
	if len(found) == 0 {
		found = ours
	}
	switch len(found) {
	case 0:
		return spelling{}, nil
	case 1:
		return spellings[found[0]], nil
	}
	return spelling{}, &UsageError{fmt.Sprintf("%s is ambiguous, it could be any of: %s", word, strings.Join(found, ", ")), AmbiguousFlag}
}

// matching returns the spellings that start with a prefix. Flags of our own count only if the reference has none, so
// that they never make a script's abbreviation ambiguous.
func matching(prefix string) (theirs, ours []string) {
	if !strings.HasPrefix(prefix, "--") {
		return nil, nil
	}
	for _, name := range spellingNames {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		if spellings[name].flag.Ours {
			ours = append(ours, name)
		} else {
			theirs = append(theirs, name)
		}
	}
	return theirs, ours
}

var spellings, spellingNames = index()

func index() (map[string]spelling, []string) {
	m := map[string]spelling{}
	var names []string
	add := func(name string, f *Flag, off bool) {
		m[name] = spelling{name: name, flag: f, off: off}
		names = append(names, name)
	}
	for _, f := range table {
		add(f.Name, f, false)
		for _, a := range f.Aliases {
			add(a, f, false)
		}
		for _, o := range f.Off {
			add(o, f, true)
		}
	}
	return m, names
}
