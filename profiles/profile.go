package profiles

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/workload"
)

// Version is the version of the form of profiles that this program reads and writes.
const Version = 1

// Profile is the settings of a TOML file: workers and, for a run without a frontend, a built-in load.
type Profile struct {
	Name        string
	Description string // the setting, else the first comment of the file
	Workers     uint32 // workers of the process, if they are of one role

	PrefillWorkers, DecodeWorkers uint32 // both or none: workers of both roles, in place of Workers

	Launch *Object // engine object of each worker, without defaults
	Load   *Load   // nil: requests come from a frontend
	SLO    report.Limits

	text string
}

// Line returns the line of the profile that sets a dotted name, or the table that should hold it; 0 if none does.
func (p *Profile) Line(setting string) int { return lineOf(p.text, setting) }

// Load is a built-in load and how it is placed on the workers.
type Load struct {
	workload.Options
	Routing router.Policy
	Router  router.Model // weights of the costs that policy kv compares
}

// FileError is what is wrong with a profile, and where.
type FileError struct {
	Profile string
	Line    int // 0 if unknown
	Err     error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("profile %s: %v", e.Profile, e.Err)
	}
	return fmt.Sprintf("profile %s: line %d: %v", e.Profile, e.Line, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Parse reads the text of a profile. Errors are *FileError.
func Parse(name string, data []byte) (*Profile, error) {
	o, err := parseTOML(data)
	if err != nil {
		return nil, located(name, data, err)
	}
	p := &Profile{Name: name, Description: Notes(data).Title, Workers: 1, Launch: NewObject(), text: string(data)}
	if err := p.read(o); err != nil {
		return nil, located(name, data, err)
	}
	return p, nil
}

// located adds the line of what is wrong to its error.
func located(name string, data []byte, err error) error {
	var syntax *syntaxError
	var s *engine.SettingError
	switch {
	case errors.As(err, &syntax):
		return &FileError{name, syntax.line, err}
	case errors.As(err, &s):
		return &FileError{name, lineOf(string(data), s.Setting), err}
	}
	return &FileError{name, 0, err}
}

// fields are the settings of a profile beside those of a launch.
func (p *Profile) fields() fields {
	return fields{
		"version":     integer(new(uint32), Version, Version),
		"description": text(&p.Description),
		"workers":     integer(&p.Workers, 1, 10000),

		"prefill_workers": integer(&p.PrefillWorkers, 1, 10000),
		"decode_workers":  integer(&p.DecodeWorkers, 1, 10000),

		"load": p.loadField(),
		"slo":  p.sloField(),
	}
}

func (p *Profile) read(o *Object) error {
	if v, ok := o.Get("version"); ok && v != Number(fmt.Sprint(Version)) {
		return &engine.SettingError{Setting: "version", Kind: engine.KindUnsupported, Given: kindOf(v),
			Allowed: fmt.Sprintf("this program reads profiles of version %d", Version)}
	}
	own := p.fields()
	for _, k := range o.keys {
		if setting, ok := own[k]; ok {
			if err := setting.read(k, o.values[k]); err != nil {
				return err
			}
			continue
		}
		p.Launch.put(k, o.values[k])
	}
	if err := p.checkWorkers(o); err != nil {
		return err
	}
	_, err := p.Resolve()
	return err
}

// Resolve returns the configuration of a worker. Unlike in the JSON of the reference, a local indexer is on if nothing
// is said.
func (p *Profile) Resolve() (*Launch, error) {
	o := p.Launch.Clone()
	if _, ok := o.Get("dynamo.enable_local_indexer"); !ok {
		o.Set("dynamo.enable_local_indexer", true)
	}
	return Resolve(o)
}

// checkWorkers checks that workers are of one role or of both.
func (p *Profile) checkWorkers(o *Object) error {
	wrong := func(setting string, kind engine.Kind, allowed string) error {
		return &engine.SettingError{Setting: setting, Kind: kind, Allowed: allowed}
	}
	_, plain := o.Get("workers")
	role, roleGiven := o.Get("engine.worker_type")
	switch split := p.PrefillWorkers > 0 || p.DecodeWorkers > 0; {
	case !split:
		return nil
	case p.DecodeWorkers == 0:
		return wrong("prefill_workers", engine.KindMissing, "needs decode_workers")
	case p.PrefillWorkers == 0:
		return wrong("decode_workers", engine.KindMissing, "needs prefill_workers")
	case plain:
		return wrong("workers", engine.KindConflict, "cannot be combined with prefill_workers and decode_workers")
	case roleGiven && role != string(engine.Aggregated):
		return wrong("engine.worker_type", engine.KindConflict, "cannot be combined with prefill_workers and decode_workers")
	}
	return nil
}

// Role returns the role of the workers, if they are of one.
func (p *Profile) Role() engine.Role {
	if role, ok := p.Launch.Get("engine.worker_type"); ok {
		return engine.Role(fmt.Sprint(role))
	}
	return engine.Aggregated
}

// DefaultLoad is the load of which a profile says nothing but how many requests there are.
func DefaultLoad() Load {
	return Load{Options: workload.Options{PromptMean: 256, OutputMean: 128}, Routing: router.KV, Router: router.DefaultModel()}
}

// loadField reads a load into the profile.
func (p *Profile) loadField() field {
	l := DefaultLoad()
	settings := object(l.fields())
	return settings.reading(func(path string, v any) error {
		if err := settings.read(path, v); err != nil {
			return err
		}
		err := cmp.Or(l.Options.Validate(), l.Router.Validate())
		var s *engine.SettingError
		if errors.As(err, &s) {
			s.Setting = path + "." + strings.TrimPrefix(s.Setting, "workload.")
		}
		if err != nil {
			return err
		}
		p.Load = &l
		return nil
	})
}
