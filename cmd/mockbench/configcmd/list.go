package configcmd

import (
	"encoding/json"
	"os"
	"strings"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/profiles"
)

// Setting is one setting of a run.
type Setting struct {
	Name   string `json:"setting"` // dotted name in the engine configuration, or the flag
	Value  any    `json:"value"`   // nil if it is not set
	Source string `json:"source"`
}

// List returns all settings: those of a flag, the built-in load, what the model card asks of routers, and the engine
// configuration that the workers have in common.
func List(v *flags.Values, s *settings.Settings) (list []Setting, err error) {
	resolved := resolvedFlags(v, s)
	for _, f := range flags.All() {
		given := v.Get(f.Name)
		if f.Field != "" || f.InEngine || f.Group == flags.GroupOther || f.Group == flags.GroupRouter && f.Name != "--router-mode" ||
			(f.ReplacedBy != "" || f.Hidden) && !given.Given() {
			continue
		}
		row := Setting{f.Name, value(given), settings.Origin(given)}
		if r, ok := resolved[f.Name]; ok {
			row.Value, row.Source = r.Value, r.Source
		}
		list = append(list, row)
	}
	if s.Load != nil {
		load, err := settings.LoadSettings(s.Load)
		if err != nil {
			return nil, err
		}
		list = append(list, tree(s, "", load)...)
	}
	if s.Router != nil {
		list = append(list, tree(s, "router.", s.Router.Common)...)
		if s.Router.KV != nil {
			list = append(list, tree(s, "router.", s.Router.KV)...)
		}
	}
	return append(list, tree(s, "", s.Launch.Canonical())...), nil
}

// value returns what a flag was given, or its default.
func value(v flags.Value) any {
	switch {
	case v.Unset || !v.Given() && v.Flag.Default == "" && v.Flag.Kind != flags.Switch:
		return nil
	case v.Flag.Kind == flags.Switch:
		return v.On
	case v.Flag.Kind == flags.Int:
		return json.Number(v.Int.String())
	case v.Flag.Kind == flags.Float && !strings.ContainsAny(strings.ToLower(v.Text), "n_+ "): // no nan, inf, underscore
		return json.Number(strings.TrimSuffix(v.Text, "."))
	}
	return v.Text
}

// resolvedFlags are the flags whose value is settled together with other things.
func resolvedFlags(v *flags.Values, s *settings.Settings) map[string]Setting {
	origin := func(name string) string { return settings.Origin(v.Get(name)) }
	out := map[string]Setting{}
	put := func(name string, value any, source string) { out[name] = Setting{name, value, source} }

	var roles, endpoints []string
	for _, p := range s.Pools {
		roles, endpoints = append(roles, string(p.Role)), append(endpoints, p.Endpoint)
	}
	put("--disaggregation-mode", strings.Join(roles, ", "), s.Origins.Of("engine.worker_type"))
	put("--endpoint", strings.Join(endpoints, ", "), origin("--endpoint"))
	for _, name := range []string{"DYN_NAMESPACE", "DYN_NAMESPACE_WORKER_SUFFIX"} {
		if text := os.Getenv(name); text != "" && !v.Get("--endpoint").Given() {
			put("--endpoint", strings.Join(endpoints, ", "), "environment "+name)
			break
		}
	}
	workers := origin("--num-workers")
	if workers == settings.FromDefault {
		workers = s.Origins.Of("workers")
	}
	put("--num-workers", s.Workers, workers)
	if s.Profile != "" {
		source := origin("--profile")
		if source == settings.FromDefault {
			source += ", no flag of a worker is given"
		}
		put("--profile", s.Profile, source)
	}
	put("--event-plane", s.Planes.Event, origin("--event-plane"))
	switch {
	case s.Load != nil:
		put("--discovery-backend", s.Planes.Discovery, "the built-in load needs no frontend")
	case !s.Planes.DiscoveryGiven:
		put("--discovery-backend", "etcd or mem", "chosen at the start: etcd if a server answers")
	}
	return out
}

// tree lists the leaves of an object.
func tree(s *settings.Settings, prefix string, o *profiles.Object) (list []Setting) {
	settings.Leaves(o, func(path string, value any) {
		list = append(list, Setting{prefix + path, value, s.Origins.Of(prefix + path)})
	})
	return list
}
