package ui

import (
	"fmt"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/ui/feed"
	"mockbench/ui/grid"
)

// line draws a life at a worker in a number of columns.
func line(x *life, worker string, columns int, now engine.Time) string {
	g := grid.New(columns, 1)
	end := x.last().At
	if !x.over() {
		end = now
	}
	drawStretches(g.Area(), x.stretches(now), worker, x.moments[0].At, end)
	return strings.TrimRight(g.String(), " \n")
}

func TestLife(t *testing.T) {
	var l lives
	w := &worker{name: "w0"}
	l.add(w, []feed.Mark{
		{Label: "r", Kind: feed.Queued, At: 0, Tokens: 900}, {Label: "r", Kind: feed.Admitted, At: 100, Tokens: 64},
		{Label: "r", Kind: feed.Chunk, At: 100, Until: 200, Tokens: 500}, {Label: "r", Kind: feed.Chunk, At: 300, Until: 400, Tokens: 336},
		{Label: "r", Kind: feed.FirstToken, At: 400}, {Label: "r", Kind: feed.Preempted, At: 600, Tokens: 20},
	})
	x := l.of(w, "r")
	if got, want := line(x, "w0", 8, 800), ".P-Pddxx"; got != want {
		t.Errorf("while it runs: %q, want %q", got, want)
	}
	l.add(w, []feed.Mark{{Label: "r", Kind: feed.Admitted, At: 700, Tokens: 900}, {Label: "r", Kind: feed.Done, At: 1000, Tokens: 50}})
	if got, want := line(x, "w0", 10, 5000), ".P-Pddxddd"; got != want {
		t.Errorf("in the end: %q, want %q", got, want)
	}
	want := lifeSum{worker: "w0", prompt: 900, cached: 64, chunks: 2, tokens: 50, preempted: 1, queue: 100, ttft: 400, total: 1000, transferred: -1, outcome: "done"}
	if got := x.sum(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A request of prefill and decode workers has one life at two workers.
func TestLifeAtTwoWorkers(t *testing.T) {
	var l lives
	p, d := &worker{name: "p0"}, &worker{name: "d0"}
	l.add(d, []feed.Mark{{Label: "r", Kind: feed.Queued, At: 50}}) // it is fetched first
	l.add(p, []feed.Mark{{Label: "r", Kind: feed.Queued, At: 0}, {Label: "r", Kind: feed.Admitted, At: 100},
		{Label: "r", Kind: feed.Chunk, At: 100, Until: 300}, {Label: "r", Kind: feed.Held, At: 300}, {Label: "r", Kind: feed.FirstToken, At: 300}, {Label: "r", Kind: feed.Done, At: 300}})
	if l.of(p, "r").over() {
		t.Error("the prefill worker's part is taken for the end")
	}
	l.add(d, []feed.Mark{{Label: "r", Kind: feed.Admitted, At: 500}, {Label: "r", Kind: feed.FirstToken, At: 600}, {Label: "r", Kind: feed.Done, At: 1000, Tokens: 9}})
	x := l.of(d, "r")
	if a, b := line(x, "p0", 10, 0), line(x, "d0", 10, 0); a != ".PP>>" || b != "     -dddd" {
		t.Errorf("time lines %q and %q", a, b)
	}
	if s := x.sum(); s.outcome != "done" || s.worker != "d0" || s.transferred != 200 || s.ttft != 600 || len(l.ended()) != 1 {
		t.Errorf("%+v", s)
	}
}

// Old lives and the middle of long ones are given up; fleets of a comparison are told apart.
func TestLivesAreBounded(t *testing.T) {
	var l lives
	a, b := &worker{name: "a:w0"}, &worker{name: "b:w0"}
	for i := range 3 * keptLives {
		l.add(a, []feed.Mark{{Label: fmt.Sprint(i), Kind: feed.Queued, At: engine.Time(i)}})
	}
	if n := len(l.byKey); n != keptLives || l.of(a, "0") != nil || l.of(a, fmt.Sprint(3*keptLives-1)) == nil {
		t.Errorf("%d lives are kept", n)
	}
	for i := range 1000 {
		l.add(b, []feed.Mark{{Label: "x", Kind: feed.Chunk, At: engine.Time(i), Until: engine.Time(i + 1)}})
	}
	if x := l.of(b, "x"); len(x.moments) != keptMoments || x.moments[0].At != 0 || x.last().At != 999 || l.of(a, "x") != nil {
		t.Errorf("%d moments from %v to %v", len(x.moments), x.moments[0].At, x.last().At)
	}
}

// Who waited is known for every moment, not only for now.
func TestWhoWaited(t *testing.T) {
	var l lives
	w := &worker{name: "w0"}
	l.add(w, []feed.Mark{
		{Label: "a", Kind: feed.Queued, At: 0, Tokens: 7}, {Label: "b", Kind: feed.Queued, At: 10, Tokens: 8}, {Label: "a", Kind: feed.Admitted, At: 20},
		{Label: "c", Kind: feed.Queued, At: 25, Rank: 1}, {Label: "a", Kind: feed.Preempted, At: 40}, {Label: "b", Kind: feed.Admitted, At: 50},
		{Label: "b", Kind: feed.Done, At: 90},
	})
	for at, want := range map[engine.Time]string{5: "[{a false 0 7}]", 15: "[{a false 0 7} {b false 10 8}]", 30: "[{b false 10 8}]",
		45: "[{a true 40 7} {b false 10 8}]", 95: "[{a true 40 7}]"} {
		if got := fmt.Sprint(l.waiting("w0", 0, at)); got != want {
			t.Errorf("at %v: %s, want %s", at, got, want)
		}
	}
	if got := l.waiting("w0", 1, 30); len(got) != 1 || got[0].label != "c" {
		t.Errorf("at rank 1: %v", got)
	}
}
