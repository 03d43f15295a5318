//go:build linux

package ui_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"mockbench/engine"
	"mockbench/engine/spawn"
	"mockbench/ui"
	"mockbench/ui/uitest"
)

// childEnv makes the test binary behave as a program with a screen; its value says what is to happen.
const childEnv = "MOCKBENCH_TEST_SCREEN"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		os.Exit(child(mode))
	}
	os.Exit(m.Run())
}

// badWorker panics while the screen draws it, once it was asked for a block.
type badWorker struct {
	*uitest.Worker
	asked *atomic.Bool
}

func (w badWorker) Block(rank int, n int32) (engine.BlockInfo, error) {
	w.asked.Store(true)
	return w.Worker.Block(rank, n)
}

func (w badWorker) Tune(engine.Tuning) (func() error, error) { panic("tune panic") }

func (w badWorker) Ranks() int {
	if w.asked.Load() {
		panic("draw panic")
	}
	return w.Worker.Ranks()
}

func child(mode string) int {
	if mode == "usage" {
		fmt.Println("usage")
		return 0
	}
	f := uitest.NewFleet(4, 2048)
	o := f.Options()
	spawn.Go("load", func() {
		for range time.Tick(20 * time.Millisecond) {
			f.Run(1)
		}
	})
	switch mode {
	case "goroutine panic":
		spawn.Go("event publisher", func() {
			time.Sleep(300 * time.Millisecond)
			panic("publisher panic")
		})
	case "command panic":
		o.Status = func() ui.Status { panic("status panic") }
	case "draw panic":
		source := f.Workers()[0].Source()
		source.Worker = badWorker{f.Workers()[0], new(atomic.Bool)}
		o.Fleet = func() []ui.Source { return []ui.Source{source} }
	case "knob panic":
		source := f.Workers()[0].Source()
		source.Worker = badWorker{f.Workers()[0], new(atomic.Bool)}
		o.Fleet = func() []ui.Source { return []ui.Source{source} }
	case "comparison panic":
		o = f.Compared(o)
		o.Sides = func() [2]ui.Side { panic("sides panic") }
	case "comparison":
		o = f.Compared(o)
		o.Drain = func(context.Context, func(ui.Draining)) { time.Sleep(100 * time.Millisecond) }
	case "plain":
		o.Plain = true
	case "drain":
		o.Drain = func(ctx context.Context, progress func(ui.Draining)) {
			progress(ui.Draining{Streams: 1})
			time.Sleep(100 * time.Millisecond)
		}
	}
	err := ui.Run(context.Background(), o)
	if errors.Is(err, ui.ErrTerminal) {
		return 11 // a print might never return
	}
	fmt.Println("ended:", err)
	switch {
	case errors.Is(err, ui.ErrQuit):
		return 0
	case errors.Is(err, ui.ErrSignal):
		return 10
	}
	return 12
}

// terminal is a pseudo terminal with a program on it.
type terminal struct {
	t           *testing.T
	master, tty *os.File
	before      *term.State
	cmd         *exec.Cmd
	exited      chan int

	mu  sync.Mutex
	raw bytes.Buffer
	em  *vt.Emulator
}

func runChild(t *testing.T, mode string, w, h int, env ...string) *terminal {
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	pty.Setsize(master, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)})
	x := &terminal{t: t, master: master, tty: tty, em: vt.NewEmulator(w, h), exited: make(chan int, 1)}
	if x.before, err = term.GetState(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	x.cmd = exec.Command(os.Args[0])
	x.cmd.Env = append([]string{childEnv + "=" + mode, "TERM=xterm-256color", "LANG=en_US.UTF-8", "PATH=" + os.Getenv("PATH")}, env...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = tty, tty, tty
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, x.em)
	go x.read()
	go func() {
		x.cmd.Wait()
		x.exited <- x.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		x.cmd.Process.Kill()
		tty.Close()
		master.Close()
	})
	return x
}

func (x *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		x.raw.Write(buf[:n])
		x.em.Write(buf[:n])
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *terminal) output() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw.String()
}

// wait polls until the condition holds.
func (x *terminal) wait(what string, ok func() bool) {
	x.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatalf("waited in vain for %s; output %q", what, x.output())
		}
	}
}

func (x *terminal) shows(text string) func() bool {
	return func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return strings.Contains(x.em.String(), text)
	}
}

// ends waits for the end of the program and checks its exit status.
func (x *terminal) ends(want int) {
	x.t.Helper()
	select {
	case got := <-x.exited:
		if got != want {
			x.t.Errorf("exit status %d, want %d; output %q", got, want, x.output())
		}
	case <-time.After(20 * time.Second):
		x.t.Fatal("the program does not end")
	}
}

