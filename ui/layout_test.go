package ui

import "testing"

// The boxes of every panel lie inside the screen and, the body apart, do not overlap.
func TestBoxesDoNotOverlap(t *testing.T) {
	for tb := range tabs {
		for w := minWidth; w < 230; w += 7 {
			for h := minHeight; h < 80; h += 3 {
				for _, workers := range []int{0, 1, 5, 64} {
					for more := range 16 {
						checkBoxes(t, arrange(w, h, shape{tb, more & 1, workers, more&2 > 0, more&4 > 0, false, more&8 > 0}))
					}
				}
			}
		}
	}
}

func checkBoxes(t *testing.T, l layout) {
	t.Helper()
	for a := range boxes {
		r := l.rect[a]
		if r.X < 0 || r.Y < 0 || r.W < 0 || r.H < 0 || r.X+r.W > l.w || r.Y+r.H > l.h {
			t.Fatalf("%dx%d: box %d lies outside: %+v", l.w, l.h, a, r)
		}
		for b := range a {
			o := l.rect[b]
			if a == boxBody || b == boxBody || r.W == 0 || r.H == 0 || o.W == 0 || o.H == 0 {
				continue
			}
			if r.X < o.X+o.W && o.X < r.X+r.W && r.Y < o.Y+o.H && o.Y < r.Y+r.H {
				t.Fatalf("%dx%d: boxes %d %+v and %d %+v overlap", l.w, l.h, a, r, b, o)
			}
		}
	}
}

func TestAt(t *testing.T) {
	l := arrange(80, 24, shape{tab: tabOverview, banner: 1, rows: 4})
	for _, c := range []struct {
		x, y   int
		box    box
		cx, cy int
	}{{5, 0, boxHeader, 5, 0}, {0, 2, boxBanner, 0, 0}, {10, 4, boxWorkers, 10, 1}, {79, 23, boxFooter, 79, 0}} {
		b, cx, cy, ok := l.at(c.x, c.y)
		if !ok || b != c.box || cx != c.cx || cy != c.cy {
			t.Errorf("at (%d, %d): got box %d (%d, %d) %v", c.x, c.y, b, cx, cy, ok)
		}
	}
	if _, _, _, ok := l.at(80, 3); ok {
		t.Error("a box outside the screen")
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{number(-1234567), "-1,234,567"}, {number(-123), "-123"}, {number(0), "0"}, {span(0.04), "0.0ms"}, {span(9.99), "10.0ms"},
		{span(418), "418ms"}, {span(2140), "2.14s"}, {span(65e3), "65.0s"}, {span(600e3), "10min"}, {clockText(3723e3), "01:02:03"},
		{bytesText(64000), "64 kB"}, {bytesText(131072), "131 kB"}, {bytesText(2.6e12), "2.60 TB"}, {bytesText(12), "12 B"},
		{bytesText(1.85e9), "1.85 GB"}, {rateText(0), "0"}, {rateText(3.14159), "3.14"}, {rateText(0.0016), "0.002"}, {rateText(31.96), "32.0"},
		{speedText(1), "x1.0"}, {speedText(0.25), "x0.25"}, {speedText(64), "x64"}, {percent(0.931, 1), "93.1%"},
		{plural(1, "block"), "1 block"}, {plural(4096, "block"), "4,096 blocks"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
