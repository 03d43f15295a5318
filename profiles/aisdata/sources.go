package aisdata

import (
	"path"
	"slices"
	"strings"

	"mockbench/engine"
)

// source is a file of rows and which of them may be used.
type source struct {
	file    string
	kernels map[string]bool // nil = all rows
}

// borrowing says from where a table may take points that a backend's own file lacks.
type borrowing int

const (
	ownVersions borrowing = iota // earlier versions of the same backend
	anyBackend                   // and other backends, for kernels they share
)

// reader finds the files of one system, backend and version.
type reader struct {
	root    *Root
	data    string // folder of the system
	system  string
	backend engine.Backend
	version string
	shared  []sharedKernel
}

// sharedKernel is a kernel whose rows several backends may use.
type sharedKernel struct {
	File     string           `yaml:"op_file"`
	Kernel   string           `yaml:"kernel_source"`
	Tier     string           `yaml:"tier"`
	Backends []engine.Backend `yaml:"frameworks"`
}

func newReader(root *Root, data, system string, b engine.Backend, version string) (*reader, error) {
	var manifest struct{ Groups []sharedKernel }
	if err := root.readYAML("systems/perf_data_reuse_manifest.yaml", &manifest); err != nil {
		return nil, err
	}
	return &reader{root: root, data: data, system: system, backend: b, version: version, shared: manifest.Groups}, nil
}

// sources lists the files of a table in the order of their rank: the version's own, those it declares to reuse, earlier
// versions, other backends.
func (r *reader) sources(family, name string, from borrowing) ([]source, error) {
	own := path.Join(r.data, family, string(r.backend))
	versions := []string{r.version}
	declared, err := r.reused(path.Join(own, r.version, "reuse.yaml"), name)
	if err != nil {
		return nil, err
	}
	versions = append(versions, declared...)
	versions = append(versions, r.upTo(own, r.version)...)
	var list []source
	for i, v := range versions {
		file := path.Join(own, v, name+".parquet")
		if !slices.Contains(versions[:i], v) && r.root.has(file) {
			list = append(list, source{file: file})
		}
	}
	if from == ownVersions {
		return list, nil
	}
	for _, b := range []engine.Backend{engine.SGLang, engine.TRTLLM, engine.VLLM} {
		kernels := r.sharedWith(name+".parquet", b)
		if b == r.backend || kernels == nil {
			continue
		}
		s, err := r.root.versionSlots(r.system, b)
		if err != nil {
			return nil, err
		}
		theirs := path.Join(r.data, family, string(b))
		for _, v := range r.upTo(theirs, s.current) {
			if file := path.Join(theirs, v, name+".parquet"); r.root.has(file) {
				list = append(list, source{file, kernels})
			}
		}
	}
	return list, nil
}

// reused lists the versions whose file a version declares to stand for its own.
func (r *reader) reused(file, name string) ([]string, error) {
	if !r.root.has(file) {
		return nil, nil
	}
	var declared struct {
		Reuse []struct {
			Table string
			From  string `yaml:"from_version"`
		}
	}
	if err := r.root.readYAML(file, &declared); err != nil {
		return nil, err
	}
	var versions []string
	for _, d := range declared.Reuse {
		if strings.TrimSuffix(d.Table, ".parquet") == name {
			versions = append(versions, d.From)
		}
	}
	return versions, nil
}

// upTo lists the versions in a folder up to one, nearest first.
func (r *reader) upTo(dir, version string) []string {
	var found []string
	for _, v := range r.root.dirs(dir) {
		if isRelease(v) && compareVersions(v, version) <= 0 {
			found = append(found, v)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return compareVersions(b, a) })
	return found
}

// sharedWith returns the kernels of a table of another backend whose rows ours may use, nil if there are none.
func (r *reader) sharedWith(file string, b engine.Backend) map[string]bool {
	var kernels map[string]bool
	for _, s := range r.shared {
		if s.File == file && s.Tier != "absence_load_bearing" && slices.Contains(s.Backends, r.backend) && slices.Contains(s.Backends, b) {
			if kernels == nil {
				kernels = map[string]bool{}
			}
			kernels[s.Kernel] = true
		}
	}
	return kernels
}
