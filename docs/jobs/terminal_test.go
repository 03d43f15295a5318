package jobs_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

//go:generate go test . -count=1 -update

var update = flag.Bool("update", false, "write the pictures of the pages")

const width, height = 80, 24

// limit is how long something may take to appear: long, for loaded machines.
const limit = 60 * time.Second

var program string // the program that was built for the tests

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "jobs")
	if err == nil {
		program = filepath.Join(dir, "mockbench")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", program, "mockbench/cmd/mockbench").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// page is a page that a test follows: what the test does must stand there.
type page struct {
	t    *testing.T
	file string
	text string
	home string // of the programs that run
}

func open(t *testing.T, file string) *page {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return &page{t: t, file: file, text: string(text), home: t.TempDir()}
}

// says fails unless the page has a text.
func (p *page) says(text string) {
	p.t.Helper()
	if !strings.Contains(p.text, text) {
		p.t.Errorf("%s does not say %q", p.file, text)
	}
}

// picture checks that the page has a picture of that name, or writes it.
func (p *page) picture(name, screen string) {
	p.t.Helper()
	block := regexp.MustCompile("(?s)(<!-- picture " + name + " -->\n```\n)(.*?)(```\n)")
	at := block.FindStringSubmatchIndex(p.text)
	switch {
	case at == nil:
		p.t.Fatalf("%s has no place for picture %s", p.file, name)
	case *update:
		p.text = p.text[:at[4]] + strings.ReplaceAll(screen, p.home, "~") + "\n" + p.text[at[5]:]
		if err := os.WriteFile(p.file, []byte(p.text), 0o666); err != nil {
			p.t.Fatal(err)
		}
	case strings.Count(p.text[at[4]:at[5]], "\n") < strings.Count(screen, "\n")/2:
		p.t.Errorf("picture %s of %s is not complete; go generate ./docs/jobs writes it", name, p.file)
	}
}

// environ is the environment of programs; settings come on top.
func (p *page) environ(settings ...string) []string {
	return append([]string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8",
		"DYN_FILE_KV=" + filepath.Join(p.home, "kv"), "DYN_TCP_RPC_HOST=127.0.0.1"}, settings...)
}

// terminal is a terminal with the program on it.
type terminal struct {
	*page
	master *os.File
	exited chan int

	mu  sync.Mutex
	em  *vt.Emulator
	raw strings.Builder
}

// start runs a command of the page on a terminal.
func (p *page) start(command string) *terminal {
	p.t.Helper()
	p.says("\n" + command + "\n")
	cmd := exec.Command(program, strings.Fields(command)[1:]...)
	cmd.Env, cmd.Dir = p.environ(), p.home
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: width, Rows: height})
	if err != nil {
		p.t.Fatal(err)
	}
	x := &terminal{page: p, master: master, exited: make(chan int, 1), em: vt.NewEmulator(width, height)}
	go io.Copy(io.Discard, x.em) // replies, which would block the emulator
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 1<<16)
		for {
			n, err := master.Read(buf)
			x.mu.Lock()
			x.em.Write(buf[:n])
			x.raw.Write(buf[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		<-read
		cmd.Wait()
		x.exited <- cmd.ProcessState.ExitCode()
	}()
	p.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGKILL)
		master.Close()
	})
	return x
}

// screen returns what the terminal shows, without trailing blanks.
func (x *terminal) screen() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	lines := strings.Split(x.em.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \r")
	}
	return strings.Join(lines, "\n")
}

// until waits until what the screen shows is as wanted, and returns that.
func (x *terminal) until(what string, ok func(screen string) bool) string {
	x.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		screen := x.screen()
		if ok(screen) {
			return screen
		}
		if time.Now().After(end) {
			x.t.Fatalf("waited in vain for %s; the screen shows\n%s", what, screen)
		}
	}
}

// shows waits for a text.
func (x *terminal) shows(text string) string {
	x.t.Helper()
	return x.until(fmt.Sprintf("%q", text), func(s string) bool { return strings.Contains(s, text) })
}

var sequences = map[string]string{"down": "\x1b[B", "left": "\x1b[D", "enter": "\r", "ctrl+u": "\x15", "esc": "\x1b", "space": " "}

// press types keys that the page names.
func (x *terminal) press(keys ...string) {
	x.t.Helper()
	for _, k := range keys {
		x.says("`" + k + "`")
		if s, ok := sequences[k]; ok {
			k = s
		}
		if _, err := io.WriteString(x.master, k); err != nil {
			x.t.Fatal(err)
		}
	}
}

// set gives a setting of the Knobs panel, which is shown, another value.
func (x *terminal) set(setting, value string) {
	x.t.Helper()
	x.shows("settings of all workers")
	for !regexp.MustCompile(">[ *~]" + setting + " ").MatchString(x.screen()) {
		before := x.screen()
		x.press("down")
		x.until("the next row", func(s string) bool { return s != before })
	}
	x.says("`" + setting + "`")
	x.press("enter", "ctrl+u", value, "enter")
	x.shows(setting + " " + value + " waits for a restart")
}

// quit ends the run and returns what is printed after the screen.
func (x *terminal) quit() string {
	x.t.Helper()
	x.press("q")
	select {
	case status := <-x.exited:
		if status != 0 {
			x.t.Errorf("exit status %d", status)
		}
	case <-time.After(limit):
		x.t.Fatal("the program does not end")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	out := x.raw.String()
	out = out[strings.LastIndex(out, "\x1b[?1049l"):]
	return strings.ReplaceAll(regexp.MustCompile(`\x1b\[[0-9;?]*[a-zA-Z]`).ReplaceAllString(out, ""), "\r", "")
}

// run runs a command of the page to its end and returns its status and output.
func (p *page) run(command string) (status int, out string) {
	p.t.Helper()
	p.says("\n" + command + "\n")
	cmd := exec.Command(program, strings.Fields(command)[1:]...)
	cmd.Env, cmd.Dir = p.environ(), p.home
	text, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), strings.TrimRight(string(text), "\n")
}
