package trace

import "mockbench/engine/random"

// planSeed is the seed of planned outputs.
const planSeed = 0xD37A0A7E5EED

// Planner makes the planned outputs of a trace, each when it is asked for.
type Planner struct{ random *random.ChaCha12 }

// NewPlanner returns a planner.
func NewPlanner() *Planner { return &Planner{random.New(planSeed)} }

// Append appends the output of a turn.
func (p *Planner) Append(dst []uint32, u *Turn) []uint32 {
	if u.Extra != nil && u.Extra.Tokens != nil {
		return append(dst, u.Extra.Tokens...)
	}
	from := len(dst)
	dst = append(dst, make([]uint32, u.Output)...)
	p.Read(dst[from:], u.Plan)
	return dst
}

// Read fills dst with planned tokens from a position of the plan on.
func (p *Planner) Read(dst []uint32, at uint64) {
	p.random.Seek(at)
	p.random.Read(dst)
}
