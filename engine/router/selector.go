package router

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Errors of a selection without result.
var (
	ErrNoWorker      = errors.New("no worker is available for the request")
	ErrPinnedOutside = errors.New("the pinned worker is not in the allowed set")
)

// Constraints narrow the choice of ranks for one request. The zero value allows all.
type Constraints struct {
	Allowed   []int              // workers; nil allows all
	Pinned    *[2]int            // worker and rank
	Required  []string           // taints a worker must carry
	Preferred map[string]float32 // weights of taints that make a worker cheaper, or dearer if negative
}

// Selector chooses among ranks by cost. It is not safe for concurrent use.
type Selector struct {
	Model     Model
	BlockSize int
	Decode    bool // places on decode workers
	random    rng
}

// NewSelector returns a selector whose draws follow seed.
func NewSelector(m Model, blockSize int, seed uint64) *Selector {
	return &Selector{Model: m, BlockSize: blockSize, random: rng(seed)}
}

// Select scores the eligible ranks, which must be in ascending order of worker and rank, appends them to dst and
// returns the index of the choice in the list. A pinned request costs no draw.
func (s *Selector) Select(tokens int, ranks []Rank, c Constraints, dst []Candidate) ([]Candidate, int, error) {
	if c.Pinned != nil && c.Allowed != nil && !slices.Contains(c.Allowed, c.Pinned[0]) {
		return dst, 0, ErrPinnedOutside
	}
	p := prompt{tokens: tokens, blockSize: s.BlockSize, decode: s.Decode, minPrefill: math.MaxInt}
	for _, r := range ranks {
		if c.admits(r) {
			p.minPrefill = min(p.minPrefill, prefillOf(r))
		}
	}
	start := len(dst)
	for _, r := range ranks {
		if !c.admits(r) {
			continue
		}
		candidate := s.Model.score(p, r)
		candidate.Cost *= c.multiplier(r)
		if math.IsNaN(candidate.Cost) || math.IsInf(candidate.Cost, 0) {
			return dst, 0, fmt.Errorf("router: the cost of worker %d rank %d is not finite", r.Worker, r.Rank)
		}
		dst = append(dst, candidate)
	}
	switch {
	case len(dst) == start:
		return dst, 0, ErrNoWorker
	case c.Pinned != nil:
		return dst, start, nil
	}
	return dst, start + s.pick(dst[start:]), nil
}

func prefillOf(r Rank) int {
	if r.Load == nil {
		return 0
	}
	return r.Load.PrefillTokens
}

func (c Constraints) admits(r Rank) bool {
	if c.Pinned != nil && *c.Pinned != [2]int{r.Worker, r.Rank} {
		return false
	}
	if c.Allowed != nil && !slices.Contains(c.Allowed, r.Worker) {
		return false
	}
	for _, t := range c.Required {
		if !slices.Contains(r.Taints, t) {
			return false
		}
	}
	return true
}

// multiplier returns the factor of the cost that follows from preferred taints. Weights are added in the order of
// their names, so that the sum is always the same.
func (c Constraints) multiplier(r Rank) float64 {
	if len(c.Preferred) == 0 {
		return 1
	}
	sum := 0.0
	for _, taint := range slices.Sorted(maps.Keys(c.Preferred)) {
		if slices.Contains(r.Taints, taint) {
			sum += float64(c.Preferred[taint])
		}
	}
	return math.Exp(-math.Tanh(sum))
}

// pick returns the index of the lowest cost, of equal ones any with the same chance; with a temperature, lower costs
// are only more likely.
func (s *Selector) pick(candidates []Candidate) int {
	if s.Model.Temperature > 0 {
		return s.sample(candidates)
	}
	best, ties := 0, uint64(1)
	for i := 1; i < len(candidates); i++ {
		switch cost := candidates[i].Cost; {
		case cost < candidates[best].Cost:
			best, ties = i, 1
		case cost == candidates[best].Cost:
			ties++
			if s.random.below(ties) == 0 {
				best = i
			}
		}
	}
	return best
}

// sample draws from the softmax of the negative costs, scaled to their range.
func (s *Selector) sample(candidates []Candidate) int {
	u := s.random.float()
	lo, hi := candidates[0].Cost, candidates[0].Cost
	for _, c := range candidates {
		lo, hi = min(lo, c.Cost), max(hi, c.Cost)
	}
	unit := 1.0
	if math.IsInf(hi-lo, 0) {
		unit = max(math.Abs(lo), math.Abs(hi))
	}
	weight := func(cost float64) float64 {
		if lo == hi {
			return 1 / float64(len(candidates))
		}
		scale := -1 / ((hi/unit - lo/unit) * s.Model.Temperature)
		return math.Exp(cost/unit*scale - lo/unit*scale)
	}
	sum := 0.0
	for _, c := range candidates {
		sum += weight(c.Cost)
	}
	if lo == hi {
		sum = 1 // the chances are normalised already
	}
	reached := 0.0
	for i, c := range candidates {
		reached += weight(c.Cost) / sum
		if u <= reached {
			return i
		}
	}
	return len(candidates) - 1
}
