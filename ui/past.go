package ui

import (
	"mockbench/engine"
	"mockbench/ui/theme"
	"mockbench/ui/widget"
)

// keptShapes is how many earlier snapshots are kept.
const keptShapes = 64

// blockShape is the blocks of the selected rank at one moment.
type blockShape struct {
	at     engine.Time
	blocks []engine.BlockState
}

// past is the latest moments of the map, so that it can be seen as it was at a pass that is scrubbed to.
type past struct{ shapes ring[blockShape] }

// keep takes over a snapshot.
func (p *past) keep(s *engine.Snapshot) {
	p.shapes.size = keptShapes
	if p.shapes.len() > 0 && p.shapes.last(0).at == s.Time {
		return
	}
	x := p.shapes.push()
	x.at, x.blocks = s.Time, append(x.blocks[:0], s.Blocks...)
}

// before returns the newest shape that is not later than a time, nil if none is kept.
func (p *past) before(t engine.Time) *blockShape {
	for i := range p.shapes.len() {
		if x := p.shapes.last(i); x.at <= t {
			return x
		}
	}
	return nil
}

// scrubbed returns the map as it was at the pass that Batch is scrubbed to, nil if that is the present or not known.
func (m *Model) scrubbed() *blockShape {
	if m.batch.back == 0 || !m.pool.taken {
		return nil
	}
	if f := m.lastPass(m.batch.back); f != nil {
		return m.past.before(f.End)
	}
	return nil
}

// drawBlocks draws the map, as it was at the pass that Batch is scrubbed to.
func (m *Model) drawBlocks() {
	x := m.scrubbed()
	if x == nil {
		m.blocks.draw(m)
		return
	}
	now, info := m.pool, m.blocks.info
	m.pool.Snapshot.Blocks, m.pool.states, m.pool.Time = x.blocks, x.blocks, x.at
	m.pool.counts = [widget.Evicted + 1]int{}
	for _, s := range x.blocks {
		m.pool.counts[s]++
	}
	m.blocks.info = blockInfo{}
	m.blocks.draw(m)
	box := m.area(boxMap)
	box.Right(box.W()-2, 0, " as at "+clockText(x.at)+" (esc: now) ", theme.Paused)
	m.pool, m.blocks.info = now, info
}
