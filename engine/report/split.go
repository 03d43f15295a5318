package report

import "mockbench/engine"

// split follows requests that a prefill worker begins and a decode worker answers. Both workers know a request under its
// label. Its first token is the one of the decode worker, its arrival what the first of both saw; the time between is
// told apart: queue, prefill, transfer, queue of the decode worker, first decode pass.
type split struct {
	whole *meter // of requests only; its lock guards all of this

	visits map[string]*visit // by label
	parts  [parts]distribution
	idle   []*visit // prefilled and not seen at a decode worker since, oldest first
}

// The parts of TTFT that follow the queue time.
const (
	partPrefill     = iota // first admission to the end of the prefill
	partTransfer           // until the decode worker has the KV
	partDecodeQueue        // until its first admission there
	partFirstDecode        // until the first token
	parts
)

var partNames = [parts]string{"prefill_time_ms", "transfer_time_ms", "decode_queue_time_ms", "first_decode_time_ms"}

// visit is a request on its way through both workers.
type visit struct {
	label   string
	request *engine.Request // that the meter knows
	begun   bool            // a prefill worker has it
	arrived bool            // a decode worker has it
	over    bool

	held, moved, resumed, first engine.Time // end of each part but the last of TTFT, and the first token
	decoding                    bool        // admitted by the decode worker
}

// lost is after how many simulated milliseconds a request that was prefilled and that no decode worker has seen counts as
// cancelled: its client has left in between.
const lost = 10 * 60 * 1000

func newSplit(o Options) *split { return &split{whole: newMeter(o), visits: map[string]*visit{}} }

// leg is the reader of one of the workers.
type leg struct {
	*meter
	split *split
	role  engine.Role
}

// Submitted notes a request that entered the queue of a rank.
func (l *leg) Submitted(rank int, r *engine.Request, now engine.Time) {
	l.meter.Submitted(rank, r, now)
	s := l.split
	s.whole.mu.Lock()
	defer s.whole.mu.Unlock()
	v := s.visits[r.Label]
	if v == nil {
		v = &visit{label: r.Label, request: r}
		s.visits[r.Label] = v
		s.whole.told = true
		s.whole.begin(r)
	}
	if l.role == engine.PrefillRole {
		v.begun = true
	} else {
		v.arrived, v.moved = true, now
	}
}

// Activated notes that the KV of a request has arrived.
func (l *leg) Activated(_ int, r *engine.Request, now engine.Time) {
	s := l.split
	s.whole.mu.Lock()
	defer s.whole.mu.Unlock()
	if v := s.visits[r.Label]; v != nil {
		v.moved = now
	}
}

// Cancelled notes a request that left its rank before its end.
func (l *leg) Cancelled(rank int, r *engine.Request, now engine.Time) {
	l.meter.Cancelled(rank, r, now)
	s := l.split
	s.whole.mu.Lock()
	defer s.whole.mu.Unlock()
	s.cancel(s.visits[r.Label])
}

// Pass takes in a record.
func (l *leg) Pass(p *engine.Pass) {
	l.meter.Pass(p)
	if len(p.Admissions)+len(p.Outputs) == 0 {
		return
	}
	s := l.split
	s.whole.mu.Lock()
	defer s.whole.mu.Unlock()
	s.whole.advance(p.End)
	c := s.whole.columns.last()
	for i := range p.Admissions {
		if v := s.visits[p.Admissions[i].Request.Label]; v != nil {
			s.admit(c, l.role, p, &p.Admissions[i], v)
		}
	}
	for i := range p.Outputs {
		if v := s.visits[p.Outputs[i].Request.Label]; v != nil {
			s.output(c, l.role, p.End, p.Outputs[i], v)
		}
	}
	s.whole.flush()
	s.forget(p.End)
}

// admit notes an admission: of the prefill worker, or of a decode worker that has a request for itself.
func (s *split) admit(c *Column, role engine.Role, p *engine.Pass, a *engine.Admission, v *visit) {
	if role != engine.PrefillRole && !v.decoding {
		v.decoding, v.resumed = true, p.Start
	}
	if role == engine.PrefillRole || !v.begun {
		known := *a
		known.Request = v.request
		s.whole.admit(c, p, &known)
	}
}

func (s *split) output(c *Column, role engine.Role, now engine.Time, o engine.Output, v *visit) {
	o.Request = v.request
	switch {
	case role == engine.PrefillRole && !o.Rejected:
		if o.HasToken {
			v.held = now
			s.idle = append(s.idle, v)
		}
		return
	case o.HasToken && v.first == 0:
		v.first = now
	}
	if o.Completed && !o.Rejected && v.begun {
		s.add(v)
	}
	s.whole.output(c, now, &o)
	if o.Completed {
		s.end(v)
	}
}

// add takes in the parts of a request that is complete.
func (s *split) add(v *visit) {
	from := s.whole.requests[v.request].admitted
	for i, to := range [parts]engine.Time{v.held, v.moved, v.resumed, v.first} {
		to = max(to, from) // a pass that makes up for lateness starts before what it admits
		s.parts[i].add(float64(to - from))
		from = to
	}
}

func (s *split) end(v *visit) {
	v.over = true
	delete(s.visits, v.label)
}

func (s *split) cancel(v *visit) {
	if v == nil {
		return
	}
	if q := s.whole.requests[v.request]; q != nil {
		s.whole.total.cancelled++
		s.whole.forget(v.request, q)
	}
	s.end(v)
}

// forget gives up requests that went lost between their workers.
func (s *split) forget(now engine.Time) {
	for len(s.idle) > 0 && (s.idle[0].over || s.idle[0].arrived || now-s.idle[0].held > lost) {
		if v := s.idle[0]; !v.over && !v.arrived {
			s.cancel(v)
		}
		s.idle = s.idle[1:]
	}
}

// stats returns the figures of the parts.
func (s *split) stats() []Metric {
	s.whole.mu.Lock()
	defer s.whole.mu.Unlock()
	out := make([]Metric, parts)
	for i := range out {
		out[i] = Metric{partNames[i], s.parts[i].stats()}
	}
	return out
}
