package replay

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mockbench/engine"
	"mockbench/engine/report"
)

// counts is an observer that counts what it is told.
type counts struct {
	t                 *rapid.T
	fleet             []Observed
	submitted, output int
	passes            uint64
	last              engine.Time
}

func (c *counts) Begin(fleet []Observed) { c.fleet = fleet }

func (c *counts) Submitted(worker, rank int, r *engine.Request, now engine.Time) {
	if r.Label == "" || rank >= c.fleet[worker].Ranks {
		c.t.Fatalf("request %q at rank %d", r.Label, rank)
	}
	c.submitted++
}

func (c *counts) Pass(worker int, p *engine.Pass) {
	if p.End < c.last {
		c.t.Fatalf("a pass that ends at %v comes after one that ends at %v", p.End, c.last)
	}
	c.last = p.End
	c.passes++
	for i := range p.Outputs {
		if p.Outputs[i].HasToken {
			c.output++
		}
	}
	var s engine.Snapshot
	c.fleet[worker].Rank(p.Rank).Inspect(&s)
	if len(s.Blocks) != c.fleet[worker].Engine.NumGPUBlocks {
		c.t.Fatalf("%d blocks", len(s.Blocks))
	}
}

// The requests of a run that is observed fare as in one that is not, and the observer sees all of it.
func TestObserverChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{MaxTime: -1, Workers: randomFleet(t), Router: randomRouter(t), Records: true, Bounds: report.Bounds{TTFT: 100},
			Trace: randomTrace(t, rapid.SampledFrom([]int{5, 16, 64}).Draw(t, "trace block"))}
		want, stuck := Run(o)
		c := &counts{t: t}
		o.Observer = c
		got, err := Run(o)
		if (err != nil) != (stuck != nil) {
			t.Fatalf("observed: %v, otherwise: %v", err, stuck)
		}
		if err != nil {
			return
		}
		one, other := outcomeOf(t, want), outcomeOf(t, got)
		one.Summary, other.Summary = "", "" // workers that run apart are summed up in another order
		if d := cmp.Diff(one, other); d != "" {
			t.Fatal(d)
		}
		tokens := 0
		for _, r := range got.Offline.Records() {
			for _, f := range r {
				if f.Key == "output_length" {
					tokens += f.Value.(int)
				}
			}
		}
		if len(c.fleet) != o.Workers.Workers || c.submitted != len(o.Trace.Sessions) {
			t.Fatalf("%d workers, %d requests seen", len(c.fleet), c.submitted)
		}
		if tokens > 0 && c.output != tokens {
			t.Fatalf("%d output tokens seen, want %d", c.output, tokens)
		}
	})
}
