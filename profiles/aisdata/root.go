package aisdata

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// EnvironmentVariable names a folder or wheel with data.
const EnvironmentVariable = "MOCKBENCH_AIS_DATA"

// packages are the Python packages that carry the data, the one that Dynamo asks first.
func packages() []string { return []string{"aisimulate_core", "aiconfigurator_core"} }

// Root is a place with data: a Python package that holds the folders systems and model_configs.
type Root struct {
	FS      fs.FS
	Path    string // as a person would name it
	Version string // of the package, "" if unknown
}

func (r *Root) String() string {
	if r.Version == "" {
		return r.Path
	}
	return r.Path + " (version " + r.Version + ")"
}

// NotFoundError says that there is no data.
type NotFoundError struct{ Searched []string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no AIS performance data in %s; run 'mockbench ais fetch', or name a folder with %s",
		strings.Join(e.Searched, ", "), EnvironmentVariable)
}

// Find returns the first data there is: at the given places, at the one the environment names, in the Python packages
// that are installed, in the cache of fetched data. A place that is named must hold data.
func Find(given ...string) (*Root, error) {
	if e := os.Getenv(EnvironmentVariable); e != "" && len(given) == 0 {
		given = []string{e}
	}
	for _, p := range given {
		return Open(p)
	}
	var searched []string
	for _, p := range append(installed(), fetched()...) {
		if r, err := Open(p); err == nil {
			return r, nil
		}
		searched = append(searched, filepath.Dir(p))
	}
	searched = slices.Compact(append([]string{"the installed Python packages"}, searched...))
	if cache, err := cacheDir(); err == nil {
		searched = append(searched, cache)
	}
	return nil, &NotFoundError{searched}
}

// Open opens a place with data: the folder systems or the one around it, a folder with such a Python package, or a wheel.
func Open(place string) (*Root, error) {
	info, err := os.Stat(place)
	if err != nil {
		return nil, fmt.Errorf("AIS data: %w", err)
	}
	if !info.IsDir() {
		return openWheel(place)
	}
	place = filepath.Clean(place)
	candidates := []string{place}
	if filepath.Base(place) == "systems" {
		candidates = []string{filepath.Dir(place)}
	}
	for _, name := range packages() {
		candidates = append(candidates, filepath.Join(place, name))
	}
	for _, c := range candidates {
		if _, err := os.Stat(filepath.Join(c, "systems", "query_versions.yaml")); err == nil {
			return &Root{FS: os.DirFS(c), Path: c, Version: installedVersion(c)}, nil
		}
	}
	return nil, fmt.Errorf("AIS data: %s holds no folder systems with query_versions.yaml", place)
}

// openWheel reads data from a wheel without unpacking it. The file stays open for the life of the process.
func openWheel(place string) (*Root, error) {
	z, err := zip.OpenReader(place)
	if err != nil {
		return nil, fmt.Errorf("AIS data: %s: %w", place, err)
	}
	for _, name := range packages() {
		if sub, err := fs.Sub(z, name); err == nil {
			if _, err := fs.Stat(sub, "systems/query_versions.yaml"); err == nil {
				return &Root{FS: sub, Path: place, Version: wheelVersion(place)}, nil
			}
		}
	}
	z.Close()
	return nil, fmt.Errorf("AIS data: %s is no wheel of %s", place, strings.Join(packages(), " or "))
}

// wheelVersion reads the version from a file name: name-version-tags.whl.
func wheelVersion(place string) string {
	parts := strings.Split(filepath.Base(place), "-")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// installedVersion finds the version of an installed or fetched package by the folder with its metadata beside it.
func installedVersion(dir string) string {
	found, _ := filepath.Glob(dir + "-*.dist-info")
	if len(found) == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(found[0], dir+"-"), ".dist-info")
}

// installed lists where Python packages of this user lie.
func installed() []string {
	var folders []string
	folders = append(folders, filepath.SplitList(os.Getenv("PYTHONPATH"))...)
	bases := []string{os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX")}
	if home, err := os.UserHomeDir(); err == nil {
		bases = append(bases, filepath.Join(home, ".local"))
	}
	for _, base := range append(bases, "/usr/local", "/usr") {
		if base == "" {
			continue
		}
		for _, pattern := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages"} {
			found, _ := filepath.Glob(filepath.Join(base, pattern))
			folders = append(folders, found...)
		}
	}
	var places []string
	for _, name := range packages() {
		for _, f := range folders {
			if p := filepath.Join(f, name); isDir(p) {
				places = append(places, p)
			}
		}
	}
	return places
}

func isDir(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}

// fetched lists what lies in the cache, newest version first.
func fetched() []string {
	cache, err := cacheDir()
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(cache)
	if err != nil {
		return nil
	}
	var versions []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			versions = append(versions, e.Name())
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return compareVersions(b, a) })
	for i, v := range versions {
		versions[i] = filepath.Join(cache, v)
	}
	return versions
}

// cacheDir is where fetched data is kept.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("AIS data: no cache folder: %w", err)
	}
	return filepath.Join(dir, "mockbench", "ais"), nil
}

// dirs lists the folders in a folder of the data, none if it is absent.
func (r *Root) dirs(dir string) []string {
	entries, err := fs.ReadDir(r.FS, dir)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() {
			found = append(found, e.Name())
		}
	}
	return found
}

func (r *Root) has(file string) bool {
	_, err := fs.Stat(r.FS, file)
	return err == nil
}

// Systems lists the systems that are described and have data.
func (r *Root) Systems() []string {
	var found []string
	for _, dir := range r.dirs("systems/data") {
		if r.has(path.Join("systems", dir+".yaml")) {
			found = append(found, dir)
		}
	}
	return found
}
