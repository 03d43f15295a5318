package hostcache

import (
	"math"
	"slices"
)

// share moves the transfers of several ranks at the same time. In each direction a transfer gets an equal part of its
// rank's link and of the pool's limit, whichever is less; what one does not use is not given to others.
type share struct {
	limit [2]float64 // bytes a millisecond; 0 is unlimited
	jobs  []*Transfer
}

func (s *share) submit(t *Transfer) {
	t.Done = math.Inf(1)
	s.jobs = append(s.jobs, t)
}

func (s *share) cancel(t *Transfer) {
	s.jobs = slices.DeleteFunc(s.jobs, func(j *Transfer) bool { return j == t })
}

// rate returns the speed of a transfer whose bytes move now.
func (s *share) rate(t *Transfer, now float64) float64 {
	all, own := 0, 0
	for _, j := range s.jobs {
		if j.Load == t.Load && j.ready <= now {
			all++
			if j.port == t.port {
				own++
			}
		}
	}
	d := t.direction()
	return min(part(t.port.link[d], own), part(s.limit[d], all))
}

func part(rate float64, n int) float64 {
	if rate == 0 {
		return math.Inf(1)
	}
	return rate / float64(n)
}

// event returns when a transfer starts to move or, if it does, when it is complete.
func (s *share) event(t *Transfer, now float64) float64 {
	if t.ready > now {
		return t.ready
	}
	if rate := s.rate(t, now); t.left > 0 && !math.IsInf(rate, 1) {
		return now + t.left/rate
	}
	return now
}

func (s *share) next(now float64) (at float64, ok bool) {
	at = math.Inf(1)
	for _, t := range s.jobs {
		at, ok = min(at, s.event(t, now)), true
	}
	return at, ok
}

func (s *share) advance(now, to float64) (done []*Transfer) {
	for {
		at, ok := s.next(now)
		if !ok || at > to {
			s.move(now, to)
			return done
		}
		var complete []*Transfer
		for _, t := range s.jobs {
			if t.ready <= now && s.event(t, now) == at {
				complete = append(complete, t)
			}
		}
		s.move(now, at)
		now = at
		sortCompletions(complete)
		for _, t := range complete {
			t.left, t.Done = 0, at
			s.cancel(t)
		}
		done = append(done, complete...)
	}
}

// move takes the bytes of an interval without events off the transfers.
func (s *share) move(from, to float64) {
	if to <= from {
		return
	}
	rates := make([]float64, len(s.jobs))
	for i, t := range s.jobs {
		if t.ready <= from {
			rates[i] = s.rate(t, from)
		}
	}
	for i, t := range s.jobs {
		t.left = max(0, t.left-rates[i]*(to-from))
	}
}
