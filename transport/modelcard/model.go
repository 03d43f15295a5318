package modelcard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mockbench/engine"
)

// Model is where a model's files are.
type Model struct {
	Dir    string // absolute, symbolic links resolved
	Source string // hub id, or the directory
	Hub    bool   // Source is a hub id
}

// Resolve finds the directory of a model: an existing directory, or a hub id that the local hub cache holds.
func Resolve(path string, getenv func(string) string) (Model, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		dir, err := filepath.Abs(path)
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err == nil {
			_, err = os.ReadDir(dir)
		}
		if err != nil {
			return Model{}, modelError(path, reason(err))
		}
		return Model{Dir: dir, Source: dir}, nil
	}
	if path == "" || strings.Count(path, "/") > 1 || strings.HasPrefix(path, "/") || strings.HasPrefix(path, ".") {
		return Model{}, modelError(path, "no such directory")
	}
	cache := hubCache(getenv)
	repo := filepath.Join(cache, "models--"+strings.ReplaceAll(path, "/", "--"))
	revision, err := os.ReadFile(filepath.Join(repo, "refs", "main"))
	if err != nil {
		return Model{}, &engine.SettingError{Setting: "model_path", Kind: engine.KindMissing, Given: path,
			Allowed: fmt.Sprintf("must be a directory or a model in the hub cache %s; fetch it there with: hf download %s --exclude '*.safetensors' '*.bin'", cache, path)}
	}
	dir := filepath.Join(repo, "snapshots", strings.TrimSpace(string(revision)))
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return Model{}, modelError(path, "the hub cache names the revision "+dir+", which is not there")
	}
	return Model{Dir: dir, Source: path, Hub: true}, nil
}

// Prefetch returns where a model's configuration and tokenizer are: an existing path as it is, for another text the folder
// in the local hub cache. Nothing is downloaded. Where there is no such folder the text comes back, with the reason, which
// is a *engine.SettingError, and which the reference only logs.
func Prefetch(path string, getenv func(string) string) (string, error) {
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	m, err := Resolve(path, getenv)
	if err != nil {
		return path, err
	}
	return m.Dir, nil
}

// hubCache returns the folder of the local hub cache.
func hubCache(getenv func(string) string) string {
	if dir := getenv("HF_HUB_CACHE"); dir != "" {
		return dir
	}
	if home := getenv("HF_HOME"); home != "" {
		return filepath.Join(home, "hub")
	}
	return filepath.Join(getenv("HOME"), ".cache", "huggingface", "hub")
}
