package ui

import (
	"mockbench/engine"
	"mockbench/ui/widget"
)

// pool is the latest snapshot of one rank with the evictions of the last second laid over it.
type pool struct {
	worker *worker
	rank   int
	engine.Snapshot
	taken  bool                    // there is a snapshot
	states []engine.BlockState     // of each block, with evictions
	counts [widget.Evicted + 1]int // by the state they are in now, and the evictions beside that
	until  []uint64                // frame at which an eviction ceases to be shown, by block
	fading bool                    // evictions are shown
}

// since returns the ms that have passed at the selected rank, whose steps go ahead of the clock.
func (m *Model) since(t engine.Time) float64 {
	return max(float64(max(m.clock, m.pool.Time)-t), 0)
}

// take lays a new snapshot over the evictions that are still shown, and leaves the old one in s. The evictions of the
// first snapshot may be old: they are not shown.
func (p *pool) take(s *engine.Snapshot, frame, fade uint64) {
	p.Snapshot, *s = *s, p.Snapshot
	if len(p.until) != len(p.Blocks) {
		p.until = make([]uint64, len(p.Blocks))
	}
	for _, b := range p.Evictions {
		if p.taken && b >= 0 && int(b) < len(p.until) {
			p.until[b] = frame + fade
		}
	}
	p.taken = true
	p.overlay(frame)
}

// overlay computes the states to show at a frame.
func (p *pool) overlay(frame uint64) {
	p.states = append(p.states[:0], p.Blocks...)
	p.counts = [widget.Evicted + 1]int{}
	copy(p.counts[:], p.Counts[:])
	p.fading = false
	for b, until := range p.until {
		if until > frame {
			p.counts[widget.Evicted]++
			p.states[b] = widget.Evicted
			p.fading = true
		}
	}
}
