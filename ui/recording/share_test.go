package recording

import (
	"slices"
	"testing"

	"mockbench/engine"
	"mockbench/ui"
)

// evicting is a worker that evicts one more block each time somebody looks.
type evicting struct {
	ui.Worker
	next int32
}

func (e *evicting) Ranks() int { return 1 }

func (e *evicting) Inspect(_ int, s *engine.Snapshot) error {
	s.Evictions = append(s.Evictions[:0], e.next)
	e.next++
	return nil
}

func TestBothReadersSeeAllEvictions(t *testing.T) {
	a, b := Share(&evicting{})
	seen := map[ui.Worker][]int32{}
	var s engine.Snapshot
	for _, r := range []ui.Worker{a, b, b, a, a, a, b} {
		if err := r.Inspect(0, &s); err != nil {
			t.Fatal(err)
		}
		seen[r] = append(seen[r], s.Evictions...)
	}
	if err := a.Inspect(0, &s); err != nil {
		t.Fatal(err)
	}
	seen[a] = append(seen[a], s.Evictions...)
	for r, want := range map[ui.Worker][]int32{a: {0, 1, 2, 3, 4, 5, 6, 7}, b: {0, 1, 2, 3, 4, 5, 6}} {
		slices.Sort(seen[r])
		if !slices.Equal(seen[r], want) {
			t.Errorf("seen %v, want %v", seen[r], want)
		}
	}
}
