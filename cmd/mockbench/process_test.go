package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// process is a program that runs beside a script.
type process struct {
	cmd    *exec.Cmd
	stdout *os.File  // nil: a file
	keys   io.Writer // of a program on a terminal
	done   chan struct{}
}

// run starts the program in the work folder and the environment of the script.
func (p *process) run(ts *testscript.TestScript, path, name string, args []string) error {
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = environment(ts)
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

// runOnTerminal starts the program on a terminal of 36 lines and 120 columns; what it draws goes to a file.
func (p *process) runOnTerminal(ts *testscript.TestScript, path, name string, args []string) error {
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir, p.cmd.Env = ts.MkAbs("."), environment(ts)
	out, err := os.Create(ts.MkAbs(name + ".out"))
	if err != nil {
		return err
	}
	terminal, err := pty.StartWithSize(p.cmd, &pty.Winsize{Rows: 36, Cols: 120})
	if err != nil {
		return err
	}
	p.keys, p.done = terminal, make(chan struct{})
	read := make(chan struct{})
	go func() {
		io.Copy(out, terminal) // ends with an error when the program does
		out.Close()
		close(read)
	}()
	go func() {
		p.cmd.Wait()
		<-read
		terminal.Close()
		close(p.done)
	}()
	return nil
}

// environment returns what a program beside a script gets of its environment.
func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, v := range []string{"PATH", "HOME", "TERM", "TMPDIR", "DYN_FILE_KV", "XDG_CACHE_HOME", "DYN_LOG", "DYN_TCP_RPC_PORT", "DYN_SYSTEM_PORT"} {
		if value := ts.Getenv(v); value != "" {
			env = append(env, v+"="+value)
		}
	}
	return env
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
