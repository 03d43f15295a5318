package aisdata

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"gopkg.in/yaml.v3"

	"mockbench/engine"
	"mockbench/engine/timing/ais"
)

// readYAML reads a file of the data into dst.
func (r *Root) readYAML(file string, dst any) error {
	data, err := fs.ReadFile(r.FS, file)
	if err != nil {
		return fmt.Errorf("AIS data %s: %w", r.Path, err)
	}
	if err := yaml.Unmarshal(data, dst); err != nil {
		return fmt.Errorf("AIS data %s: %s: %w", r.Path, file, err)
	}
	return nil
}

// system reads the description of a system and where its data lies.
func (r *Root) system(name string) (*ais.System, string, error) {
	file := path.Join("systems", name+".yaml")
	if name == "" || strings.ContainsAny(name, `/\`) || !r.has(file) {
		return nil, "", fmt.Errorf("ais system: got %q, allowed: %s", name, strings.Join(r.Systems(), ", "))
	}
	var s ais.System
	if err := r.readYAML(file, &s); err != nil {
		return nil, "", err
	}
	var place struct {
		Data string `yaml:"data_dir"`
	}
	if err := r.readYAML(file, &place); err != nil {
		return nil, "", err
	}
	s.Name = name
	return &s, path.Join("systems", place.Data), nil
}

// slots are the versions of a backend that can be asked for. Empty ones do not exist.
type slots struct{ current, previous, next string }

// versionSlots reads the slots of a backend on a system.
func (r *Root) versionSlots(system string, b engine.Backend) (slots, error) {
	type entry struct{ Current, Previous string }
	var file struct {
		Defaults  map[engine.Backend]entry
		Overrides map[string]map[engine.Backend]entry
	}
	if err := r.readYAML("systems/query_versions.yaml", &file); err != nil {
		return slots{}, err
	}
	e, overridden := file.Overrides[system][b]
	if !overridden {
		e = file.Defaults[b]
	}
	s := slots{current: e.Current, previous: e.Previous}
	if s.current == "" {
		return s, fmt.Errorf("ais backend: got %q, the data names no version of it", b)
	}
	if overridden {
		return s, nil // such systems have no next version, and do not make one for others
	}
	for _, other := range r.Systems() {
		if _, own := file.Overrides[other][b]; own {
			continue
		}
		for _, v := range r.declared(other, b) {
			if isRelease(v) && compareVersions(v, s.current) > 0 && compareVersions(v, s.next) > 0 {
				s.next = v
			}
		}
	}
	return s, nil
}

// declared lists the versions of a backend that any table of a system has.
func (r *Root) declared(system string, b engine.Backend) []string {
	var found []string
	data := path.Join("systems/data", system)
	for _, family := range r.dirs(data) {
		found = append(found, r.dirs(path.Join(data, family, string(b)))...)
	}
	return found
}

// pick turns a version, a slot's name or nothing into a version.
func (s slots) pick(wanted string) (string, error) {
	for name, version := range map[string]string{"": s.current, "current": s.current, "previous": s.previous, "next": s.next} {
		if wanted == name {
			if version == "" {
				return "", fmt.Errorf("ais backend_version: got %q, there is no such version, %s", wanted, s)
			}
			return version, nil
		}
	}
	if wanted == s.current || wanted == s.previous || wanted == s.next {
		return wanted, nil
	}
	return "", fmt.Errorf("ais backend_version: got %q, %s", wanted, s)
}

func (s slots) String() string {
	text := "allowed: current (" + s.current + ")"
	if s.previous != "" {
		text += ", previous (" + s.previous + ")"
	}
	if s.next != "" {
		text += ", next (" + s.next + ")"
	}
	return text
}

// lanePolicy reads which attention kernel a version of a backend chooses on a GPU.
func (r *Root) lanePolicy(b engine.Backend, version string, sm int) (ais.LanePolicy, error) {
	type lanes map[string]map[int]string // by version and architecture of the GPU
	var file struct{ VLLM, SGLang, TRTLLM lanes }
	if err := r.readYAML("systems/attention_lane_defaults.yaml", &file); err != nil {
		return ais.LanePolicy{}, err
	}
	versions := map[engine.Backend]lanes{engine.VLLM: file.VLLM, engine.SGLang: file.SGLang, engine.TRTLLM: file.TRTLLM}[b]
	best := ""
	for v := range versions {
		if compareVersions(v, version) <= 0 && (best == "" || compareVersions(v, best) > 0) {
			best = v
		}
	}
	lane, ok := versions[best][sm]
	return ais.LanePolicy{Known: ok, Pinned: lane}, nil
}
