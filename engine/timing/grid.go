package timing

import (
	"fmt"
	"math"

	"mockbench/engine"
)

// Table holds measured pass times in milliseconds. The names of the arrays in files are in brackets.
type Table struct {
	PrefillTokens []float64 // P new tokens of a pass, rising [prefill_isl]
	PrefillMS     []float64 // P times [prefill_ttft_ms]
	ActiveTokens  []float64 // K sums of contexts, rising [decode_active_kv_tokens]
	Context       []float64 // C mean contexts, rising [decode_context_length]
	DecodeMS      []float64 // K x C times, a row for each of ActiveTokens [decode_itl]
	DecodeShape   [2]int    // rows and columns of DecodeMS
}

// Names of the arrays in files and errors.
const (
	PrefillTokensArray = "prefill_isl"
	PrefillMSArray     = "prefill_ttft_ms"
	ActiveTokensArray  = "decode_active_kv_tokens"
	ContextArray       = "decode_context_length"
	DecodeMSArray      = "decode_itl"
)

// ArrayError is an array that cannot be used: which one and what is wrong with it.
type ArrayError struct {
	Array string
	Kind  engine.Kind // missing, type (of its numbers, or its dimensions), conflict (with another's length), range
	Text  string
}

func (e *ArrayError) Error() string { return e.Array + ": " + e.Text }

// Grid is a timing model that interpolates in a table, linearly for prefill and bilinearly for decode. Outside the table
// the outermost segments go on. Prefill takes no less than 0 ms, decode no less than 1 ms.
type Grid struct {
	prefill, active, context axis
	prefillMS, decodeMS      []float64
}

// NewGrid returns the model of a table, which must not change afterwards. The error is an *ArrayError.
func NewGrid(t Table) (*Grid, error) {
	if err := t.checkShapes(); err != nil {
		return nil, err
	}
	g := &Grid{prefillMS: t.PrefillMS, decodeMS: t.DecodeMS}
	for _, a := range []struct {
		name   string
		points []float64
		dst    *axis
	}{
		{PrefillTokensArray, t.PrefillTokens, &g.prefill},
		{ActiveTokensArray, t.ActiveTokens, &g.active},
		{ContextArray, t.Context, &g.context},
	} {
		if err := checkAxis(a.name, a.points); err != nil {
			return nil, err
		}
		*a.dst = newAxis(a.points)
	}
	return g, nil
}

func (t *Table) checkShapes() error {
	if len(t.PrefillMS) != len(t.PrefillTokens) {
		return &ArrayError{PrefillMSArray, engine.KindConflict,
			fmt.Sprintf("got %d values, must be %d, one for each of %s", len(t.PrefillMS), len(t.PrefillTokens),
				PrefillTokensArray)}
	}
	rows, columns := len(t.ActiveTokens), len(t.Context)
	if t.DecodeShape != [2]int{rows, columns} || len(t.DecodeMS) != rows*columns {
		return &ArrayError{DecodeMSArray, engine.KindConflict,
			fmt.Sprintf("got %d x %d values, must be %d x %d, a row for each of %s and a column for each of %s",
				t.DecodeShape[0], t.DecodeShape[1], rows, columns, ActiveTokensArray, ContextArray)}
	}
	return nil
}

func checkAxis(name string, points []float64) error {
	if len(points) < 2 {
		return &ArrayError{name, engine.KindRange, fmt.Sprintf("got %d values, must be at least 2", len(points))}
	}
	for i := 1; i < len(points); i++ {
		if !(points[i] > points[i-1]) {
			return &ArrayError{name, engine.KindRange,
				fmt.Sprintf("must rise from value to value, got %v after %v at index %d", points[i], points[i-1], i)}
		}
	}
	return nil
}

// Prefill implements Model.
func (g *Grid) Prefill(requests, meanISL, meanPrefix int) float64 {
	tokens := requests * max(meanISL-meanPrefix, 0)
	if tokens == 0 {
		return 0
	}
	x := float64(tokens)
	i := g.prefill.segment(x)
	p := g.prefill.points
	return atLeast(0, line(x, p[i], p[i+1], g.prefillMS[i], g.prefillMS[i+1]))
}

// Decode implements Model.
func (g *Grid) Decode(requests, activeTokens, meanContext, _ int) float64 {
	if requests == 0 {
		return 0
	}
	x, y := float64(activeTokens), float64(meanContext)
	i, j := g.active.segment(x), g.context.segment(y)
	a, c := g.active.points, g.context.points
	row, columns := i*len(c)+j, len(c)
	v := g.decodeMS
	near := line(x, a[i], a[i+1], v[row], v[row+columns])
	far := line(x, a[i], a[i+1], v[row+1], v[row+columns+1])
	return atLeast(1, line(y, c[j], c[j+1], near, far))
}

// line is the value at x of the line through two points.
func line(x, x0, x1, y0, y1 float64) float64 {
	return y0 + float64((y1-y0)/(x1-x0)*(x-x0))
}

// longestMS ends what a steep table makes of a huge pass: about thirty years, so that clocks stay finite.
const longestMS = 1e12

// atLeast bounds a time from below, and keeps it a number.
func atLeast(low, ms float64) float64 {
	if !(ms > low) {
		return low
	}
	return min(ms, longestMS)
}

// axis are rising points with a way to the segment of a value that takes the same time however many there are.
type axis struct {
	points []float64
	first  []int32 // for each of the equal parts of the range: the last point at or below its start
	scale  float64 // parts in a unit; 0: the range cannot be divided
}

func newAxis(points []float64) axis {
	parts := 4 * len(points)
	low := points[0]
	a := axis{points: points, first: make([]int32, parts+1), scale: float64(parts) / (points[len(points)-1] - low)}
	if !(a.scale > 0) || math.IsInf(a.scale, 0) {
		a.scale = 0
	}
	i := 0
	for part := range a.first {
		for a.scale > 0 && i < len(points)-2 && (points[i+1]-low)*a.scale <= float64(part) {
			i++
		}
		a.first[part] = int32(i)
	}
	return a
}

// segment returns the largest i with points[i] <= x that has a point after it, 0 below all points.
func (a *axis) segment(x float64) int {
	last := len(a.points) - 2
	switch {
	case x >= a.points[last]:
		return last
	case !(x >= a.points[0]):
		return 0
	}
	low, high := 0, last // points[low] <= x < points[high]
	if a.scale > 0 {
		part := min(int((x-a.points[0])*a.scale), len(a.first)-2)
		low = int(a.first[part])
		high = min(int(a.first[part+1])+1, last)
		for a.points[low] > x { // a point so near that the product does not tell it from x
			low--
		}
	}
	for high-low > 1 {
		if middle := (low + high) / 2; a.points[middle] <= x {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
