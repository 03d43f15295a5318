package ui_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/theme"
	"mockbench/ui/uitest"
)

// check looks for what must never be on a screen of w x h cells.
func check(t *testing.T, text string, w, h int) {
	t.Helper()
	lines := strings.Split(text, "\n")
	if w > 0 && h > 0 && len(lines) != h {
		t.Fatalf("%d lines on a screen of %d", len(lines), h)
	}
	for _, l := range lines {
		if n := grid.Width(l); n > w {
			t.Fatalf("a line of %d columns on a screen of %d: %q", n, w, l)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(text, bad) {
			t.Fatalf("%s on the screen:\n%s", bad, text)
		}
	}
}

var plain = theme.Theme{Looks: make([]grid.Look, 64), Glyphs: looks["ascii"].Glyphs}

func init() {
	for i := range plain.Looks {
		plain.Looks[i] = grid.Plain
	}
}

// A screen that has seen 500 sizes and keys in between shows in the end what a fresh one shows.
func TestRandomSizesAndKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(113, 1))
	var names []string
	for _, b := range keys.Table {
		if b.Action != keys.Quit && b.Action != keys.Suspend && b.Action != keys.Filter {
			names = append(names, b.Keys...)
		}
	}
	f := uitest.NewFleet(5, 2048)
	worker := f.Workers()
	o := f.Options()
	o.ExportDir = t.TempDir()
	s := uitest.NewScreen(f, o, plain, 200, 60)
	w, h := 200, 60
	for i := range 500 {
		switch r.IntN(8) {
		case 0:
			f.Set(worker[:r.IntN(len(worker)+1)]...)
		case 1, 2, 3:
			w, h = r.IntN(221), r.IntN(71)
			if r.IntN(2) == 0 {
				w, h = w+80, h+24
			}
			s.Send(tea.WindowSizeMsg{Width: w, Height: h})
		default:
			s.Press(names[r.IntN(len(names))])
		}
		s.Run(1)
		if w > 0 && h > 0 {
			check(t, s.Text(), w, h)
		}
		if i%50 == 0 {
			f.Clock.Resume()
		}
	}
	f.Set(worker...)
	f.Clock.Pause()
	for _, size := range sizes {
		for panel := range panels {
			settle := func(s *uitest.Screen) string {
				s.Send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				s.Press(fmt.Sprint(panel+1), "esc", "esc", "esc")
				s.Run(40) // a message at the bottom goes away
				return s.Text()
			}
			before := settle(s)
			if again := settle(s); again != before {
				t.Errorf("%v, panel %s: got\n%s\nwant\n%s", size, panels[panel], again, before)
			}
			check(t, before, size[0], size[1])
		}
	}
}

// Whatever sizes came before, the picture of a size is that of a screen that only ever had this size.
func TestSizeHistoryLeavesNoTrace(t *testing.T) {
	r := rand.New(rand.NewPCG(113, 2))
	fleets := [2]*uitest.Fleet{uitest.NewFleet(5, 2048), uitest.NewFleet(5, 2048)}
	a := uitest.NewScreen(fleets[0], fleets[0].Options(), plain, 200, 60)
	b := uitest.NewScreen(fleets[1], fleets[1].Options(), plain, 80, 24)
	for step := range 120 {
		key := fmt.Sprint(r.IntN(len(panels)) + 1)
		a.Send(tea.WindowSizeMsg{Width: r.IntN(221), Height: r.IntN(71)})
		size := sizes[r.IntN(len(sizes))]
		for _, s := range []*uitest.Screen{a, b} {
			s.Send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			s.Press(key)
			s.Run(2)
		}
		if x, y := a.Text(), b.Text(); x != y {
			t.Fatalf("step %d, panel %s, %v: got\n%s\nwant\n%s", step, key, size, x, y)
		}
	}
}

func TestShrinkingFleet(t *testing.T) {
	f := uitest.NewFleet(5, 512)
	s := uitest.NewScreen(f, f.Options(), plain, 80, 24)
	w := f.Workers()
	s.Run(10)
	s.Press("end")
	for _, c := range []struct {
		workers []*uitest.Worker
		want    string
	}{{w, "> w4"}, {w[:2], "> w1"}, {nil, "no workers"}, {w[3:], "> w3"}} {
		f.Set(c.workers...)
		s.Run(20)
		if text := s.Text(); !strings.Contains(text, c.want) {
			t.Errorf("with %d workers: no %q in\n%s", len(c.workers), c.want, text)
		}
		s.Press("o", "enter", "down", "up")
		s.Press("o", "o", "o")
	}
}

// Keys before anything has happened, on every panel, with and without workers.
func TestKeysBeforeTheFirstRecord(t *testing.T) {
	for _, workers := range []int{0, 2} {
		f := uitest.NewFleet(workers, 256)
		f.Clock.Pause()
		o := f.Options()
		o.ExportDir = t.TempDir()
		s := uitest.NewScreen(f, o, plain, 80, 24)
		for panel := range panels {
			for _, k := range []string{fmt.Sprint(panel + 1), "down", "end", "enter", "pgdown", "left", "right", "home", "f", "o", "r", "esc"} {
				s.Press(k)
				check(t, s.Text(), 80, 24)
			}
			s.Press("/", "x", "enter")
			check(t, s.Text(), 80, 24)
			s.Press("esc", "esc")
		}
	}
}