// restored checks that the terminal is as it was.
func (x *terminal) restored() {
	x.t.Helper()
	after, err := term.GetState(int(x.tty.Fd()))
	if err != nil {
		x.t.Fatal(err)
	}
	if !reflect.DeepEqual(after, x.before) {
		x.t.Error("the line settings are not those of before")
	}
	x.wait("the main screen", func() bool { // the program has ended, its last output may not have been read
		x.mu.Lock()
		defer x.mu.Unlock()
		out := x.raw.String()
		return !x.em.IsAltScreen() && strings.LastIndex(out, "?25l") < strings.LastIndex(out, "?25h")
	})
	out := x.output()
	for name, mode := range map[string]string{"mouse reports": "?1002", "mouse coordinates": "?1006", "bracketed paste": "?2004"} {
		if strings.LastIndex(out, mode+"h") > strings.LastIndex(out, mode+"l") {
			x.t.Errorf("%s are still on", name)
		}
	}
}

func TestNothingIsAskedOfTheTerminalAtStart(t *testing.T) {
	begin := time.Now()
	x := runChild(t, "usage", 80, 24)
	x.ends(0)
	x.wait("the text", func() bool { return x.output() != "" })
	if got := x.output(); got != "usage\r\n" {
		t.Errorf("got %q", got)
	}
	if d := time.Since(begin); d > 4*time.Second {
		t.Errorf("it took %v: the terminal was asked for something and did not answer", d)
	}
}

func TestQuitRestoresTheTerminal(t *testing.T) {
	x := runChild(t, "drain", 80, 24)
	x.wait("the screen", x.shows("[1 Over]"))
	x.master.WriteString("q")
	x.ends(0)
	x.wait("the reason on the main screen", x.shows("ended: quit by the user"))
	x.restored()
}

func TestPanicsRestoreTheTerminal(t *testing.T) {
	for mode, text := range map[string]string{"goroutine panic": "panic in event publisher: publisher panic",
		"command panic": "panic in screen figures: status panic", "draw panic": "panic in screen: draw panic",
		"knob panic": "panic in screen: tune panic", "comparison panic": "panic in screen figures: sides panic"} {
		t.Run(mode, func(t *testing.T) {
			x := runChild(t, mode, 200, 60)
			switch mode {
			case "draw panic":
				x.wait("the screen", x.shows("[1 Over"))
				x.master.WriteString("2")
			case "knob panic":
				x.wait("the screen", x.shows("[1 Over"))
				x.master.WriteString("9+")
			case "comparison panic":
				x.wait("the screen", x.shows("[1 Over"))
				x.master.WriteString("6")
			}
			x.ends(spawn.ExitPanic)
			x.wait("the report", func() bool { return strings.Contains(x.output(), text) })
			out := x.output()
			if strings.LastIndex(out, "?1049l") > strings.Index(out, text) {
				t.Error("the report is on the alternate screen")
			}
			x.restored()
		})
	}
}

func TestSignalsRestoreTheTerminal(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		for _, c := range []struct{ mode, keys, shows string }{
			{"drain", "", "[1 Over]"}, {"drain", "9\r12", "[9 Knobs]"}, {"comparison", "6", "B against A"}, {"drain", "?", "in every panel"},
		} {
			t.Run(s.String()+" "+c.mode+" "+c.shows, func(t *testing.T) {
				x := runChild(t, c.mode, 80, 24)
				x.wait("the screen", x.shows("[1 Over]"))
				x.master.WriteString(c.keys)
				x.wait("the panel", x.shows(c.shows))
				x.cmd.Process.Signal(s)
				x.ends(10)
				x.restored()
			})
		}
	}
}

// Signals on which the runtime prints stacks, as the user or a fault of the system sends them.
func TestDumpsComeAfterTheScreen(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS,
		syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV} {
		t.Run(s.String(), func(t *testing.T) {
			x := runChild(t, "drain", 80, 24)
			x.wait("the screen", x.shows("[1 Over]"))
			x.cmd.Process.Signal(s)
			x.ends(2)
			x.wait("the stacks", func() bool { return strings.Contains(x.output(), "goroutine 1 ") })
			if out := x.output(); strings.LastIndex(out, "?1049l") > strings.Index(out, "goroutine 1 ") {
				t.Error("the stacks are on the alternate screen")
			}
			x.restored()
		})
	}
}

