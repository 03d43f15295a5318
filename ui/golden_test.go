package ui_test

import (
	"fmt"
	"slices"
	"testing"

	"mockbench/engine"
	"mockbench/ui/term"
	"mockbench/ui/theme"
	"mockbench/ui/uitest"
)

var panels = []string{"overview", "blocks", "host", "batch", "requests", "routing", "latency", "events", "knobs"}

// looks are the kinds of terminals of the golden screens.
var looks = map[string]theme.Theme{
	"ascii": theme.New(theme.NoColor, false, false),
	"dark":  theme.New(theme.Colors256, false, true),
}

var sizes = [][2]int{{80, 24}, {120, 36}, {200, 60}}

// Each panel at three sizes, without colour in ASCII and in 256 colours.
func TestScreens(t *testing.T) {
	for look, th := range looks {
		for _, size := range sizes {
			f := uitest.NewFleet(5, 4096)
			s := uitest.NewScreen(f, f.Options(), th, size[0], size[1])
			s.Run(120)
			for i, panel := range panels {
				name := fmt.Sprintf("%s-%dx%d-%s", panel, size[0], size[1], look)
				t.Run(name, func(t *testing.T) {
					s.Press(fmt.Sprint(i + 1))
					uitest.Golden(t, name, s.Text())
				})
			}
		}
	}
}

// What panels look like on other terminals: light backgrounds, 16 colours, no colour with Unicode, and the Linux console,
// whose abilities are found out as a program does it.
func TestLooks(t *testing.T) {
	env := func(vars map[string]string) theme.Theme {
		can := term.Detect(func(name string) string { return vars[name] })
		return theme.New(can.Colors, can.Light, can.Unicode)
	}
	for look, th := range map[string]theme.Theme{
		"light":   env(map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "COLORFGBG": "0;15"}),
		"16":      env(map[string]string{"TERM": "xterm", "LANG": "C.UTF-8"}),
		"16light": env(map[string]string{"TERM": "xterm", "LANG": "C.UTF-8", "COLORFGBG": "0;15"}),
		"nocolor": env(map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"}),
		"langc":   env(map[string]string{"TERM": "xterm-256color", "LANG": "C"}),
		"console": env(map[string]string{"TERM": "linux", "LANG": "C.UTF-8"}),
	} {
		f := uitest.NewFleet(5, 4096)
		f.Workers()[0].AddHost(1024)
		s := uitest.NewScreen(f, f.Options(), th, 80, 24)
		s.Run(120)
		for _, panel := range []string{"overview", "blocks", "knobs"} {
			s.Press(fmt.Sprint(slices.Index(panels, panel) + 1))
			name := panel + "-look-" + look
			t.Run(name, func(t *testing.T) { uitest.Golden(t, name, s.Text()) })
		}
	}
}

// What panels look like in states that the first screens do not have.
func TestOtherScreens(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
	}{
		{"help", []string{"?"}},
		{"help-end", []string{"?", "end"}},
		{"blocks-zoom", []string{"2", "enter", "pgdown", "down", "right"}},
		{"blocks-lens", []string{"2", "f", "f"}},
		{"batch-paused", []string{"4", " "}},
		{"batch-scrub", []string{"4", "left", "left", "left"}},
		{"requests-filter", []string{"5", "/", "r", "2", "5", "enter", "o"}},
		{"events-frozen", []string{"8", "down", "down", "f"}},
		{"knobs-help", []string{"9", "?"}},
		{"knobs-edit", []string{"9", "down", "enter", "7"}},
		{"knobs-refused", []string{"9", "enter", "backspace", "backspace", "backspace", "0", "enter"}},
		{"knobs-restart", []string{"9", "down", "+", "end", "up", "+", "home", "down", "down", "down", "down", "down", "down", "+"}},
		{"requests-ended", []string{"5", "e", "o", "down", "down"}},
		{"overview-order", []string{"o", "down", "down", "down"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := uitest.NewFleet(5, 4096)
			s := uitest.NewScreen(f, f.Options(), looks["ascii"], 80, 24)
			s.Run(120)
			s.Press(c.keys...)
			s.Run(1)
			uitest.Golden(t, c.name, s.Text())
		})
	}
}

// Two fleets under the same traffic, at three sizes.
func TestComparisonScreens(t *testing.T) {
	for _, size := range sizes {
		name := fmt.Sprintf("routing-ab-%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			f := uitest.NewFleet(8, 2048)
			s := uitest.NewScreen(f, f.Compared(f.Options()), looks["ascii"], size[0], size[1])
			s.Run(60)
			s.Press("6")
			s.Run(10)
			uitest.Golden(t, name, s.Text())
		})
	}
}

// Panels that depend on the engine and on a host tier, at three sizes.
func TestEngineScreens(t *testing.T) {
	hosts := func(w *uitest.Worker) { w.AddHost(4096) }
	sglang := func(w *uitest.Worker) { w.Use(engine.SGLang) }
	for _, size := range sizes {
		for _, c := range []struct {
			name string
			make func(*uitest.Worker)
			keys []string
		}{
			{"host-tier", hosts, []string{"3"}},
			{"host-overview", hosts, []string{"1"}},
			{"host-requests", hosts, []string{"5"}},
			{"tree-vllm", hosts, []string{"2", "t"}},
			{"tree-sglang", sglang, []string{"2", "t", "down", "down", "down"}},
			{"sglang-overview", sglang, []string{"1", "o", "o", "o"}},
			{"sglang-batch", sglang, []string{"4"}},
			{"sglang-host", sglang, []string{"3"}},
		} {
			name := fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				f := uitest.NewFleet(5, 4096)
				for _, w := range f.Workers() {
					c.make(w)
				}
				o := f.Options()
				o.Backend = string(f.Workers()[0].Config().Backend)
				s := uitest.NewScreen(f, o, looks["ascii"], size[0], size[1])
				s.Run(120)
				s.Press(c.keys...)
				s.Run(32) // the message at the bottom goes away
				uitest.Golden(t, name, s.Text())
			})
		}
	}
}
