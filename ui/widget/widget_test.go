package widget

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/ui/grid"
)

var levels = []rune(" .:-=+*#@")

func draw(w, h int, f func(a grid.Area)) string {
	g := grid.New(w, h)
	f(g.Area())
	return g.String()
}

func TestPortion(t *testing.T) {
	for _, c := range []struct {
		share float64
		n     int
		want  int
	}{
		{0, 10, 0}, {0.001, 10, 1}, {0.5, 10, 5}, {0.999, 10, 9}, {1, 10, 10}, {2, 10, 10}, {math.NaN(), 10, 0}, {0.5, 0, 0}, {0.9, 1, 1},
	} {
		if got := Portion(c.share, c.n); got != c.want {
			t.Errorf("Portion(%v, %d) = %d, want %d", c.share, c.n, got, c.want)
		}
	}
}

func TestSpark(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		values []float64
		top    float64
		want   string
	}{
		{"none", nil, 0, ""},
		{"one", []float64{5}, 5, "    @"},
		{"all zero", []float64{0, 0, 0}, 0, "  ..."},
		{"all equal", []float64{2, 2}, 2, "   @@"},
		{"one huge", []float64{1, 1, 1e9}, 1e9, "  ..@"},
		{"a gap", []float64{4, nan, 4}, 8, "  = ="},
		{"more than fit", []float64{1, 2, 3, 4, 5, 6, 7, 8}, 8, "=+*#@"},
	} {
		got := draw(5, 1, func(a grid.Area) { Spark(a, c.values, c.top, levels, 0) })
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	draw(1, 1, func(a grid.Area) { Spark(a, []float64{1, 2, 3}, 3, levels, 0) })
	draw(0, 0, func(a grid.Area) { Spark(a, []float64{1, 2, 3}, 3, levels, 0) })
}

func TestHistogram(t *testing.T) {
	got := draw(4, 2, func(a grid.Area) { Histogram(a, []float64{0, 8, 16, 1}, 3, levels, 0, 0) })
	if want := "  @\n @@."; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := draw(4, 2, func(a grid.Area) { Histogram(a, nil, 0, levels, 0, 0) }); strings.TrimSpace(got) != "" {
		t.Errorf("no bins: got %q", got)
	}
}

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		n    int
		want string
	}{{0, "[]"}, {2, "[3 3]"}, {3, "[1 2 3]"}, {5, "[1 2 3]"}, {6, "[1 1 2 2 3 3]"}} {
		if got := fmt.Sprint(Columns([]float64{1, 2, 3}, c.n)); got != c.want {
			t.Errorf("%d columns: got %s, want %s", c.n, got, c.want)
		}
	}
}

func TestStackShowsEveryPart(t *testing.T) {
	part := func(v float64, r rune) Part { return Part{v, r, 0} }
	for _, c := range []struct {
		name  string
		parts []Part
		want  string
	}{
		{"in scale", []Part{part(25, 'd'), part(50, 'N')}, " NNd"},
		{"tiny part", []Part{part(0.1, 'd'), part(74, 'N')}, " NNd"},
		{"full", []Part{part(1, 'd'), part(1, '-'), part(98, 'N')}, "NN-d"},
		{"above the top", []Part{part(100, 'd'), part(100, 'N')}, "NNdd"},
		{"nothing", []Part{part(0, 'd')}, "    "},
	} {
		got := draw(1, 4, func(a grid.Area) { Stack(a, 0, c.parts, 100) })
		column := strings.Join(strings.Split(got, "\n"), "|")
		want := []string{}
		for _, r := range c.want {
			want = append(want, strings.TrimSpace(string(r)))
		}
		if column != strings.Join(want, "|") {
			t.Errorf("%s: got %q, want %q", c.name, column, strings.Join(want, "|"))
		}
	}
}

func TestAggregate(t *testing.T) {
	states := map[rune]engine.BlockState{'.': engine.BlockFree, '#': engine.BlockActive, '@': engine.BlockShared,
		'-': engine.BlockCached, 'h': engine.BlockHost, '!': Evicted}
	for cell, want := range map[string]rune{
		"!---": '!', "!----": '-', "##--": '#', "#@--": '@', "#-..": '.', "-h..": 'h', "--h.": '-', "#-.": '#', "...": '.', "#": '#',
		"##-----": '-', "@##..": '#',
	} {
		var blocks []engine.BlockState
		for _, r := range cell {
			blocks = append(blocks, states[r])
		}
		if got := Aggregate(blocks); got != states[want] {
			t.Errorf("%s: got state %d, want %c", cell, got, want)
		}
	}
}

func TestTenths(t *testing.T) {
	blocks := make([]engine.BlockState, 100)
	for i, want := range map[int]int{0: 0, 1: 1, 15: 1, 55: 5, 100: 9} {
		for k := range blocks {
			blocks[k] = engine.BlockFree
			if k < i {
				blocks[k] = engine.BlockHost
			}
		}
		if got := Tenths(blocks, engine.BlockHost); got != want {
			t.Errorf("%d of 100: got %d, want %d", i, got, want)
		}
	}
}

func TestFitDropsAndWidens(t *testing.T) {
	columns := []Column{{Width: 4}, {Width: 10, Weight: 1}, {Width: 6}}
	for _, c := range []struct {
		width int
		want  []int
	}{{3, nil}, {4, []int{4}}, {20, []int{4, 15}}, {22, []int{4, 10, 6}}, {30, []int{4, 18, 6}}} {
		var got []int
		for _, f := range Fit(columns, c.width) {
			got = append(got, f.Width)
		}
		if len(got) != len(c.want) {
			t.Errorf("width %d: got %v, want %v", c.width, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("width %d: got %v, want %v", c.width, got, c.want)
			}
		}
	}
}

func TestWindow(t *testing.T) {
	for _, c := range []struct{ first, selected, rows, n, want int }{
		{0, 0, 4, 0, 0}, {9, 3, 4, 4, 0}, {0, 5, 4, 10, 2}, {5, 2, 4, 10, 2}, {9, 9, 4, 10, 6}, {50, 1, 4, 3, 0}, {0, 5, 0, 10, 0},
	} {
		if got := Window(c.first, c.selected, c.rows, c.n); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}
