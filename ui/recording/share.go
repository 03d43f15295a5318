package recording

import (
	"sync"

	"mockbench/engine"
	"mockbench/ui"
)

// keptEvictions bounds the evictions kept for a reader that does not look.
const keptEvictions = 1 << 14

// Share lets two readers look at one worker: a snapshot tells evictions once, and both are to see all of them.
func Share(w ui.Worker) (a, b ui.Worker) {
	s := &shared{missed: make([][2][]int32, w.Ranks())}
	return &reader{w, s, 0}, &reader{w, s, 1}
}

// shared is the evictions of each rank that each reader has not seen.
type shared struct {
	mu     sync.Mutex
	missed [][2][]int32
}

type reader struct {
	ui.Worker
	shared *shared
	me     int
}

// Inspect adds the evictions that the other reader was told.
func (r *reader) Inspect(rank int, s *engine.Snapshot) error {
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	if err := r.Worker.Inspect(rank, s); err != nil {
		return err
	}
	missed := &r.shared.missed[rank]
	other := append(missed[1-r.me], s.Evictions...)
	missed[1-r.me] = other[max(len(other)-keptEvictions, 0):]
	s.Evictions = append(s.Evictions, missed[r.me]...)
	missed[r.me] = missed[r.me][:0]
	return nil
}
