package grid

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
)

var testLooks = []Look{Plain, {FG: 1, BG: Default, Bold: true}, {FG: 94, BG: 214}, {FG: Default, BG: Default, Reverse: true}}

func TestTextIsCutAtTheArea(t *testing.T) {
	g := New(8, 3)
	a := g.Area().Sub(Rect{2, 1, 4, 1})
	if end := a.Text(2, 0, "abcd", 0); end != 6 {
		t.Errorf("text ends at %d, want 6", end)
	}
	a.Text(-1, 0, "xy", 0)
	a.Text(0, 1, "below", 0)
	if got, want := g.String(), "\n  y ab\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWideRunes(t *testing.T) {
	for _, c := range []struct{ name, first, second, want string }{
		{"whole", "a漢b", "", "a漢b"},
		{"no room for the second half", "abcde漢", "", "abcde"},
		{"head overwritten", "a漢b", ".x", "ax b"},
		{"tail overwritten", "a漢b", "..x", "a xb"},
	} {
		g := New(6, 1)
		a := g.Area()
		a.Text(0, 0, c.first, 0)
		for x, r := range c.second {
			if r != '.' {
				a.Set(x, 0, r, 0)
			}
		}
		if got := g.String(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"llama-3.1-8b":         "llama-3.1-8b",
		"a\tb\x1b[31m":         "a?b?[31m",
		"bad\xff":              "bad?",
		"rtl\u202eevil":        "rtl?evil",
		"e\u0301":              "e",
		"漢字":                   "漢字",
		"\U0001f1e9\U0001f1ea": "??",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// randomise changes some cells of a grid through the drawing functions, wide runes included.
func randomise(g *Grid, r *rand.Rand) {
	a := g.Area()
	for range r.IntN(60) {
		x, y, s := r.IntN(g.W), r.IntN(g.H), Style(r.IntN(len(testLooks)))
		switch r.IntN(5) {
		case 0:
			a.Text(x, y, "漢字", s)
		case 1:
			a.Sub(Rect{x, y, 30, 1}).Fill(' ', 0)
		default:
			a.Text(x, y, "some█text"[:r.IntN(4)+1], s)
		}
	}
}

// A terminal that is sent only differences shows what one that is sent the whole grid shows, in every cell and colour.
func TestDiffEqualsRedraw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shown, next := New(33, 7), New(33, 7)
	updated := vt.NewEmulator(33, 7)
	for range 300 {
		randomise(next, r)
		updated.Write(AppendDiff(nil, shown, next, testLooks))
		shown.CopyFrom(next)

		fresh := vt.NewEmulator(33, 7)
		fresh.Write([]byte(strings.ReplaceAll(next.ANSI(testLooks), "\n", "\r\n")))
		if got, want := updated.Render(), fresh.Render(); got != want {
			t.Fatalf("after a difference the terminal shows\n%q\nwant\n%q", got, want)
		}
	}
}

func TestEqualGridsWriteNothing(t *testing.T) {
	g := New(20, 4)
	randomise(g, rand.New(rand.NewPCG(3, 4)))
	if d := AppendDiff(nil, g, g, testLooks); len(d) != 0 {
		t.Errorf("got %q", d)
	}
}
