package trace

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/zeebo/blake3"
)

// stream is requests of one conversation, each of which goes on from the one before it.
type stream struct {
	list    []*wekaRequest
	from    *stream      // that the first one forks from, nil if it shares nothing
	parent  *wekaRequest // tail of from at that time
	overlap int          // blocks that it shares with that
	last    *wekaRequest // of those that it repeated whole, before forks were joined with it
	into    *stream      // that it was joined with
}

func (s *stream) tail() *wekaRequest { return s.list[len(s.list)-1] }

// seamGap and seamOverlap say which forks are taken for the same conversation after a gap, or after an edit.
const (
	seamGap     = 3600 // seconds
	seamOverlap = 0.5
)

// streams tells the conversations of a scope apart. A request goes on from the longest conversation that it repeats
// whole; otherwise it forks from the one with which it shares most. The first stream is the main one.
func streams(requests []*wekaRequest) []*stream {
	list := slices.Clone(requests)
	slices.SortStableFunc(list, func(a, b *wekaRequest) int { return cmp.Compare(a.start, b.start) })
	var all []*stream
	for _, r := range list {
		var longest, nearest *stream
		shared := 0
		for _, s := range all {
			last := s.tail()
			n := common(last.Hashes, r.Hashes)
			if n == len(last.Hashes) && last.Model == r.Model && last.end <= r.start+wekaSlack &&
				(longest == nil || n > len(longest.tail().Hashes)) {
				longest = s
			}
			if n > shared || n > 0 && n == shared && len(last.Hashes) > len(nearest.tail().Hashes) {
				nearest, shared = s, n
			}
		}
		switch {
		case longest != nil:
			longest.list = append(longest.list, r)
		case nearest != nil:
			all = append(all, &stream{list: []*wekaRequest{r}, from: nearest, parent: nearest.tail(), overlap: shared})
		default:
			all = append(all, &stream{list: []*wekaRequest{r}})
		}
	}
	return preamble(splice(all))
}

// splice joins forks with streams that never went on otherwise.
func splice(all []*stream) []*stream {
	var kept []*stream
	for _, s := range all {
		s.last = s.tail()
	}
	for _, s := range all {
		from := s.from
		for from != nil && from.into != nil {
			from = from.into
		}
		if from != nil && s.continues(from) {
			from.list, s.into = append(from.list, s.list...), from
			continue
		}
		if from != nil && s.parent == s.from.last && from.tail().start <= s.list[0].start {
			s.parent = from.tail() // a fork that was joined with it came between
		}
		kept = append(kept, s)
	}
	return kept
}

func (s *stream) continues(from *stream) bool {
	first, last := s.list[0], from.tail()
	gap := first.start - last.end
	return s.parent == s.from.last && first.Model == last.Model && last.start <= first.start && gap >= -wekaSlack &&
		(gap <= seamGap || float64(s.overlap) >= seamOverlap*float64(len(s.parent.Hashes)))
}

// preamble puts a single first request that shares nothing with later ones in front of the main stream.
func preamble(all []*stream) []*stream {
	if len(all) < 2 || len(all[0].list) > 1 {
		return all
	}
	first := all[0].tail()
	for _, s := range all[1:] {
		for _, r := range s.list {
			if common(first.Hashes, r.Hashes) > 0 {
				return all
			}
		}
	}
	main := all[1]
	main.list = append([]*wekaRequest{first}, main.list...)
	return all[1:]
}

func common(a, b []uint64) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// wekaPlay makes the nodes of one trace.
type wekaPlay struct {
	t       *wekaTrace
	prefix  string
	ordinal int
	nodes   map[*wekaRequest]*draftNode
	order   []*wekaRequest // of the nodes
	parents []*wekaRequest // requests outside of subagents
	main    []*stream      // of them
}

// nodes returns the nodes of a trace, the earliest of them at time 0.
func (t *wekaTrace) nodes(ordinal int, basis Basis) []draftNode {
	sum := blake3.Sum256([]byte(t.name))
	p := &wekaPlay{t: t, prefix: "weka:" + hex.EncodeToString(sum[:8]) + ":", ordinal: ordinal, nodes: map[*wekaRequest]*draftNode{}}
	first := math.Inf(1)
	for i, r := range t.Requests {
		r.place(fmt.Sprintf("%srequest:outer:%d", p.prefix, i), 0)
		if r.Type != "subagent" {
			p.parents = append(p.parents, r)
			first = min(first, r.start)
		}
		for k, inner := range r.Requests {
			shift := 0.0
			if basis == RelativeBasis {
				shift = r.start
			}
			inner.place(fmt.Sprintf("%s:inner:%d", r.id, k), shift)
			first = min(first, inner.start)
		}
	}
	p.main = p.scope("root", p.parents)
	var before *wekaRequest
	for i, r := range t.Requests {
		if r.Type == "subagent" {
			p.subagent(r, i, before)
		} else {
			before = r
		}
	}
	var out []draftNode
	for _, r := range p.order {
		n := p.nodes[r]
		n.NotBefore = inMS(r.start - first)
		out = append(out, *n)
	}
	return out
}

