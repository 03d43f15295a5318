package uitest

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/vt"

	"mockbench/engine/spawn"
	"mockbench/ui"
	"mockbench/ui/term"
	"mockbench/ui/theme"
)

// limit is how long the driver waits for something to appear: long, for loaded machines.
const limit = 20 * time.Second

// Driver runs the real program: keys go through its input parser as bytes, its output into an emulated terminal.
type Driver struct {
	t       testing.TB
	program *tea.Program
	writer  *term.Writer
	model   *ui.Model
	keys    *io.PipeWriter
	done    chan struct{}

	mu sync.Mutex
	em *vt.Emulator
}

// sink is the terminal as the program sees it.
type sink struct{ d *Driver }

func (s sink) Write(p []byte) (int, error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.d.em.Write(p)
}
func (s sink) Read([]byte) (int, error) { return 0, io.EOF }
func (s sink) Close() error             { return nil }
func (s sink) Fd() uintptr              { return ^uintptr(0) }

// Start runs a screen of w x h cells and ends it with the test.
func Start(t testing.TB, o ui.Options, th theme.Theme, w, h int) *Driver {
	d := &Driver{t: t, em: vt.NewEmulator(w, h), done: make(chan struct{})}
	spawn.Go("replies", func() { io.Copy(io.Discard, d.em) }) // to queries, which would block the emulator
	in, keys := io.Pipe()
	d.keys = keys
	d.model = ui.New(o, th)
	d.writer = term.NewWriter(sink{d}, th.Looks, nil)
	d.model.Attach(d.writer)
	d.program = tea.NewProgram(d.model, tea.WithInput(in), tea.WithOutput(d.writer), tea.WithAltScreen(),
		tea.WithMouseCellMotion(), tea.WithoutSignalHandler(), tea.WithFPS(120), tea.WithFilter(ui.Filter))
	spawn.Go("screen", func() {
		defer close(d.done)
		if _, err := d.program.Run(); err != nil {
			t.Errorf("the program failed: %v", err)
		}
		d.writer.Stop(limit)
	})
	t.Cleanup(d.Stop)
	d.program.Send(tea.WindowSizeMsg{Width: w, Height: h})
	return d
}

// Stop ends the program.
func (d *Driver) Stop() {
	d.program.Quit()
	<-d.done
	d.keys.Close()
	if replies, ok := d.em.InputPipe().(io.Closer); ok {
		replies.Close()
	}
}

// Done is closed when the program has ended and everything has been written.
func (d *Driver) Done() <-chan struct{} { return d.done }

// Reason returns why the screen ended.
func (d *Driver) Reason() error { return d.model.Reason() }

// Send hands the program a message.
func (d *Driver) Send(msg tea.Msg) { d.program.Send(msg) }

// sequences of keys that are not their own character.
var sequences = map[string]string{"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "enter": "\r",
	"esc": "\x1b", "tab": "\t", "home": "\x1b[H", "end": "\x1b[F", "pgup": "\x1b[5~", "pgdown": "\x1b[6~", "ctrl+c": "\x03"}

// Press types keys, named as in the key table or given as bytes.
func (d *Driver) Press(names ...string) {
	for _, n := range names {
		if s, ok := sequences[n]; ok {
			n = s
		}
		if _, err := io.WriteString(d.keys, n); err != nil {
			d.t.Errorf("the program does not read: %v", err)
		}
	}
}

// Click presses and releases the left button at a cell, counted from 0.
func (d *Driver) Click(x, y int) {
	d.Press(fmt.Sprintf("\x1b[<0;%d;%dM\x1b[<0;%d;%dm", x+1, y+1, x+1, y+1))
}

// Resize changes the size of the terminal.
func (d *Driver) Resize(w, h int) {
	d.mu.Lock()
	d.em.Resize(max(w, 1), max(h, 1))
	d.mu.Unlock()
	d.program.Send(tea.WindowSizeMsg{Width: w, Height: h})
}

// Screen returns what the terminal shows, one line a row, without trailing blanks.
func (d *Driver) Screen() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := strings.Split(d.em.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \r")
	}
	return strings.Join(lines, "\n")
}

// AltScreen reports whether the alternate screen is on.
func (d *Driver) AltScreen() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.em.IsAltScreen()
}

// WaitFor waits until the text is on the screen.
func (d *Driver) WaitFor(text string) {
	d.t.Helper()
	d.Until(fmt.Sprintf("%q on the screen", text), func(screen string) bool { return strings.Contains(screen, text) })
}

// Until waits until what the screen shows is as wanted.
func (d *Driver) Until(what string, ok func(screen string) bool) {
	d.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		screen := d.Screen()
		if ok(screen) {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("waited in vain for %s; the screen shows\n%s", what, screen)
		}
	}
}
