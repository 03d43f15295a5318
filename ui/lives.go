package ui

import (
	"strings"

	"mockbench/engine"
	"mockbench/ui/feed"
	"mockbench/ui/grid"
)

// keptLives is how many requests are remembered.
const keptLives = 2048

// keptMoments bounds the moments kept of one request; what comes between the first ones and the last is left out.
const keptMoments = 96

// moment is a mark with the worker at which it happened.
type moment struct {
	feed.Mark
	worker string
}

// life is what happened to one request, in order.
type life struct {
	label   string
	moments []moment
}

// lifeKey tells requests apart: those of two fleets of a comparison have the same labels.
type lifeKey struct{ fleet, label string }

// lives are the requests seen last.
type lives struct {
	byKey map[lifeKey]*life
	order []lifeKey // oldest first, from head on
	head  int
}

func (l *lives) add(w *worker, marks []feed.Mark) {
	if l.byKey == nil {
		l.byKey = map[lifeKey]*life{}
	}
	fleet, _, found := strings.Cut(w.name, ":")
	if !found {
		fleet = ""
	}
	for i := range marks {
		k := lifeKey{fleet, marks[i].Label}
		x := l.byKey[k]
		if x == nil {
			x = &life{label: grid.Clean(k.label)}
			l.byKey[k] = x
			l.order = append(l.order, k)
			if len(l.order)-l.head > keptLives {
				delete(l.byKey, l.order[l.head])
				l.head++
			}
			if l.head > keptLives {
				l.order, l.head = append(l.order[:0], l.order[l.head:]...), 0
			}
		}
		if len(x.moments) == keptMoments {
			x.moments = append(x.moments[:keptMoments/2], x.moments[keptMoments/2+1:]...)
		}
		x.moments = append(x.moments, moment{marks[i], w.name})
		for at := len(x.moments) - 1; at > 0 && x.moments[at-1].At > x.moments[at].At; at-- { // of another worker
			x.moments[at-1], x.moments[at] = x.moments[at], x.moments[at-1]
		}
	}
}

// of returns the life of a request at a worker, nil if it is not known.
func (l *lives) of(w *worker, label string) *life {
	fleet, _, found := strings.Cut(w.name, ":")
	if !found {
		fleet = ""
	}
	return l.byKey[lifeKey{fleet, label}]
}

// ended lists the lives that are over at workers whose fleet is that of w, newest first.
func (l *lives) ended() (list []*life) {
	for i := len(l.order) - 1; i >= l.head; i-- {
		if x := l.byKey[l.order[i]]; x != nil && x.over() {
			list = append(list, x)
		}
	}
	return list
}

// waiter is a request that waited at a moment.
type waiter struct {
	label     string
	preempted bool
	since     engine.Time
	prompt    int // tokens
}

// waiting lists the requests that waited at a rank at a moment, in the order they came.
func (l *lives) waiting(worker string, rank int32, at engine.Time) (list []waiter) {
	for _, k := range l.order[l.head:] {
		x := l.byKey[k]
		if x == nil {
			continue
		}
		w, waits := waiter{label: x.label}, false
		for i := range x.moments {
			m := &x.moments[i]
			if m.At > at || m.worker != worker || m.Rank != rank {
				continue
			}
			switch m.Kind {
			case feed.Queued:
				w.since, w.prompt, waits = m.At, m.Tokens, true
			case feed.Preempted:
				w.since, w.preempted, waits = m.At, true, true
			case feed.Admitted, feed.Done, feed.Rejected, feed.Cancelled:
				waits = false
			}
		}
		if waits {
			list = append(list, w)
		}
	}
	return list
}

func (x *life) last() *moment { return &x.moments[len(x.moments)-1] }

// over reports whether nothing more will happen: a prefill worker's part is not the end of a request that is transferred.
func (x *life) over() bool {
	switch m := x.last(); m.Kind {
	case feed.Rejected, feed.Cancelled:
		return true
	case feed.Done:
		for i := range x.moments {
			if x.moments[i].Kind == feed.Held && x.moments[i].worker == m.worker {
				return false
			}
		}
		return true
	}
	return false
}

// sum is a life in figures; times are milliseconds, negative if they have not come.
type lifeSum struct {
	worker                          string // that served it last
	prompt, cached, chunks, tokens  int
	preempted                       int
	arrival                         engine.Time
	queue, ttft, total, transferred float64
	outcome                         string
}

func (x *life) sum() lifeSum {
	s := lifeSum{queue: -1, ttft: -1, total: -1, transferred: -1, outcome: "running", arrival: x.moments[0].At}
	held := engine.Time(-1)
	for i := range x.moments {
		m := &x.moments[i]
		s.worker = m.worker
		since := max(float64(m.At-s.arrival), 0) // a pass that makes up for lateness may begin before
		switch m.Kind {
		case feed.Queued:
			s.prompt = max(s.prompt, m.Tokens)
		case feed.Admitted:
			if s.queue < 0 {
				s.queue, s.cached = since, m.Tokens
			}
			if held >= 0 && s.transferred < 0 {
				s.transferred = float64(m.At - held)
			}
		case feed.Chunk:
			s.chunks++
		case feed.FirstToken:
			if s.ttft < 0 && !(held >= 0 && m.At <= held) {
				s.ttft = since
			}
		case feed.Preempted:
			s.preempted++
		case feed.Held:
			held, s.ttft = m.At, -1 // the first token for the client is the decode worker's
		case feed.Done:
			s.tokens, s.total, s.outcome = max(s.tokens, m.Tokens), since, "done"
		case feed.Rejected:
			s.total, s.outcome = since, "rejected"
		case feed.Cancelled:
			s.total, s.outcome = since, "cancelled"
		}
	}
	if !x.over() {
		s.total, s.outcome = -1, "running"
	}
	return s
}

// Letters of a time line.
const (
	letterQueued, letterPrefill, letterBetween, letterLost, letterTransfer = '.', 'P', '-', 'x', '>'
)

// stretch is a part of a time line.
type stretch struct {
	from, to engine.Time
	letter   rune
	worker   string
}

// stretches turns the moments of a life into the parts of its time line; what is going on ends now.
func (x *life) stretches(now engine.Time) (list []stretch) {
	state, since, worker := rune(letterQueued), x.moments[0].At, x.moments[0].worker
	next := func(m *moment, letter rune, at engine.Time) {
		if at > since {
			list = append(list, stretch{since, at, state, worker})
		}
		state, since, worker = letter, max(at, since), m.worker
	}
	decoding, held := false, false
	for i := range x.moments {
		m := &x.moments[i]
		switch m.Kind {
		case feed.Admitted:
			next(m, letterBetween, m.At)
			if decoding {
				state = letterDecode
			}
		case feed.Chunk:
			next(m, letterPrefill, m.At)
			next(m, letterBetween, m.Until)
		case feed.FirstToken:
			if state != letterTransfer { // else it is the prefill worker's
				decoding = true
				next(m, letterDecode, m.At)
			}
		case feed.Preempted:
			next(m, letterLost, m.At)
		case feed.Held:
			held = true
			next(m, letterTransfer, m.At)
		case feed.Reserved:
			if held { // else there is nothing to transfer yet
				next(m, letterTransfer, m.At)
			}
		case feed.Done, feed.Rejected, feed.Cancelled:
			if state != letterTransfer || i == len(x.moments)-1 && x.over() { // the prompt's KV is still to be transferred
				next(m, 0, m.At)
			}
		}
	}
	if !x.over() && now > since {
		list = append(list, stretch{since, now, state, worker})
	}
	return list
}
