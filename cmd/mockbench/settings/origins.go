package settings

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"mockbench/cmd/mockbench/flags"
	"mockbench/profiles"
)

// Origins says where settings come from, by their dotted name or by the name of their flag. What is missing has its
// default.
type Origins map[string]string

// FromDefault is the origin of what nobody set.
const FromDefault = "default"

// Of returns where a setting comes from: its own origin, or that of the setting it is a part of.
func (o Origins) Of(name string) string {
	for {
		if from, ok := o[name]; ok {
			return from
		}
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return FromDefault
		}
		name = name[:i]
	}
}

// Origin says where the value of a flag comes from.
func Origin(v flags.Value) string {
	switch v.Source {
	case flags.FromFlag:
		return "flag " + v.Spelling
	case flags.FromEnv:
		return "environment " + v.Spelling
	}
	return FromDefault
}

// set stores a setting of the engine object and where it comes from.
func (r *resolver) set(o *profiles.Object, path string, value any, from string) {
	o.Set(path, value)
	r.s.Origins[path] = from
}

// Leaves calls f with every value of an object that is no object itself, and its dotted name.
func Leaves(o *profiles.Object, f func(path string, value any)) { leaves("", o, f) }

func leaves(prefix string, o *profiles.Object, f func(path string, value any)) {
	for _, key := range o.Keys() {
		value, _ := o.Raw(key)
		if inner, ok := value.(*profiles.Object); ok {
			leaves(prefix+key+".", inner, f)
			continue
		}
		f(prefix+key, value)
	}
}

// LoadSettings returns a built-in load under the names it has in a profile.
func LoadSettings(l *profiles.Load) (*profiles.Object, error) {
	text, err := json.Marshal(l.Options)
	if err != nil {
		return nil, err
	}
	fields, err := profiles.ParseJSON("load", text)
	if err != nil {
		return nil, err
	}
	o := profiles.NewObject()
	for _, name := range fields.Keys() {
		if name == "Seed" || name == "Requests" {
			continue // flags of the run
		}
		value, _ := fields.Raw(name)
		o.Set("load."+snake(name), value)
	}
	o.Set("load.routing", string(l.Routing))
	return o, nil
}

// snake turns PromptMean into prompt_mean.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// fromProfile notes the lines of the profile that set something of an object.
func (r *resolver) fromProfile(o *profiles.Object) {
	Leaves(o, func(path string, _ any) {
		around := path[:max(0, strings.LastIndexByte(path, '.'))]
		line := r.from.Line(path)
		if line == 0 || around != "" && line == r.from.Line(around) {
			return // only the table that should hold it
		}
		r.s.Origins[path] = fmt.Sprintf("profile %s line %d", r.from.Name, line)
	})
}

// roleOrigin says which flag chose the role.
func (r *resolver) roleOrigin() string {
	for _, name := range []string{"--is-prefill-worker", "--is-decode-worker", "--disaggregation-mode", rolePair[0]} {
		if v := r.v.Get(name); v.Given() {
			return Origin(v)
		}
	}
	return FromDefault
}
