package mocker_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mocker"
	"mockbench/engine"
)

// records returns how many workers are registered below a folder.
func records(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "v1", "mdc", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// discovery makes a folder the root of file discovery.
func discovery(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("DYN_FILE_KV", dir)
	return dir
}

// anything returns every file below a folder.
func anything(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func launch(t *testing.T, argv ...string) (*mocker.Workers, error) {
	t.Helper()
	s, err := mocker.ParseArgs(argv, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return mocker.Launch(t.Context(), s, nil)
}

func TestLaunchRegistersEveryWorker(t *testing.T) {
	dir := discovery(t)
	w, err := launch(t, "--discovery-backend", "file", "--num-workers", "3")
	if err != nil {
		t.Fatal(err)
	}
	if n := records(t, dir); n != 3 {
		t.Errorf("%d workers are registered", n)
	}
	if n := len(w.Live()); n != 3 {
		t.Errorf("%d workers", n)
	}
	waited := make(chan error, 1)
	go func() { waited <- w.Wait(context.Background()) }()
	if err := w.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("the end of the workers: %v", err)
	}
	if left := anything(t, dir); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	if err := w.Shutdown(t.Context()); err != nil {
		t.Errorf("shut down again: %v", err)
	}
}

// A worker that cannot start takes those with it that are registered already.
func TestLaunchThatFailsLeavesNothing(t *testing.T) {
	dir := discovery(t)
	taken, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	_, err = launch(t, "--discovery-backend", "file", "--num-workers", "2", "--stagger-delay", "0.3", "--zmq-kv-events-ports", "0,"+port)
	if err == nil || !strings.Contains(err.Error(), "--zmq-kv-events-ports") {
		t.Errorf("got %v", err)
	}
	if left := anything(t, dir); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

func TestLaunchRefusesABuiltInLoad(t *testing.T) {
	_, err := launch(t, "--profile", "demo")
	var wrong *engine.SettingError
	if !errors.As(err, &wrong) || wrong.Setting != "--profile" {
		t.Errorf("got %v", err)
	}
}

// fake is a runtime that counts its shutdowns.
type fake struct {
	err error

	mu    sync.Mutex
	count int
}

func (f *fake) Shutdown(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	return f.err
}

func TestGracefulShutdownReachesAll(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	list := []*fake{{err: one}, {}, {err: two}}
	err := mocker.GracefulShutdown(t.Context(), list[0], list[1], list[2])
	if !errors.Is(err, one) || !errors.Is(err, two) {
		t.Errorf("got %v", err)
	}
	for i, f := range list {
		if f.count != 1 {
			t.Errorf("runtime %d was shut down %d times", i, f.count)
		}
	}
	if err := mocker.GracefulShutdown(t.Context()); err != nil {
		t.Errorf("nothing to shut down: %v", err)
	}
}

// The steps of a run come in the order of the reference, and their log lines have its words.
func TestRunGoesThroughAllSteps(t *testing.T) {
	dir := discovery(t)
	engineArgs := filepath.Join(t.TempDir(), "engine.json")
	if err := os.WriteFile(engineArgs, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		config string
	}{
		{nil, "Created canonical engine config from CLI arguments"},
		{[]string{"--extra-engine-args", engineArgs}, "Loaded canonical engine config from JSON file"},
	} {
		ctx, stop := context.WithCancel(t.Context())
		var log bytes.Buffer
		ended := make(chan error, 1)
		go func() {
			ended <- mocker.Run(ctx, append(c.args, "--discovery-backend", "file", "--num-workers", "2"), &log)
		}()
		for deadline := time.Now().Add(30 * time.Second); records(t, dir) < 2; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the workers do not register")
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%q: %v", c.args, err)
		}
		if left := anything(t, dir); len(left) > 0 {
			t.Errorf("%q are left", left)
		}
		at := 0
		for _, step := range []string{c.config, "Launching 2 mocker worker(s) ...", "Creating mocker worker 1/2", "Creating mocker worker 2/2"} {
			i := strings.Index(log.String()[at:], step)
			if i < 0 {
				t.Fatalf("no %q in the rest of the log:\n%s", step, log.String()[at:])
			}
			at += i
		}
	}
}

func TestShutdownIsLogged(t *testing.T) {
	s, err := mocker.ParseArgs([]string{"--discovery-backend", "mem"}, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	w, err := mocker.Launch(t.Context(), s, &log)
	if err != nil {
		t.Fatal(err)
	}
	if err := mocker.GracefulShutdown(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	_, rest, running := strings.Cut(log.String(), "All 1 mocker worker(s) created and running")
	_, rest, received := strings.Cut(rest, "Received shutdown signal, shutting down DistributedRuntime instances")
	if !running || !received || !strings.Contains(rest, "DistributedRuntime shutdown complete") {
		t.Errorf("steps are missing or in another order:\n%s", &log)
	}
}

func TestRunEndsWithTheErrorOfASetting(t *testing.T) {
	var usage *flags.UsageError
	if err := mocker.Run(t.Context(), []string{"--no-such-flag"}, nil); !errors.As(err, &usage) {
		t.Errorf("got %v", err)
	}
	for _, words := range []string{"--help", "--version"} {
		if err := mocker.Run(t.Context(), []string{words}, nil); !errors.As(err, &usage) {
			t.Errorf("%s: got %v", words, err)
		}
	}
	dir := discovery(t)
	err := mocker.Run(t.Context(), []string{"--discovery-backend", "file", "--model-path", "/no/such/model"}, nil)
	if err == nil || !strings.Contains(err.Error(), "/no/such/model") || len(anything(t, dir)) > 0 {
		t.Errorf("got %v, and %q", err, anything(t, dir))
	}
}
