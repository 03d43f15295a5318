package profiles

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"mockbench/engine"
	"mockbench/engine/router"
	"mockbench/engine/workload"
)

// Profile is the settings of a TOML file: workers and, for a run without a frontend, a built-in load.
type Profile struct {
	Name        string
	Description string
	Workers     uint32  // workers of the process
	Launch      *Object // engine object of each worker, without defaults
	Load        *Load   // nil: requests come from a frontend

	text string
}

// Line returns the line of the profile that sets a dotted name, or the table that should hold it; 0 if none does.
func (p *Profile) Line(setting string) int { return lineOf(p.text, setting) }

// Load is a built-in load and how it is placed on the workers.
type Load struct {
	workload.Options
	Routing router.Policy
}

//go:embed *.toml
var builtin embed.FS

// Names lists the profiles shipped in the program.
func Names() []string {
	files, err := fs.Glob(builtin, "*.toml")
	if err != nil {
		panic(err) // the pattern is constant
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ".toml")
	}
	return files
}

// Open reads a profile: one shipped in the program by its name, else a file.
func Open(name string) (*Profile, error) {
	if slices.Contains(Names(), name) {
		data, err := builtin.ReadFile(name + ".toml")
		if err != nil {
			return nil, err
		}
		return Parse(name, data)
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--profile: no profile %q, built in are: %s; anything else is a file", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	return Parse(name, data)
}

// Parse reads the text of a profile. Errors name the line.
func Parse(name string, data []byte) (*Profile, error) {
	var tree map[string]any
	meta, err := toml.Decode(string(data), &tree)
	if err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("profile %s: line %d: %s", name, syntax.Position.Line, syntax.Message)
		}
		return nil, fmt.Errorf("profile %s: %w", name, err)
	}
	o, err := fromTOML(tree, meta)
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", name, err)
	}
	p := &Profile{Name: name, Workers: 1, Launch: NewObject(), text: string(data)}
	if err := p.read(o); err != nil {
		return nil, located(name, data, err)
	}
	return p, nil
}

func (p *Profile) read(o *Object) error {
	own := fields{
		"description": text(&p.Description),
		"workers":     integer(&p.Workers, 1, 10000),
		"load":        func(path string, v any) error { return p.readLoad(path, v) },
	}
	for _, k := range o.keys {
		if read, ok := own[k]; ok {
			if err := read(k, o.values[k]); err != nil {
				return err
			}
			continue
		}
		p.Launch.put(k, o.values[k])
	}
	_, err := Resolve(p.Launch)
	return err
}

func (p *Profile) readLoad(path string, v any) error {
	l := Load{Options: workload.Options{PromptMean: 256, OutputMean: 128}, Routing: router.KV}
	f := fields{
		"rate":          float(&l.Rate),
		"concurrency":   integer(&l.Concurrency, 0, maxInt),
		"max_in_flight": integer(&l.MaxInFlight, 0, maxInt),
		"prompt_mean":   integer(&l.PromptMean, 1, maxInt),
		"prompt_spread": integer(&l.PromptSpread, 0, maxInt),
		"output_mean":   integer(&l.OutputMean, 1, maxInt),
		"output_spread": integer(&l.OutputSpread, 0, maxInt),
		"prefix_count":  integer(&l.PrefixCount, 0, maxInt),
		"prefix_length": integer(&l.PrefixLength, 0, maxInt),
		"prefix_share":  float(&l.PrefixShare),
		"turns":         integer(&l.Turns, 0, maxInt),
		"think_time":    float(&l.ThinkTime),
		"max_prompt":    integer(&l.MaxPrompt, 0, maxInt),
		"routing":       word(&l.Routing, router.Policies()...),
	}
	if err := f.read(path, v); err != nil {
		return err
	}
	if err := l.Validate(); err != nil {
		var s *engine.SettingError
		if errors.As(err, &s) {
			s.Setting = path + strings.TrimPrefix(s.Setting, "workload")
		}
		return err
	}
	p.Load = &l
	return nil
}

// located adds the line of a wrong setting to its error.
func located(name string, data []byte, err error) error {
	var s *engine.SettingError
	if errors.As(err, &s) {
		if line := lineOf(string(data), s.Setting); line > 0 {
			return fmt.Errorf("profile %s: line %d: %w", name, line, err)
		}
	}
	return fmt.Errorf("profile %s: %w", name, err)
}

// lineOf finds the line that sets a dotted name, or the table that should hold it.
func lineOf(text, setting string) int {
	table, found := "", 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		full := table
		if rest, ok := strings.CutPrefix(line, "["); ok {
			table, _, _ = strings.Cut(strings.Trim(rest, "[ "), "]")
			full = strings.TrimSpace(table)
		} else if key, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			full = strings.TrimPrefix(table+"."+strings.Trim(strings.TrimSpace(key), `"`), ".")
		} else {
			continue
		}
		if full == setting {
			return i + 1
		}
		if strings.HasPrefix(setting, full+".") {
			found = i + 1
		}
	}
	return found
}

// fromTOML turns decoded TOML into an object, in the order of the text.
func fromTOML(tree map[string]any, meta toml.MetaData) (*Object, error) {
	o := NewObject()
	for _, key := range meta.Keys() {
		v, at := any(tree), []string(key)
		for len(at) > 0 {
			table, ok := v.(map[string]any)
			if !ok {
				break
			}
			v, at = table[at[0]], at[1:]
		}
		if len(at) > 0 || strings.Contains(strings.Join(key, ""), ".") {
			return nil, fmt.Errorf("%s: keys of this form have no meaning here", key)
		}
		value, err := tomlValue(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		path := strings.Join(key, ".")
		if _, isTable := value.(*Object); isTable {
			if _, exists := o.Get(path); exists {
				continue
			}
		}
		o.Set(path, value)
	}
	return o, nil
}

func tomlValue(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		return NewObject(), nil // its keys follow
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("must be finite")
		}
		return decimal(v), nil
	case bool, string:
		return v, nil
	case []any:
		return v, nil
	}
	return nil, fmt.Errorf("values of this type are not used here")
}
