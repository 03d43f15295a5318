package goldentest

import (
	"cmp"
	"encoding/binary"
	"slices"
	"testing"

	"mockbench/engine"
)

// Baseline is the workload whose counts are known of the reference: 5,000 requests with shared prefixes, by arrival.
func Baseline() []*engine.Request {
	var requests []*engine.Request
	var arrival engine.Time
	for i := range uint64(5000) {
		x := Mix(99, i)
		arrival += 0.5 * engine.Time(Mix(77, i)%40)
		r := &engine.Request{Arrival: arrival, MaxOutput: int(16 + (x>>32)%240)}
		binary.BigEndian.PutUint64(r.ID[8:], i+1)
		r.Prompt = Prompt([][3]uint64{{1000 + (x>>8)%40, 0, x % 32 * 16}, {5000 + i, 0, 32 + (x>>16)%992}})
		requests = append(requests, r)
	}
	slices.SortStableFunc(requests, func(a, b *engine.Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return requests
}

// Counts are the exact results of a workload.
type Counts struct {
	Passes, Events, Preemptions, Outputs int
	EndMS                                float64
}

// Drain runs a workload on a group of one rank and counts.
func Drain(b testing.TB, g *engine.Group, requests []*engine.Request) (c Counts) {
	var now engine.Time
	for {
		for {
			d, ok := g.Deadline()
			if !ok || d > now {
				break
			}
			for _, p := range g.Advance(now) {
				if p != nil {
					c.Events += len(p.Events.List)
				}
			}
		}
		for len(requests) > 0 && requests[0].Arrival <= now {
			if err := g.Submit(0, requests[0], now); err != nil {
				b.Fatal(err)
			}
			requests = requests[1:]
		}
		if !g.Ready() {
			d, internal := g.Deadline()
			switch {
			case len(requests) > 0 && (!internal || requests[0].Arrival < d):
				now = requests[0].Arrival
			case internal:
				now = d
			default:
				c.EndMS = float64(now)
				return c
			}
			continue
		}
		_, now = g.Begin(now)
		p := g.Complete()[0]
		c.Passes++
		c.Events += len(p.Events.List)
		c.Preemptions += len(p.Preemptions)
		for i := range p.Outputs {
			if p.Outputs[i].HasToken {
				c.Outputs++
			}
		}
	}
}
