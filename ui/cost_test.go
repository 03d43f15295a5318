package ui_test

import (
	"testing"

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

// No panel sends more than 40 kB a second, with workers in heavy churn and more of them than fit the screen.
func TestBytesPerSecond(t *testing.T) {
	const allowed, seconds = 40_000, 2
	for _, size := range sizes {
		f := uitest.NewFleet(24, 16384)
		s := uitest.NewScreen(f, f.Options(), looks["dark"], size[0], size[1])
		c := &counter{shown: grid.New(0, 0), looks: looks["dark"].Looks}
		s.Model.Attach(c)
		s.Run(20)
		for i, panel := range panels {
			s.Press(string(rune('1' + i)))
			s.Run(5)
			c.bytes = 0
			s.Run(10 * seconds)
			perSecond := c.bytes / seconds
			t.Logf("%s %dx%d: %.1f kB/s", panel, size[0], size[1], float64(perSecond)/1000)
			if perSecond > allowed {
				t.Errorf("%s at %dx%d: %d bytes a second, allowed are %d", panel, size[0], size[1], perSecond, allowed)
			}
		}
	}
}

// BenchmarkFrame draws panels anew, all of them 200x60 with 64 workers.
func BenchmarkFrame(b *testing.B) {
	for i, panel := range panels {
		b.Run(panel, func(b *testing.B) {
			f := uitest.NewFleet(64, 16384)
			s := uitest.NewScreen(f, f.Options(), looks["dark"], 200, 60)
			s.Model.Attach(&counter{shown: grid.New(0, 0), looks: looks["dark"].Looks})
			s.Run(50)
			s.Press(string(rune('1' + i)))
			s.Model.View()
			b.ReportAllocs()
			for b.Loop() {
				s.Press("ctrl+l")
				s.Model.View()
			}
		})
	}
}
