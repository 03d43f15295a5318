package ais

import (
	"math"
	"testing"
)

// product is a speed of light that grows with the product of the coordinates.
func product(a, b, c float64) float64 { return a * b * c }

func rowsOf(points ...[4]float64) []row {
	c := newCollector[int]()
	for _, p := range points {
		c.add(0, p[3], int(p[0]), int(p[1]), int(p[2]))
	}
	var sorted []row
	c.groups(func(_ int, rows []row) { sorted = rows })
	return sorted
}

func TestGrid(t *testing.T) {
	g := newGrid(pointsOf(rowsOf([4]float64{1, 1, 1, 10}, [4]float64{1, 1, 3, 30}, [4]float64{1, 3, 1, 90}, [4]float64{1, 3, 3, 160})), 1, product)
	for _, c := range []struct {
		a, b, c int
		want    float64
		from    Source
	}{
		{1, 1, 3, 30, Measured},
		{1, 1, 2, 20, Interpolated},
		{1, 2, 1, math.Pow((math.Sqrt(10)+math.Sqrt(90))/2, 2), Interpolated}, // the root is linear along this axis
	} {
		if got := g.at(c.a, c.b, c.c); math.Abs(got.ms-c.want) > 1e-12 || got.from != c.from {
			t.Errorf("%d %d %d: got %v, want %v %v", c.a, c.b, c.c, got, c.want, c.from)
		}
	}
	if got := g.at(2, 1, 1); got.from != Estimated || got.ms <= 0 {
		t.Errorf("outside: got %v", got)
	}
}

func TestGridWithAHole(t *testing.T) {
	g := newGrid(pointsOf(rowsOf([4]float64{1, 1, 1, 10}, [4]float64{1, 1, 2, 20}, [4]float64{1, 3, 1, 90})), -1, product)
	// Only the side of b = 1 reaches c = 2: its value moves to b = 2 at the same utilisation.
	if got := g.at(1, 2, 2); got.ms != 40 || got.from != Estimated {
		t.Errorf("got %v", got)
	}
}

func TestFirstRowCounts(t *testing.T) {
	rows := rowsOf([4]float64{1, 1, 1, 10}, [4]float64{1, 1, 1, 99})
	if len(rows) != 1 || rows[0].ms != 10 {
		t.Errorf("got %v", rows)
	}
}

func TestCurve(t *testing.T) {
	c := curveOf(rowsOf([4]float64{1, 0, 0, 2}, [4]float64{2, 0, 0, 3}, [4]float64{4, 0, 0, 5}, [4]float64{8, 0, 0, 16}), 0)
	for x, want := range map[int]float64{2: 3, 3: 4, 6: 10.5, 16: 32} {
		if got := c.scaled(x, linear); got.ms != want {
			t.Errorf("scaled %d: got %v, want %v", x, got, want)
		}
	}
	if got := c.held(16, linear); math.Abs(got.ms-16/(2.0/3)) > 1e-12 { // utilisations 2/3, 4/5, 1/2: the median is 2/3
		t.Errorf("held: got %v", got)
	}
}

func TestLaneOrder(t *testing.T) {
	sizes := []laneSize{{"own", 9, 9}, {"triton", 1, 5}, {"fa3", 2, 1}, {"other", 10, 1}}
	got := order(LanePolicy{Known: true, Pinned: "flashinfer"}, append([]laneSize(nil), sizes...))
	if want := "flashinfer fa3 triton default other own"; joined(got) != want {
		t.Errorf("got %s, want %s", joined(got), want)
	}
	if got, want := joined(order(LanePolicy{}, sizes)), "default own triton fa3 other"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
