package main

import (
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/term"

	"mockbench/ui/keys"
)

// soakTime is how long random keys are typed.
const soakTime = time.Minute

// soaked are keys that a person could type, those that end the program, put it to sleep or write files left out, and
// what a terminal sends by itself: reports of the mouse, whole and cut, a paste, unknown sequences.
func soaked() []string {
	var list []string
	bytes := map[string]string{"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "enter": "\r", "esc": "\x1b",
		"tab": "\t", "shift+tab": "\x1b[Z", "home": "\x1b[H", "end": "\x1b[F", "pgup": "\x1b[5~", "pgdown": "\x1b[6~", "ctrl+l": "\x0c",
		"ctrl+u": "\x15", "ctrl+d": "\x04"}
	for _, b := range keys.Table {
		switch b.Action {
		case keys.Quit, keys.Suspend, keys.Save, keys.Export:
			continue
		}
		for _, name := range b.Keys {
			if s, ok := bytes[name]; ok {
				list = append(list, s)
			} else if len(name) == 1 {
				list = append(list, name)
			}
		}
	}
	return append(list, "12", "7", "kv", "\x1b[<0;12;6M\x1b[<0;12;6m", "\x1b[<64;40;12M", "\x1b[<65;40;12M", "<35;44;10M",
		"\x1b[200~q\x1b[201~", "\x1b[99~", "\x15", "\x7f", "\r", "\x1b")
}

// Random keys and sizes for a minute: the program runs on, draws in the end what it should, and leaves the terminal as it
// was. Two fleets are compared, so that every panel is there.
func TestSoak(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("mockbench")
	if err != nil {
		t.Fatal(err)
	}
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer tty.Close()
	before, err := term.GetState(int(tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	sizes := []pty.Winsize{{Cols: 80, Rows: 24}, {Cols: 120, Rows: 36}, {Cols: 200, Rows: 60}, {Cols: 60, Rows: 20}, {Cols: 97, Rows: 31}}
	pty.Setsize(tty, &sizes[1])
	cmd := exec.Command(path, "--profile", "tight-memory", "--ab", "kv", "--slo", "ttft_ms=300", "--duration", "1h")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LANG=C.UTF-8", "HOME="+cmd.Dir, "MOCKBENCH_PROFILES="+cmd.Dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	var mu sync.Mutex
	em := vt.NewEmulator(120, 36)
	go io.Copy(io.Discard, em)
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := master.Read(buf)
			mu.Lock()
			em.Write(buf[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	screen := func() string {
		mu.Lock()
		defer mu.Unlock()
		return em.String()
	}
	resize := func(s pty.Winsize) {
		mu.Lock()
		em.Resize(int(s.Cols), int(s.Rows))
		mu.Unlock()
		pty.Setsize(tty, &s)
		cmd.Process.Signal(syscall.SIGWINCH)
	}

	r, list := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))), soaked()
	var typed []string
	for end := time.Now().Add(soakTime); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		key := list[r.IntN(len(list))]
		typed = append(typed, key)
		if _, err := io.WriteString(master, key); err != nil {
			break
		}
		if r.IntN(40) == 0 {
			resize(sizes[r.IntN(len(sizes))])
		}
		select {
		case err := <-exited:
			t.Fatalf("the program ended: %v; the last keys were %q; the screen shows\n%s", err, typed[max(len(typed)-40, 0):], screen())
		default:
		}
		if r.IntN(200) == 0 {
			for _, bad := range []string{"NaN", "+Inf", "%!"} {
				if text := screen(); strings.Contains(text, bad) {
					t.Fatalf("%s on the screen:\n%s", bad, text)
				}
			}
		}
	}
	t.Logf("%d keys", len(typed))
	resize(sizes[1])
	io.WriteString(master, "\x1b")
	time.Sleep(100 * time.Millisecond) // an escape alone is told from a sequence by time
	io.WriteString(master, "\x1b[200~\x1b[201~1")
	for end := time.Now().Add(30 * time.Second); !strings.Contains(screen(), "[1 Overview]"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no overview in the end:\n%s", screen())
		}
	}
	io.WriteString(master, "qq")
	select {
	case err := <-exited:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the program does not end")
	}
	if after, err := term.GetState(int(tty.Fd())); err != nil || *after != *before {
		t.Errorf("the line settings are not those of before: %v", err)
	}
}