// place fills in when a request started and ended.
func (r *wekaRequest) place(id string, shift float64) {
	r.id, r.start = id, *r.T+shift
	r.end = r.start
	if r.API != nil {
		r.end += *r.API
	}
}

// scope adds the requests of the trace itself, or of a subagent.
func (p *wekaPlay) scope(name string, requests []*wekaRequest) []*stream {
	all := streams(requests)
	for i, s := range all {
		session := p.prefix + "session:" + name
		if i > 0 {
			session = fmt.Sprintf("%s:worker:%d", session, i-1)
		}
		for k, r := range s.list {
			p.add(r, session)
			switch {
			case k > 0:
				p.need(r, s.list[k-1], Sequence, false)
			case s.parent != nil:
				p.need(r, s.parent, Spawn, s.parent.end > r.start)
			}
		}
	}
	p.barriers(all)
	return all
}

func (p *wekaPlay) add(r *wekaRequest, session string) {
	n := &draftNode{Node: Node{ID: r.id, Play: p.prefix + "play:" + p.t.ID, Session: session, Model: r.Model, APITime: math.NaN(),
		Ordinal: p.ordinal, sourceIDs: r.hashes(p.prefix, p.t.BlockSize)}}
	n.Input, n.Output, n.Extra = r.In, r.Out, &Extra{}
	if r.API != nil {
		n.APITime = inMS(*r.API)
	}
	p.nodes[r] = n
	p.order = append(p.order, r)
}

// need lets a request wait for another one, and then for as long as in the recording.
func (p *wekaPlay) need(r, on *wekaRequest, relation Relation, dispatch bool) {
	since := on.end
	switch {
	case relation == Barrier:
		since = r.start
	case dispatch:
		since = on.start
	}
	p.nodes[r].needs = append(p.nodes[r].needs, draftNeed{id: on.id, Need: Need{Dispatch: dispatch, Delay: inMS(r.start - since), Relation: relation}})
}

// barriers lets every request wait for the latest request of each other stream that had ended when it started, unless that
// follows from what it waits for anyway.
func (p *wekaPlay) barriers(all []*stream) {
	type spot struct{ s, k int }
	var order []spot
	for s := range all {
		for k := range all[s].list {
			order = append(order, spot{s, k})
		}
	}
	at := func(x spot) *wekaRequest { return all[x.s].list[x.k] }
	slices.SortStableFunc(order, func(a, b spot) int { return cmp.Compare(at(a).start, at(b).start) })
	ended := map[string][]int{} // by request: how many of each stream have ended when it starts, as its needs say
	index := map[string]spot{}
	before := make([]int, len(all)) // requests of each stream that come before the present one
	for _, x := range order {
		r := at(x)
		index[r.id] = x
		seen := make([]int, len(all))
		for _, n := range p.nodes[r].needs {
			y := index[n.id]
			for s, k := range ended[n.id] {
				seen[s] = max(seen[s], k)
			}
			if !n.Dispatch {
				seen[y.s] = max(seen[y.s], y.k+1)
			}
		}
		var news []spot
		for s := range all {
			k := 0
			for i, other := range all[s].list[:before[s]] {
				if other.start < r.start && other.end <= r.start {
					k = i + 1
				}
			}
			if s != x.s && k > seen[s] {
				news = append(news, spot{s, k - 1})
			}
		}
		for _, y := range news {
			dominated := slices.ContainsFunc(news, func(z spot) bool { return z != y && ended[at(z).id] != nil && ended[at(z).id][y.s] > y.k })
			if !dominated {
				p.need(r, at(y), Barrier, false)
			}
		}
		for _, y := range news {
			seen[y.s] = max(seen[y.s], y.k+1)
		}
		ended[r.id] = seen
		before[x.s]++
	}
}

// after returns the first request of the conversation of r that comes after r and starts at a time or later.
func (p *wekaPlay) after(r *wekaRequest, time float64) *wekaRequest {
	for _, s := range p.main {
		if i := slices.Index(s.list, r); i >= 0 {
			for _, q := range s.list[i+1:] {
				if q.start+wekaSlack >= time {
					return q
				}
			}
		}
	}
	return nil
}

// subagent adds the requests of a subagent, spawned by the request before it. One that is waited for is joined by the
// first request of that one's conversation that starts after its end.
func (p *wekaPlay) subagent(r *wekaRequest, index int, before *wekaRequest) {
	if len(r.Requests) == 0 {
		return
	}
	all := p.scope(fmt.Sprintf("subagent:%d:%s", index, r.Agent), r.Requests)
	p.need(all[0].list[0], before, Spawn, before.end > all[0].list[0].start)
	if r.Status != "completed" {
		return
	}
	end := r.start
	if r.Duration != nil {
		end += *r.Duration / 1000
	}
	for _, inner := range r.Requests {
		if r.Duration == nil {
			end = max(end, inner.end)
		}
	}
	next := p.after(before, end)
	for _, s := range all {
		if next != nil {
			p.need(next, s.tail(), Join, false)
		}
	}
}
