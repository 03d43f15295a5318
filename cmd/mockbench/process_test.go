package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// process is a program that runs beside a script.
type process struct {
	cmd    *exec.Cmd
	stdout *os.File // nil: a file
	done   chan struct{}
}

// run starts the program in the work folder and the environment of the script.
func (p *process) run(ts *testscript.TestScript, path, name string, args []string) error {
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir = ts.MkAbs(".")
	for _, v := range []string{"PATH", "HOME", "TERM", "TMPDIR", "DYN_FILE_KV", "XDG_CACHE_HOME", "DYN_LOG", "DYN_TCP_RPC_PORT", "DYN_SYSTEM_PORT"} {
		if value := ts.Getenv(v); value != "" {
			p.cmd.Env = append(p.cmd.Env, v+"="+value)
		}
	}
	stderr, err := os.Create(ts.MkAbs(name + ".err"))
	if err != nil {
		return err
	}
	defer stderr.Close()
	p.cmd.Stderr = stderr
	p.cmd.Stdout = p.stdout
	if p.stdout == nil {
		out, err := os.Create(ts.MkAbs(name + ".out"))
		if err != nil {
			return err
		}
		defer out.Close()
		p.cmd.Stdout = out
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.done = make(chan struct{})
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	return nil
}

// lookUp finds a program in the script's PATH.
func lookUp(ts *testscript.TestScript, name string) (string, error) {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

var running sync.Map // work folder of a script to its programs

func processes(ts *testscript.TestScript) map[string]*process {
	m, _ := running.LoadOrStore(strings.TrimSuffix(ts.MkAbs("."), "/"), map[string]*process{})
	return m.(map[string]*process)
}
