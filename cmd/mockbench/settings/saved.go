package settings

import (
	"path/filepath"
	"slices"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/profiles"
)

// AsProfile returns the settings as a profile: workers, engine and load.
func (s *Settings) AsProfile() *profiles.Profile {
	l := *s.Launch
	if s.Split() {
		l.Engine.Role = engine.Aggregated // the pools say it
	}
	p := profiles.New(&l, s.Load)
	p.SLO = s.SLO
	fromAnywhere(p.Launch)
	if s.Split() {
		p.PrefillWorkers, p.DecodeWorkers = uint32(s.Pools[0].Workers), uint32(s.Pools[1].Workers)
	} else {
		p.Workers = uint32(s.Workers)
	}
	return p
}

// fromAnywhere makes names of files absolute: a profile is not only used in this folder.
func fromAnywhere(o *profiles.Object) {
	for _, path := range []string{"engine.timing_model.config.path", "dynamo.response_replay_trace_path"} {
		if v, ok := o.Get(path); ok {
			if name, isText := v.(string); isText {
				if full, err := filepath.Abs(name); err == nil {
					o.Set(path, full)
				}
			}
		}
	}
}

// groupsOfARun are the flags that belong to a single run.
var groupsOfARun = []flags.Group{flags.GroupRun, flags.GroupScreen, flags.GroupModel, flags.GroupWorkers, flags.GroupRouter}

// NotInProfile returns the given flags that no profile holds.
func NotInProfile(v *flags.Values) []string {
	var names []string
	for _, given := range v.FromCommandLine() {
		switch f := given.Flag; {
		case f.Field != "" || slices.Contains([]string{"--profile", "--num-workers", "--kv-cache-dtype"}, f.Name):
		case f.Name == "--bootstrap-ports":
			names = append(names, given.Spelling)
		case slices.Contains(groupsOfARun, f.Group):
			names = append(names, given.Spelling)
		}
	}
	return names
}
