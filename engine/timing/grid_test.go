package timing

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mockbench/engine"
)

func table() Table {
	return Table{PrefillTokens: []float64{100, 200, 1000}, PrefillMS: []float64{10, 12, 40},
		ActiveTokens: []float64{0, 1000, 4000}, Context: []float64{1, 500},
		DecodeMS: []float64{5, 6, 7, 9, 20, 30}, DecodeShape: [2]int{3, 2}}
}

func TestGrid(t *testing.T) {
	g, err := NewGrid(table())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"at a point", g.Prefill(1, 200, 0), 12},
		{"between points, two requests", g.Prefill(2, 75, 0), 11},
		{"computed tokens are not counted", g.Prefill(1, 250, 100), 11},
		{"beyond the last point", g.Prefill(1, 2000, 0), 75},
		{"before the first point", g.Prefill(1, 50, 0), 9},
		{"nothing to compute", g.Prefill(3, 10, 10), 0},
		{"decode at a corner", g.Decode(1, 1000, 500, 0), 9},
		{"decode between rows", g.Decode(1, 500, 1, 0), 6},
		{"decode beyond both axes", g.Decode(1, 7000, 999, 0), 69},
		{"no request decodes", g.Decode(0, 500, 1, 0), 0},
	} {
		if math.Abs(c.got-c.want) > 1e-12*c.want {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestGridBounds(t *testing.T) {
	steep := table()
	steep.PrefillMS = []float64{10, 5, 1e300}
	steep.DecodeMS = []float64{math.NaN(), 6, 0.1, 0.2, 1e300, 1e300}
	g, err := NewGrid(steep)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Prefill(1, 1<<40, 0); got != longestMS {
		t.Errorf("a steep end: got %v", got)
	}
	if got := g.Decode(1, 1000, 1, 0); got != 1 {
		t.Errorf("less than a millisecond: got %v", got)
	}
	if got := g.Decode(1, 500, 1, 0); got != 1 {
		t.Errorf("no number at a corner: got %v", got)
	}
	falling := table()
	falling.PrefillMS = []float64{10, 5, 0}
	if g, err = NewGrid(falling); err != nil {
		t.Fatal(err)
	}
	if got := g.Prefill(1, 100000, 0); got != 0 {
		t.Errorf("below nothing: got %v", got)
	}
}

func TestGridRefusals(t *testing.T) {
	for _, c := range []struct {
		array  string
		kind   engine.Kind
		change func(*Table)
	}{
		{PrefillMSArray, engine.KindConflict, func(x *Table) { x.PrefillMS = x.PrefillMS[1:] }},
		{PrefillTokensArray, engine.KindRange, func(x *Table) { x.PrefillTokens[2] = 200 }},
		{PrefillTokensArray, engine.KindRange, func(x *Table) { x.PrefillTokens[1] = math.NaN() }},
		{PrefillTokensArray, engine.KindRange, func(x *Table) { x.PrefillTokens, x.PrefillMS = x.PrefillTokens[:1], x.PrefillMS[:1] }},
		{ContextArray, engine.KindRange, func(x *Table) { x.Context[1] = 0 }},
		{DecodeMSArray, engine.KindConflict, func(x *Table) { x.DecodeShape = [2]int{2, 3} }},
		{ActiveTokensArray, engine.KindRange, func(x *Table) {
			x.ActiveTokens, x.DecodeMS, x.DecodeShape = x.ActiveTokens[:1], x.DecodeMS[:2], [2]int{1, 2}
		}},
	} {
		bad := table()
		c.change(&bad)
		_, err := NewGrid(bad)
		var wrong *ArrayError
		if !errors.As(err, &wrong) || wrong.Array != c.array || wrong.Kind != c.kind {
			t.Errorf("got %v, want %s of %s", err, c.kind, c.array)
		}
	}
}

// TestSegments compares the way through the parts with a plain search.
func TestSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64Range(-10, 1e6), rapid.Float64Range(0, 1e-3), rapid.Float64(),
			rapid.Map(rapid.IntRange(0, 50), func(i int) float64 { return float64(i) }),
			rapid.SampledFrom([]float64{math.Inf(-1), math.Inf(1), math.Nextafter(1, 2), 1, math.MaxFloat64}))
		points := rapid.SliceOfNDistinct(number, 2, 60, func(x float64) float64 { return x }).Draw(t, "points")
		slices.Sort(points)
		points = slices.CompactFunc(points, func(a, b float64) bool { return !(a < b) }) // two zeros
		if len(points) < 2 {
			return
		}
		a := newAxis(points)
		queries := append(slices.Clone(points), rapid.SliceOfN(number, 20, 20).Draw(t, "queries")...)
		for _, x := range queries {
			want := 0
			for i := 1; i < len(points)-1; i++ {
				if points[i] <= x {
					want = i
				}
			}
			if got := a.segment(x); got != want {
				t.Fatalf("segment of %v in %v: got %d, want %d", x, points, got, want)
			}
		}
	})
}

// BenchmarkModels asks each model about a batch whose contexts grow.
func BenchmarkModels(b *testing.B) {
	const points = 100
	big := Table{DecodeShape: [2]int{points, points}}
	for i := range points {
		big.PrefillTokens = append(big.PrefillTokens, 1+float64(i)*331.5)
		big.PrefillMS = append(big.PrefillMS, 10+float64(i))
		big.ActiveTokens = append(big.ActiveTokens, float64(i)*10101.01)
		big.Context = append(big.Context, 1+float64(i)*333.3)
		for j := range points {
			big.DecodeMS = append(big.DecodeMS, 5+float64(i)+float64(j)/10)
		}
	}
	grid, err := NewGrid(big)
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range []struct {
		name  string
		model Model
	}{{"polynomial", polynomial{}}, {"grid", grid}} {
		timer := NewTimer(m.model, engine.DefaultConfig(engine.VLLM))
		var sum engine.Time
		b.Run(m.name+"/decode", func(b *testing.B) {
			for i := range b.N {
				_, length := timer.Decode(64, 64*(500+i%20000), 1<<20)
				sum += length
			}
		})
		b.Run(m.name+"/prefill", func(b *testing.B) {
			for i := range b.N {
				_, length := timer.Prefill(4, 500+i%8000, 100)
				sum += length
			}
		})
		if !(sum > 0) {
			b.Fatal("no time passed")
		}
	}
}