// Other signals do nothing.
func TestHarmlessSignals(t *testing.T) {
	x := runChild(t, "drain", 80, 24)
	x.wait("the screen", x.shows("[1 Over]"))
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGIO,
		syscall.SIGPWR, syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGURG, syscall.SIGCHLD, syscall.SIGPIPE} {
		x.cmd.Process.Signal(s)
	}
	x.master.WriteString("2")
	x.wait("the map", x.shows("refs"))
	x.master.WriteString("q")
	x.ends(0)
	x.restored()
}

func (x *terminal) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", x.cmd.Process.Pid))
	if err != nil {
		return false
	}
	return strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " T")
}

func TestSuspendAndResume(t *testing.T) {
	x := runChild(t, "drain", 80, 24)
	for _, how := range []string{"key", "signal", "key"} {
		x.wait("the screen", x.shows("[1 Over]"))
		if how == "key" {
			x.master.WriteString("\x1a")
		} else {
			x.cmd.Process.Signal(syscall.SIGTSTP)
		}
		x.wait("the stop", x.stopped)
		x.wait("the output before the stop", func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return !x.em.IsAltScreen()
		})
		x.restored()
		mark := len(x.output())
		x.cmd.Process.Signal(syscall.SIGCONT)
		x.wait("mouse reports", func() bool { return strings.Contains(x.output()[mark:], "?1002h") })
		x.wait("a whole screen", func() bool { return strings.Contains(x.output()[mark:], "[1 Over]") })
	}
	x.master.WriteString("q")
	x.ends(0)
	x.restored()
}

// A terminal that does not read (Ctrl-S, a dead connection) does not keep the program from ending.
func TestStoppedTerminalDoesNotHoldTheEnd(t *testing.T) {
	x := runChild(t, "drain", 200, 60)
	x.wait("the screen", x.shows("[1 Overview]"))
	const off = 0 // TCOOFF: what Ctrl-S does
	if err := unix.IoctlSetInt(int(x.tty.Fd()), unix.TCXONC, off); err != nil {
		t.Fatal(err)
	}
	x.cmd.Process.Signal(syscall.SIGTERM)
	x.ends(11)
}

func TestTerminalThatGoesAway(t *testing.T) {
	x := runChild(t, "drain", 80, 24)
	x.wait("the screen", x.shows("[1 Over]"))
	x.tty.Close()
	x.master.Close()
	select {
	case <-x.exited: // by the hangup signal or by the first error, whichever comes first
	case <-time.After(20 * time.Second):
		t.Fatal("the program does not end")
	}
}

func TestTerminalsWithoutColourOrUnicode(t *testing.T) {
	x := runChild(t, "drain", 120, 36, "NO_COLOR=1", "LC_ALL=C")
	x.wait("the screen", x.shows("[1 Overview]"))
	x.wait("a map", x.shows("# acti"))
	x.master.WriteString("q")
	x.ends(0)
	out := x.output()
	for _, sgr := range regexp.MustCompile(`\x1b\[[0-9;]*m`).FindAllString(out, -1) {
		if strings.ContainsAny(sgr, "34589") { // of the looks without colour only 1, 22, 7, 27 and 0 are left
			t.Errorf("%q in the output", sgr)
		}
	}
	for i := range len(out) {
		if out[i] >= 0x80 {
			t.Fatalf("a byte outside ASCII: %q", out[max(i-20, 0):min(i+20, len(out))])
		}
	}
}

// The terminal library can draw instead of the difference writer.
func TestPlainOutput(t *testing.T) {
	x := runChild(t, "plain", 80, 24)
	x.wait("the screen", x.shows("[1 Over]"))
	x.master.WriteString("2")
	x.wait("the map", x.shows("refs"))
	x.master.WriteString("q")
	x.ends(0)
	x.restored()
}

func TestResizeOfARealTerminal(t *testing.T) {
	x := runChild(t, "drain", 80, 24)
	x.wait("the screen", x.shows("[1 Over]"))
	for _, size := range [][2]int{{60, 20}, {120, 36}} {
		x.mu.Lock()
		x.em.Resize(size[0], size[1])
		x.mu.Unlock()
		pty.Setsize(x.master, &pty.Winsize{Cols: uint16(size[0]), Rows: uint16(size[1])})
		x.cmd.Process.Signal(syscall.SIGWINCH)
		if size[0] < 80 {
			x.wait("the message", x.shows("need 80x24, have 60x20"))
		}
	}
	x.wait("the large layout", x.shows("[1 Overview]"))
}
