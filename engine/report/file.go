package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteJSON writes a report as indented JSON.
func WriteJSON(w io.Writer, r Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// WriteFile writes a report as JSON to a file, to stdout if path is "-". A regular file appears complete or not at all, a
// link stays a link, a device or pipe is written to; no folder is made.
func WriteFile(path string, stdout io.Writer, r Report) error {
	return WriteTo(path, stdout, func(w io.Writer) error { return WriteJSON(w, r) })
}

// WriteTo is WriteFile for what write writes.
func WriteTo(path string, stdout io.Writer, write func(w io.Writer) error) error {
	if path == "-" {
		return write(stdout)
	}
	f, err := create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.abandon()
		return err
	}
	return f.commit()
}

// CheckFile says why WriteFile could not write to a path, so that this is known before the run. It leaves no file behind.
func CheckFile(path string) error {
	if path == "-" || inPlace(path) {
		return nil // opening a pipe and closing it again would end its reader
	}
	f, err := create(path)
	if err == nil {
		f.abandon()
	}
	return err
}

// inPlace reports whether what stands at a path is written to, not replaced.
func inPlace(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// pending is a file that is being written.
type pending struct {
	*os.File
	target string // what the file replaces when it is complete; empty if it is written in place
}

func create(path string) (*pending, error) {
	if inPlace(path) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &pending{File: f}, err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, must be a file", path)
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the folder %s does not exist", filepath.Dir(path))
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	return &pending{File: f, target: path}, err
}

// abandon leaves nothing of the file behind.
func (f *pending) abandon() {
	f.Close()
	if f.target != "" {
		os.Remove(f.Name())
	}
}

// commit puts the file where it belongs.
func (f *pending) commit() error {
	if f.target == "" {
		return f.Close()
	}
	err := f.Chmod(0o644)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), f.target)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
