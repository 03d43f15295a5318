package term

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"

	"mockbench/ui/grid"
	"mockbench/ui/theme"
)

// sink collects what is written and can be made to block or to fail.
type sink struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	block chan struct{} // if set, writes wait for it
	err   error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.block != nil {
		<-s.block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	return s.buf.Write(p)
}
func (s *sink) Read([]byte) (int, error) { return 0, nil }
func (s *sink) Close() error             { return nil }
func (s *sink) Fd() uintptr              { return ^uintptr(0) }
func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

var looks = []grid.Look{grid.Plain, {FG: 1, BG: grid.Default}, {FG: 94, BG: 214, Bold: true}}

const second = 10 * time.Second // a generous limit on a loaded machine

func flush(t *testing.T, w *Writer) {
	t.Helper()
	if !w.Flush(second) {
		t.Fatal("the writer did not finish")
	}
}

// settle waits until the text has arrived.
func settle(t *testing.T, s *sink, text string) {
	t.Helper()
	for end := time.Now().Add(second); !strings.Contains(s.text(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q did not arrive; got %q", text, s.text())
		}
	}
}

func TestLibraryFramesAreDropped(t *testing.T) {
	out := &sink{}
	w := NewWriter(out, looks, nil)
	fmt.Fprint(w, "\x1b[?1049h")
	fmt.Fprint(w, "\x1b[H\r \x1b[K\x1b[1;1H")
	fmt.Fprint(w, "\x1b[?25l")
	flush(t, w)
	if got := out.text(); got != "\x1b[?1049h\x1b[?25l" {
		t.Errorf("got %q", got)
	}
}

func TestFramesOnlyOnTheAlternateScreen(t *testing.T) {
	out := &sink{}
	w := NewWriter(out, looks, nil)
	g := grid.New(4, 1)
	g.Area().Text(0, 0, "main", 0)
	w.Publish(g, false)
	flush(t, w)
	if out.text() != "" {
		t.Fatalf("drawn before the alternate screen: %q", out.text())
	}
	fmt.Fprint(w, "\x1b[?1049h")
	settle(t, out, "main")
	fmt.Fprint(w, "\x1b[?1049l")
	g.Area().Text(0, 0, "late", 0)
	w.Publish(g, false)
	if !w.Stop(second) {
		t.Fatal("the writer did not end")
	}
	if got := out.text(); strings.Contains(got, "late") || !strings.HasSuffix(got, "\x1b[?1049l") {
		t.Errorf("got %q", got)
	}
}

// Whatever is published, the terminal ends up with the last frame, also across changes of size.
func TestTerminalShowsTheNewestFrame(t *testing.T) {
	out := &sink{}
	w := NewWriter(out, looks, nil)
	fmt.Fprint(w, "\x1b[?1049h")
	r := rand.New(rand.NewPCG(5, 6))
	em := vt.NewEmulator(1, 1)
	for range 25 {
		width, height := r.IntN(40)+12, r.IntN(10)+1
		g := grid.New(width, height)
		em.Resize(width, height)
		for range 4 {
			g.Area().Text(r.IntN(10), r.IntN(height), "text", grid.Style(r.IntN(len(looks))))
			w.Publish(g, false)
		}
		mark := fmt.Sprintf("m%06d", r.IntN(1e6))
		g.Area().Text(0, 0, mark, 0)
		w.Publish(g, true)
		settle(t, out, mark)
		flush(t, w)
		out.mu.Lock()
		em.Write(out.buf.Bytes())
		out.buf.Reset()
		out.mu.Unlock()
		want := vt.NewEmulator(width, height)
		want.Write([]byte("\x1b[?1049h" + strings.ReplaceAll(g.ANSI(looks), "\n", "\r\n")))
		if em.Render() != want.Render() {
			t.Fatalf("the terminal shows\n%s\nwant\n%s", em.Render(), want.Render())
		}
	}
}

// A terminal that does not read holds nobody up, and afterwards gets the newest frame only.
func TestStoppedTerminalBlocksNobody(t *testing.T) {
	out := &sink{block: make(chan struct{})}
	w := NewWriter(out, looks, nil)
	fmt.Fprint(w, "\x1b[?1049h")
	g := grid.New(10, 1)
	for i := range 1000 {
		g.Area().Text(0, 0, fmt.Sprintf("frame %03d", i), 0)
		w.Publish(g, false)
		fmt.Fprint(w, "\x1b[?25l")
	}
	if w.Stop(time.Millisecond) {
		t.Error("the writer claims to have written everything to a terminal that does not read")
	}
	close(out.block)
	if !w.Stop(second) {
		t.Error("the writer did not end")
	}
	if n := strings.Count(out.text(), "\x1b[2J"); n > 1 {
		t.Errorf("%d frames were drawn, want at most the one that was under way", n)
	}
}

func TestFirstWriteErrorIsReportedOnce(t *testing.T) {
	broken := errors.New("broken")
	got := make(chan error, 10)
	w := NewWriter(&sink{err: broken}, looks, func(err error) { got <- err })
	fmt.Fprint(w, "\x1b[?1049h")
	if err := <-got; !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	fmt.Fprint(w, "more")
	if !w.Stop(second) || len(got) != 0 {
		t.Errorf("stopped with %d more errors", len(got))
	}
}

func TestDetect(t *testing.T) {
	utf := "en_US.UTF-8"
	for _, c := range []struct {
		name string
		env  map[string]string
		want Abilities
	}{
		{"xterm", map[string]string{"TERM": "xterm-256color", "LANG": utf}, Abilities{theme.Colors256, false, true, true}},
		{"16 colours", map[string]string{"TERM": "xterm", "LANG": utf}, Abilities{theme.Colors16, false, true, true}},
		{"true colour", map[string]string{"TERM": "xterm", "COLORTERM": "truecolor"}, Abilities{theme.Colors256, false, false, true}},
		{"screen", map[string]string{"TERM": "screen", "LC_CTYPE": "C.UTF-8"}, Abilities{theme.Colors256, false, true, true}},
		{"tmux", map[string]string{"TERM": "tmux-256color", "LANG": utf}, Abilities{theme.Colors256, false, true, true}},
		{"console", map[string]string{"TERM": "linux", "LANG": utf}, Abilities{theme.Colors16, false, false, false}},
		{"no colour", map[string]string{"TERM": "xterm-256color", "NO_COLOR": "yes", "LANG": utf}, Abilities{theme.NoColor, false, true, true}},
		{"empty NO_COLOR", map[string]string{"TERM": "xterm-256color", "NO_COLOR": ""}, Abilities{theme.Colors256, false, false, true}},
		{"C locale wins", map[string]string{"TERM": "xterm", "LC_ALL": "C", "LANG": utf}, Abilities{theme.Colors16, false, false, true}},
		{"wide glyphs", map[string]string{"TERM": "xterm", "LANG": "ja_JP.UTF-8"}, Abilities{theme.Colors16, false, false, true}},
		{"light", map[string]string{"TERM": "xterm", "COLORFGBG": "0;default;15"}, Abilities{theme.Colors16, true, false, true}},
	} {
		if got := Detect(func(n string) string { return c.env[n] }); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
