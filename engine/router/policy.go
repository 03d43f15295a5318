package router

import "slices"

// Policy names a way to place requests.
type Policy string

const (
	KV          Policy = "kv"           // lowest cost: cached blocks, prefill backlog, active blocks
	RoundRobin  Policy = "round-robin"  // workers in turn, and the ranks of each in turn
	Random      Policy = "random"       // any rank
	TwoChoices  Policy = "power-of-two" // of two random ranks the one with fewer requests
	LeastLoaded Policy = "least-loaded" // fewest requests
)

// Policies lists all policies.
func Policies() []Policy { return []Policy{KV, RoundRobin, Random, TwoChoices, LeastLoaded} }

// What a Decision gives as its reason.
const (
	WhyOnly      = "only"       // there was no other rank
	WhyOverlap   = "overlap"    // a rank with no more load lost because it holds less of the prompt
	WhyLeastLoad = "least load" // lowest cost or fewest requests
	WhyTie       = "tie"        // drawn among equals
	WhyChance    = "chance"     // drawn
	WhyTurn      = "turn"       // round robin
)

// choose returns the index of a candidate, which are the open ranks in ascending order, and the reason.
func (r *Router) choose(candidates []Candidate, cheapest int) (choice int, why string) {
	if len(candidates) == 1 {
		return 0, WhyOnly
	}
	switch r.o.Policy {
	case RoundRobin:
		choice, why = r.turn(candidates), WhyTurn
	case Random:
		choice, why = int(r.random.below(uint64(len(candidates)))), WhyChance
	case TwoChoices:
		choice, why = r.better(candidates), WhyLeastLoad
	case LeastLoaded:
		choice, why = r.idlest(candidates)
	default:
		choice, why = cheapest, explain(candidates, cheapest)
	}
	return choice, why
}

// explain says why a candidate won on cost.
func explain(candidates []Candidate, choice int) string {
	won, tie := candidates[choice], false
	for i, c := range candidates {
		switch {
		case i == choice:
		case c.Cost < won.Cost:
			return WhyChance
		case c.Cost == won.Cost:
			tie = true
		case c.loadCost <= won.loadCost:
			return WhyOverlap
		}
	}
	if tie {
		return WhyTie
	}
	return WhyLeastLoad
}

// turn gives every worker its turn, and every rank of a worker its own.
func (r *Router) turn(candidates []Candidate) int {
	first := slices.IndexFunc(candidates, func(c Candidate) bool { return c.Worker >= r.nextWorker })
	first = max(first, 0) // behind the last worker comes the first
	worker, open := candidates[first].Worker, 1
	for first+open < len(candidates) && candidates[first+open].Worker == worker {
		open++
	}
	rank := r.nextRank[worker] % open
	r.nextWorker, r.nextRank[worker] = worker+1, rank+1
	return first + rank
}

// better compares two random candidates.
func (r *Router) better(candidates []Candidate) int {
	n := uint64(len(candidates))
	i := int(r.random.below(n))
	j := (i + 1 + int(r.random.below(n-1))) % int(n)
	if r.busy(candidates[i]) <= r.busy(candidates[j]) {
		return i
	}
	return j
}

func (r *Router) idlest(candidates []Candidate) (choice int, why string) {
	ties := uint64(1)
	for i := 1; i < len(candidates); i++ {
		switch load, best := r.busy(candidates[i]), r.busy(candidates[choice]); {
		case load < best:
			choice, ties = i, 1
		case load == best:
			ties++
			if r.random.below(ties) == 0 {
				choice = i
			}
		}
	}
	if ties > 1 {
		return choice, WhyTie
	}
	return choice, WhyLeastLoad
}

func (r *Router) busy(c Candidate) int { return r.books[c.Worker*r.o.Ranks+c.Rank].requests }
