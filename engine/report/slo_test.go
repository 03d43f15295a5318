package report

import (
	"testing"

	"mockbench/engine"
)

// finishOne lets a request arrive at a moment and end with two tokens.
func finishOne(c *Collector, arrival, first, last engine.Time) {
	r := &engine.Request{Arrival: arrival}
	out := func(at engine.Time, completed bool) {
		c.workers[0].Pass(&engine.Pass{Start: at - 1, End: at, Outputs: []engine.Output{{Request: r, HasToken: true, Completed: completed}}})
	}
	out(first, false)
	out(last, true)
}

func TestAttained(t *testing.T) {
	c := NewCollector(Options{Workers: []string{"w0"}})
	finishOne(c, 0, 100, 120)     // TTFT 100, TPOT 20, E2E 120
	finishOne(c, 0, 300, 310)     // 300, 10, 310
	finishOne(c, 900, 1000, 1040) // 100, 40, 140
	for _, x := range []struct {
		limits    Limits
		now       engine.Time
		kept, all int
	}{
		{Limits{}, 2000, 3, 3}, {Limits{TTFT: 200}, 2000, 2, 3}, {Limits{TTFT: 200, ITL: 25}, 2000, 1, 3},
		{Limits{E2E: 130}, 2000, 1, 3}, {Limits{TTFT: 200}, 30500, 1, 1}, {Limits{TTFT: 200}, 60000, 0, 0},
	} {
		if kept, all := c.Attained(x.limits, x.now); kept != x.kept || all != x.all {
			t.Errorf("%+v at %v: %d of %d, want %d of %d", x.limits, x.now, kept, all, x.kept, x.all)
		}
	}
}

func TestAttainedIsBounded(t *testing.T) {
	c := NewCollector(Options{Workers: []string{"w0"}})
	for i := range 3000 {
		at := engine.Time(i)
		finishOne(c, at, at+1, at+2)
	}
	if kept, all := c.Attained(Limits{TTFT: 10}, 3000); kept != keptEnded || all != keptEnded {
		t.Errorf("%d of %d", kept, all)
	}
}
