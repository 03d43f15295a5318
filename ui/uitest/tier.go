package uitest

import (
	"math/rand/v2"

	"mockbench/engine"
)

// tier is the made-up host tier of a worker.
type tier struct {
	rng      *rand.Rand // of its own: other figures do not depend on whether there is a tier
	resident int
	next     int
	flying   []engine.Transfer
	lane     [2]engine.Time // when the last copy is complete, by direction
}

// AddHost gives the worker a host tier of n blocks.
func (w *Worker) AddHost(n int) {
	w.config.HostOffload = engine.DefaultHostOffload(n)
	w.config.HostOffload.LatencyMS = 0.1
	w.config.KVCacheBytesPerToken = 131072
	w.tier.rng = rand.New(rand.NewPCG(uint64(n), 5))
}

// pass returns what happens to copies in a pass: some end, some begin.
func (t *tier) pass(w *Worker, p *engine.Pass) (list []engine.Transfer) {
	if t.rng == nil {
		return nil
	}
	for len(t.flying) > 0 && t.flying[0].Done <= p.End {
		f := t.flying[0]
		t.flying = t.flying[1:]
		if f.Kind == engine.StoreStarted {
			t.resident += len(f.Blocks)
			f.Kind = engine.StoreDone
		} else {
			f.Kind = engine.LoadDone
		}
		list = append(list, f)
	}
	if room := w.config.HostOffload.NumHostBlocks; t.resident > room-64 {
		t.resident -= 40
		list = append(list, engine.Transfer{Kind: engine.HostEvicted, At: p.Start, Blocks: make([]uint64, 40)})
	}
	if t.rng.IntN(40) == 0 {
		list = append(list, engine.Transfer{Kind: engine.StoreRefused, At: p.Start, Blocks: make([]uint64, 3)})
	}
	for direction := range 2 {
		if t.rng.IntN(2+3*direction) > 0 {
			continue
		}
		n := 1 + t.rng.IntN(24)
		start := max(t.lane[direction], p.End+0.1)
		t.lane[direction] = start + engine.Time(float64(n*w.config.BlockSize*131072)/32e6)
		t.next++
		f := engine.Transfer{Kind: engine.StoreStarted, ID: t.next, At: p.End, NotBefore: p.End, Done: t.lane[direction], Blocks: make([]uint64, n)}
		if direction == 1 {
			f.Kind = engine.LoadStarted
			if len(p.Admissions) > 0 {
				p.Admissions[0].HostReused = p.Admissions[0].Reused / 3
			}
		}
		t.flying = append(t.flying, f)
		list = append(list, f)
	}
	return list
}

func (t *tier) inspect(w *Worker, s *engine.Snapshot) {
	s.Deferred, s.Host = s.Deferred[:0], engine.HostState{}
	if t.rng == nil {
		return
	}
	s.Host = engine.HostState{Capacity: w.config.HostOffload.NumHostBlocks, Resident: t.resident}
	for _, f := range t.flying {
		if f.Kind == engine.StoreStarted {
			s.Host.Pending += len(f.Blocks)
		} else {
			s.Host.Pinned += len(f.Blocks)
		}
	}
	for i, r := range w.waiting[:min(len(w.waiting), 3)] {
		phase := engine.PhaseDeferred
		if i%2 == 0 {
			phase = engine.PhaseLoading
		}
		s.Deferred = append(s.Deferred, engine.RequestState{Request: r, Phase: phase, Blocks: 7 + i, Since: r.Arrival})
	}
}
