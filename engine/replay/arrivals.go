package replay

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"mockbench/engine"
	"mockbench/engine/trace"
)

// arrival is a request that arrives.
type arrival struct {
	number  int
	session int
	turn    int
	source  *trace.Turn
	at      engine.Time
	told    bool // records name session and turn
}

// source says when requests arrive.
type source interface {
	next() (engine.Time, bool)                   // time of the next arrival, as far as it is known
	take(now engine.Time) (arrival, bool)        // the next request that is due
	ended(q *job, now engine.Time, unlocks bool) // a request ended; unlocks is false if its session ends with it
	drained() bool                               // no request will come
	dispatched(q *job, now engine.Time)          // a request was sent into the fleet
}

// list is requests that nobody follows, by their arrival times or so many at a time.
type list struct {
	trace  *trace.Trace
	order  []int32 // sessions by arrival
	at     int
	step   int // how far apart in order this list's requests are
	limit  int // requests in flight; 0: by time
	flying int
}

// newList returns the requests of a trace whose times are aligned. It is the share of one of several workers that take
// requests in turn: every step-th from first on.
func newList(t *trace.Trace, order []int32, limit, first, step int) *list {
	return &list{trace: t, order: order, limit: limit, at: first, step: step}
}

// byArrival returns the sessions in the order of their arrival.
func byArrival(t *trace.Trace, timed bool) []int32 {
	order := make([]int32, len(t.Sessions))
	for i := range order {
		order[i] = int32(i)
	}
	arrival := func(i int32) float64 { return t.Sessions[i].Arrival }
	sorted := func(a, b int32) int { return cmp.Compare(arrival(a), arrival(b)) }
	if timed && !slices.IsSortedFunc(order, sorted) {
		slices.SortStableFunc(order, sorted)
	}
	return order
}

func (l *list) drained() bool { return l.at >= len(l.order) }

func (l *list) next() (engine.Time, bool) {
	switch {
	case l.drained(), l.limit > 0 && l.flying >= l.limit:
		return 0, false
	case l.limit > 0:
		return engine.Time(math.Inf(-1)), true
	}
	return engine.Time(l.trace.Sessions[l.order[l.at]].Arrival), true
}

func (l *list) take(now engine.Time) (arrival, bool) {
	at, ok := l.next()
	if !ok || at > now {
		return arrival{}, false
	}
	i := int(l.order[l.at])
	if l.limit > 0 {
		at = now
	}
	l.at += l.step
	l.flying++
	return arrival{number: i, session: i, source: &l.trace.Sessions[i].Turns[0], at: at}, true
}

func (l *list) ended(*job, engine.Time, bool) { l.flying-- }
func (l *list) dispatched(*job, engine.Time)  {}

// sessions is turns that follow one another, by their arrival times or so many sessions at a time.
type sessions struct {
	trace  *trace.Trace
	first  []int32 // number of the first request of each session
	ready  turnHeap
	limit  int // sessions at a time; 0: by time
	active int
	opened int // sessions that have begun, with a limit
	flying int
}

// due is a turn that has become ready.
type due struct {
	at            engine.Time
	session, turn int
}

func newSessions(t *trace.Trace, limit int) *sessions {
	s := &sessions{trace: t, limit: limit, first: make([]int32, len(t.Sessions))}
	n := 0
	for i := range t.Sessions {
		s.first[i] = int32(n)
		n += len(t.Sessions[i].Turns)
		if limit == 0 {
			s.ready = append(s.ready, due{engine.Time(t.Sessions[i].Arrival), i, 0})
		}
	}
	heap.Init(&s.ready)
	s.open(0)
	return s
}

// open begins sessions until the limit is reached.
func (s *sessions) open(now engine.Time) {
	for s.limit > 0 && s.active < s.limit && s.opened < len(s.trace.Sessions) {
		heap.Push(&s.ready, due{now, s.opened, 0})
		s.opened++
		s.active++
	}
}

func (s *sessions) drained() bool { return len(s.ready) == 0 && s.flying == 0 }

func (s *sessions) next() (engine.Time, bool) {
	if len(s.ready) == 0 || s.limit > 0 && s.flying >= s.limit {
		return 0, false
	}
	return s.ready[0].at, true
}

func (s *sessions) take(now engine.Time) (arrival, bool) {
	at, ok := s.next()
	if !ok || at > now {
		return arrival{}, false
	}
	d := heap.Pop(&s.ready).(due)
	if s.limit > 0 {
		d.at = now
	}
	s.flying++
	return arrival{number: int(s.first[d.session]) + d.turn, session: d.session, turn: d.turn,
		source: &s.trace.Sessions[d.session].Turns[d.turn], at: d.at, told: true}, true
}

func (s *sessions) ended(q *job, now engine.Time, unlocks bool) {
	s.flying--
	next := q.turn + 1
	if turns := s.trace.Sessions[q.session].Turns; unlocks && next < len(turns) {
		heap.Push(&s.ready, due{now + engine.Time(turns[next].Delay), q.session, next})
		return
	}
	s.active--
	s.open(now)
}

func (s *sessions) dispatched(*job, engine.Time) {}

// turnHeap is turns by the time they become ready, then by session and turn.
type turnHeap []due

func (h turnHeap) Len() int { return len(h) }

func (h turnHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.session != b.session:
		return a.session < b.session
	}
	return a.turn < b.turn
}

func (h turnHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *turnHeap) Push(x any)   { *h = append(*h, x.(due)) }

func (h *turnHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	*h = (*h)[:last]
	return d
}

// history is what was said in the sessions of a trace whose prompts follow on it.
type history struct{ said [][]uint32 }

// prompt returns the prompt of a turn and remembers it.
func (h *history) prompt(session int, u *trace.Turn, blockSize int) []uint32 {
	p := slices.Clip(h.said[session])
	for i := range u.Input {
		p = append(p, u.IDs[i/blockSize])
	}
	h.said[session] = p
	return p
}

// answer remembers an answer.
func (h *history) answer(session int, tokens []uint32) {
	h.said[session] = append(slices.Clip(h.said[session]), tokens...)
}
