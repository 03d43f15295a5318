package pool

// State is what a unit holds.
type State uint8

const (
	Empty  State = iota
	Active       // private, or referenced once
	Shared       // referenced more than once
	Idle         // cached and unreferenced
)

// Info is everything known of a unit.
type Info struct {
	State    State
	Cached   bool
	Hash     uint64 // if Cached
	Parent   uint64 // hash of the block before it, if Cached and Position > 0
	Position int    // in its sequence, if Cached
	Refs     int
	Hits     int     // times it was reused since it was taken
	Since    float64 // time of the last change of state
}

// State returns what a unit holds.
func (p *Pool) State(u int32) State {
	if int(u) >= p.used {
		return Empty
	}
	switch t := p.at(u); {
	case t.refs > 1:
		return Shared
	case t.refs == 1:
		return Active
	case t.newer != none:
		return Idle
	}
	return Empty
}

// Info returns everything known of a unit.
func (p *Pool) Info(u int32) Info {
	if int(u) >= len(p.notes) {
		return Info{}
	}
	t, n := p.at(u), &p.notes[u]
	i := Info{State: p.State(u), Refs: int(t.refs), Hits: int(t.hits), Since: n.since}
	if t.newer != none {
		i.Cached, i.Hash, i.Parent, i.Position = true, t.hash, n.parent, int(n.position)
	}
	return i
}

// TakeEvicted appends the units evicted since the last call to dst, oldest first; only the newest 1024 are kept.
func (p *Pool) TakeEvicted(dst []int32) []int32 { return p.evicted.take(dst) }

// recent keeps the newest units of a stream.
type recent struct {
	ring  [1024]int32
	total int // units added
	taken int
}

func (r *recent) add(u int32) {
	r.ring[r.total%len(r.ring)] = u
	r.total++
}

func (r *recent) take(dst []int32) []int32 {
	for i := max(r.taken, r.total-len(r.ring)); i < r.total; i++ {
		dst = append(dst, r.ring[i%len(r.ring)])
	}
	r.taken = r.total
	return dst
}
