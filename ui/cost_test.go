//go:build linux

package ui_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"golang.org/x/sys/unix"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/workload"
	"mockbench/ui"
	"mockbench/ui/grid"
	"mockbench/ui/uitest"
)

// counter is a publisher that counts what a terminal would be sent.
type counter struct {
	shown *grid.Grid
	looks []grid.Look
	bytes int
}

func (c *counter) Publish(g *grid.Grid, _ bool) {
	if c.shown.W != g.W || c.shown.H != g.H {
		c.shown.Resize(g.W, g.H)
	}
	c.bytes += len(grid.AppendDiff(nil, c.shown, g, c.looks)) + len("\x1b[?2026h\x1b[?2026l")
	c.shown.CopyFrom(g)
}

// fleets are those whose panels cost most: in heavy churn and more workers than fit the screen, with host tiers, and two
// fleets compared.
var fleets = map[string]func() *uitest.Screen{
	"": func() *uitest.Screen {
		f := uitest.NewFleet(24, 16384)
		return uitest.NewScreen(f, f.Options(), looks["dark"], 80, 24)
	},
	" with host tiers": func() *uitest.Screen {
		f := uitest.NewFleet(24, 16384)
		for _, w := range f.Workers() {
			w.AddHost(16384)
		}
		return uitest.NewScreen(f, f.Options(), looks["dark"], 80, 24)
	},
	" of two fleets": func() *uitest.Screen {
		f := uitest.NewFleet(24, 16384)
		return uitest.NewScreen(f, f.Compared(f.Options()), looks["dark"], 80, 24)
	},
}

// views are what keys show of a fleet: each panel, and what else fills the screen.
func views() map[string][]string {
	list := map[string][]string{"help": {"1", "?"}, "zoomed blocks": {"2", "enter"},
		"prefix tree": {"2", "t"}, "ended requests": {"5", "e"}, "baseline": {"1", "b"}}
	for i, panel := range panels {
		list[panel] = []string{fmt.Sprint(i + 1)}
	}
	return list
}

// No view sends more than 40 kB a second at any size.
func TestBytesPerSecond(t *testing.T) {
	const allowed, seconds = 40_000, 2
	for name, make := range fleets {
		s := make()
		c := &counter{shown: grid.New(0, 0), looks: looks["dark"].Looks}
		s.Model.Attach(c)
		s.Run(20)
		for _, size := range sizes {
			s.Send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			for view, keys := range views() {
				s.Press(keys...)
				s.Run(5)
				c.bytes = 0
				s.Run(10 * seconds)
				perSecond := c.bytes / seconds
				t.Logf("%dx%d %s%s: %.1f kB/s", size[0], size[1], view, name, float64(perSecond)/1000)
				if perSecond > allowed {
					t.Errorf("%s%s at %dx%d: %d bytes a second, allowed are %d", view, name, size[0], size[1], perSecond, allowed)
				}
				s.Press(keys[1:]...) // as before
			}
		}
	}
}

// BenchmarkFrame draws panels anew, all of them 200x60 with 64 workers, and writes what differs. p99-µs is the processor
// time of the thread for one frame: what other programs take of the machine is not in it.
func BenchmarkFrame(b *testing.B) {
	for i, panel := range panels {
		b.Run(panel, func(b *testing.B) {
			f := uitest.NewFleet(64, 16384)
			s := uitest.NewScreen(f, f.Options(), looks["dark"], 200, 60)
			s.Model.Attach(&counter{shown: grid.New(0, 0), looks: looks["dark"].Looks})
			s.Run(50)
			s.Press(fmt.Sprint(i + 1))
			s.Model.View()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var times []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				begin := threadTime(b)
				s.Press("ctrl+l")
				s.Model.View()
				times = append(times, threadTime(b)-begin)
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1000, "p99-µs")
		})
	}
}

// switched is a reader that can be left out.
type switched struct {
	engine.Reader
	on *atomic.Bool
}

func (s switched) Pass(p *engine.Pass) {
	if s.on.Load() {
		s.Reader.Pass(p)
	}
}

// BenchmarkShare runs 64 workers with 16,384 blocks each without delay and switches the screen on and off every half second.
// kept is the median of the processor time of a pass without the screen over that of the half second after, with it:
// neighbours in one process have the same load and the same machine, which two runs have not.
func BenchmarkShare(b *testing.B) {
	c := engine.DefaultConfig(engine.VLLM)
	c.BlockSize, c.SpeedupRatio, c.EmitKVEvents = 16, 0, true
	var on atomic.Bool
	r := uitest.StartReal(b, c, 64, 1, workload.Options{Concurrency: 2048, PromptMean: 600, PromptSpread: 200, OutputMean: 128,
		OutputSpread: 40, PrefixCount: 64, PrefixLength: 512, PrefixShare: 0.6},
		func(f engine.Reader) engine.Reader { return switched{f, &on} })
	m := ui.New(r.Options, looks["dark"])
	m.Attach(&counter{shown: grid.New(0, 0), looks: looks["dark"].Looks})
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 36})
	var run func(c tea.Cmd)
	run = func(c tea.Cmd) {
		if c == nil {
			return
		}
		switch msg := c().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				run(c)
			}
		default:
			_, next := m.Update(msg)
			run(next)
		}
	}
	half := func(shown bool) float64 {
		on.Store(shown)
		passes, cpu := r.Figures.Report(report.Final{}).Summary.Passes, processTime(b)
		for range 5 {
			time.Sleep(100 * time.Millisecond)
			if shown {
				run(m.Tick())
				m.View()
			}
		}
		cpu = processTime(b) - cpu
		return float64(cpu) / float64(r.Figures.Report(report.Final{}).Summary.Passes-passes)
	}
	var kept []float64
	for b.Loop() {
		without := half(false)
		kept = append(kept, without/half(true))
	}
	slices.Sort(kept)
	b.ReportMetric(kept[len(kept)/2], "kept")
}

// processTime is the processor time of this process.
func processTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// threadTime is the processor time of this thread.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}
