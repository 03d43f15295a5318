package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mockbench": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DYN_FILE_KV", filepath.Join(e.WorkDir, "kv"))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("TERM", "xterm-256color")
			root, err := filepath.Abs("../..")
			e.Setenv("REPOSITORY", root)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": start, "startterm": startOnTerminal, "press": press, "signal": send, "finish": finish, "await": await, "exit": exit, "headof": headOf,
			"occupy": occupy, "noescapes": noEscapes, "oneline": oneLine, "count": count, "lines": lines,
		},
	})
}

// exit STATUS PROGRAM ARGS... runs a program and checks its exit status; its output can be looked at as usual.
func exit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit status program args...")
	}
	err := ts.Exec(args[1], args[2:]...)
	status := "0"
	if err != nil {
		status = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if status != args[0] {
		ts.Fatalf("exit status %s, want %s", status, args[0])
	}
}

// start NAME ARGS... starts the program beside the script, with its output in files NAME.out and NAME.err.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: start name args...")
	}
	p := &process{}
	path, err := lookUp(ts, "mockbench")
	ts.Check(err)
	ts.Check(p.run(ts, path, args[0], args[1:]))
	processes(ts)[args[0]] = p
	ts.Defer(func() { p.cmd.Process.Kill(); <-p.done })
}

// startterm NAME ARGS... starts the program on a terminal; what it draws goes to NAME.out.
func startOnTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: startterm name args...")
	}
	p := &process{}
	path, err := lookUp(ts, "mockbench")
	ts.Check(err)
	ts.Check(p.runOnTerminal(ts, path, args[0], args[1:]))
	processes(ts)[args[0]] = p
	ts.Defer(func() { p.cmd.Process.Kill(); <-p.done })
}

// press NAME KEYS sends keys to a program on a terminal.
func press(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: press name keys")
	}
	_, err := processes(ts)[args[0]].keys.Write([]byte(args[1]))
	ts.Check(err)
}

// signal NAME TERM|INT|HUP|QUIT|KILL sends a signal to a started program.
func send(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
		"KILL": syscall.SIGKILL}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal name TERM|INT|HUP|QUIT|KILL")
	}
	ts.Check(processes(ts)[args[0]].cmd.Process.Signal(signals[args[1]]))
}

// finish NAME STATUS waits for a started program and checks its exit status, or "signal NUMBER".
func finish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: finish name status")
	}
	p := processes(ts)[args[0]]
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		ts.Fatalf("%s does not end", args[0])
	}
	state := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	got := strconv.Itoa(state.ExitStatus())
	if state.Signaled() {
		got = fmt.Sprintf("signal %d", state.Signal())
	}
	if want := strings.Join(args[1:], " "); got != want {
		ts.Fatalf("%s ended with %s, want %s\nstderr:\n%s", args[0], got, want, ts.ReadFile(args[0]+".err"))
	}
}

// await FILE TEXT waits until a file holds a text.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: await file text")
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(data), args[1]) != neg {
			return
		}
	}
	ts.Fatalf("%s does not come to hold %q", args[0], args[1])
}

// count N GLOB checks the number of files that match a pattern below the work folder; it waits for it.
func count(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: count n glob")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var found []string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		found, err = filepath.Glob(ts.MkAbs(args[1]))
		ts.Check(err)
		if len(found) == want {
			return
		}
	}
	ts.Fatalf("%d files match %s, want %d: %q", len(found), args[1], want, found)
}

// headof ARGS... runs the program with a standard output whose reader leaves after one line.
func headOf(ts *testscript.TestScript, neg bool, args []string) {
	path, err := lookUp(ts, "mockbench")
	ts.Check(err)
	read, write, err := os.Pipe()
	ts.Check(err)
	p := &process{stdout: write}
	ts.Check(p.run(ts, path, "headof", args))
	write.Close()
	line, err := bufio.NewReader(read).ReadString('\n')
	read.Close()
	if err != nil {
		ts.Fatalf("no line on stdout: %v", err)
	}
	<-p.done
	ts.Logf("first line: %s", line)
	if got := p.cmd.ProcessState.ExitCode(); got != 0 {
		ts.Fatalf("exit status %d after the reader left", got)
	}
}

// occupy VARIABLE listens on a port of the loopback address and puts its number into a variable.
func occupy(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// noescapes FILES... checks that files hold no escape byte.
func noEscapes(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		if text := ts.ReadFile(name); strings.ContainsRune(text, 0x1b) {
			ts.Fatalf("%s holds escape bytes: %q", name, text)
		}
	}
}

// oneline FILE checks that a file holds exactly one line.
func oneLine(ts *testscript.TestScript, neg bool, args []string) {
	if text := ts.ReadFile(args[0]); strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		ts.Fatalf("%s holds more or less than one line: %q", args[0], text)
	}
}

// lines N FILE checks the number of lines of a file.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines n file")
	}
	if got := strings.Count(ts.ReadFile(args[1]), "\n"); strconv.Itoa(got) != args[0] {
		ts.Fatalf("%s holds %d lines, want %s", args[1], got, args[0])
	}
}
