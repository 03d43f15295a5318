package settings

import (
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
	if s.Split() {
		p.PrefillWorkers, p.DecodeWorkers = uint32(s.Pools[0].Workers), uint32(s.Pools[1].Workers)
	} else {
		p.Workers = uint32(s.Workers)
	}
	return p
}

// NotInProfile returns the given flags that no profile holds.
func NotInProfile(v *flags.Values) []string {
	var names []string
	for _, given := range v.FromCommandLine() {
		switch f := given.Flag; {
		case f.Field != "" || slices.Contains([]string{"--profile", "--num-workers", "--kv-cache-dtype"}, f.Name):
		case f.Name == "--bootstrap-ports":
			names = append(names, given.Spelling)
		case slices.Contains([]flags.Group{flags.GroupRun, flags.GroupScreen, flags.GroupModel, flags.GroupWorkers, flags.GroupRouter}, f.Group):
			names = append(names, given.Spelling)
		}
	}
	return names
}
