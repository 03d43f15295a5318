package ui

import (
	"fmt"
	"strings"

	"mockbench/engine"
	"mockbench/ui/feed"
	"mockbench/ui/grid"
)

// peek is the load of one rank as a snapshot of a paused worker has it: what the pass under way has planned is in it,
// as it is on the map.
type peek struct {
	set  bool
	rank int
	load engine.Load
}

// arrest brings the figures of a worker that stands still to the moment of its snapshot.
func (m *Model) arrest() {
	if !m.paused || m.sel == nil || m.pool.worker != m.sel {
		return
	}
	m.sel.peek = peek{true, m.pool.rank, m.pool.Load}
	m.sel.refresh(m.clock)
}

// release lets the figures of all workers be those of their records again.
func (m *Model) release() {
	for _, w := range m.workers {
		w.peek = peek{}
	}
}

// tellStep says in a line what the step of a worker has run, if it has.
func (m *Model) tellStep() {
	w := m.stepping
	if w == nil || !m.paused || len(w.batch.Frames) == 0 {
		return
	}
	m.stepping = nil
	last := w.batch.Frames[len(w.batch.Frames)-1].End
	var parts []string
	for i := range w.batch.Frames {
		if f := &w.batch.Frames[i]; f.End == last {
			parts = append(parts, fmt.Sprintf("%s pass %s: %s", w.rankName(int(f.Rank)), number(f.Number), m.stepText(w, f)))
		}
	}
	m.say(strings.Join(parts, " | "))
	m.notice.stays = true
}

// stepText says who was admitted, who computed a part of a prompt, who lost its blocks, and what the rest did.
func (m *Model) stepText(w *worker, f *feed.Frame) string {
	var admitted, chunks, preempted []string
	items := w.batch.Items[f.FirstItem : f.FirstItem+f.Items]
	for i := range items {
		switch it := &items[i]; {
		case it.Prompt > 0 && it.Done < it.Length:
			chunks = append(chunks, fmt.Sprintf("%s (%d of %d)", grid.Clean(it.Label), it.Done, it.Length))
		case it.Fresh:
			admitted = append(admitted, grid.Clean(it.Label))
		case it.Prompt > 0:
			chunks = append(chunks, grid.Clean(it.Label)+" (last)")
		}
	}
	for i := range w.batch.Marks {
		if k := &w.batch.Marks[i]; k.Kind == feed.Preempted && k.At == f.Start && k.Rank == f.Rank {
			preempted = append(preempted, grid.Clean(k.Label))
		}
	}
	var parts []string
	for _, p := range []struct {
		verb  string
		names []string
	}{{"admitted", admitted}, {"chunked", chunks}, {m.lost().verb + "ed", preempted}} {
		if len(p.names) > 0 {
			parts = append(parts, p.verb+" "+some(p.names, 3))
		}
	}
	if f.Decodes > 0 {
		parts = append(parts, plural(f.Decodes, "decode"))
	}
	return strings.Join(append(parts, decimals(float64(f.RankEnd-f.Start), 1)+" ms"), ", ")
}

// some lists the first n names and says how many more there are.
func some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s +%d", strings.Join(names[:n], " "), len(names)-n)
}
