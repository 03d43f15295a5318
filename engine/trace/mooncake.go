package trace

import (
	"fmt"
	"math"
)

// row is a line of a Mooncake trace.
type row struct {
	timestamp, delay float64
	input, output    int
	ids              []uint64
	tokens           []uint32
	session, request string
	class            string
	priority         int32
	strict           uint32
	given            uint32 // bits of the fields that have a value
	seen             uint32 // bits of the fields that appear, null included
	numbered         []uint32
}

// Bits of row.given and row.seen.
const (
	hasTimestamp = 1 << iota
	hasInput
	hasOutput
	hasIDs
	hasTokens
	hasSession
	hasDelay
	hasRequest
	hasPriority
	hasStrict
	hasClass
)

// read reads a row. Fields that nobody knows are skipped; a field and its other name together are an error.
func (r *row) read(s *scanner) error {
	ids, numbered := r.ids[:0], r.numbered
	*r = row{ids: ids, numbered: numbered}
	s.object(func(key []byte) { r.field(s, key) })
	return s.end()
}

func (r *row) field(s *scanner, key []byte) {
	bit, found := rowFields[string(key)]
	if !found {
		s.skip()
		return
	}
	if r.seen&bit != 0 {
		s.fail("field %s is given twice", key)
		return
	}
	r.seen |= bit
	if s.null() {
		return
	}
	r.given |= bit
	switch bit {
	case hasTimestamp:
		r.timestamp = s.float()
	case hasInput:
		r.input = s.count()
	case hasOutput:
		r.output = s.count()
	case hasIDs:
		r.ids = s.ids(r.ids)
	case hasTokens:
		r.tokens = s.tokens()
	case hasSession:
		r.session = s.string()
	case hasDelay:
		r.delay = s.float()
	case hasRequest:
		r.request = s.string()
	case hasPriority:
		r.priority = s.signed()
	case hasStrict:
		r.strict = uint32(s.unsigned(math.MaxUint32))
	case hasClass:
		r.class = s.string()
	}
}

var rowFields = map[string]uint32{
	"timestamp": hasTimestamp, "created_time": hasTimestamp, "input_length": hasInput, "input_tokens": hasInput,
	"output_length": hasOutput, "output_tokens": hasOutput, "hash_ids": hasIDs, "output_token_ids": hasTokens,
	"session_id": hasSession, "delay": hasDelay, "delay_ms": hasDelay, "request_id": hasRequest,
	"priority": hasPriority, "strict_priority": hasStrict, "policy_class": hasClass,
}

func (r *row) has(bit uint32) bool { return r.given&bit != 0 }

// mooncake reads a trace of one request a line.
type mooncake struct {
	t        *Trace
	in       *lines
	scan     scanner
	row      row
	interner interner
	sessions map[string]int // index of each named session
	latest   map[int]float64
}

func readMooncake(path string, blockSize int) (*Trace, error) {
	in, err := openLines(path)
	if err != nil {
		return nil, err
	}
	defer in.close()
	m := &mooncake{t: &Trace{BlockSize: blockSize}, in: in, interner: newInterner(), sessions: map[string]int{},
		latest: map[int]float64{}}
	for {
		more, err := in.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		m.scan.reset(in.text)
		if err := m.row.read(&m.scan); err != nil {
			return nil, in.wrong("not a request in JSON: %v", err)
		}
		if err := m.add(&m.row); err != nil {
			return nil, err
		}
	}
	if len(m.t.Sessions) == 0 {
		return nil, fmt.Errorf("trace: %s holds no requests", path)
	}
	m.t.IDs = m.interner.len()
	m.t.plan()
	return m.t, m.t.check()
}

// add checks a row and adds its turn.
func (m *mooncake) add(r *row) error {
	if err := r.check(m.in, m.t.BlockSize); err != nil {
		return err
	}
	u := Turn{IDs: m.t.ids.copy(r.number(&m.interner)), Input: r.input, Output: r.output, Extra: r.extra()}
	return m.place(r, u)
}

// check completes a row and finds what is wrong with it, taken by itself.
func (r *row) check(in *lines, blockSize int) error {
	if !r.has(hasIDs) {
		return in.wrong("hash_ids is missing")
	}
	if !r.has(hasOutput) {
		return in.wrong("output_length is missing")
	}
	room := len(r.ids) * blockSize
	if !r.has(hasInput) {
		r.input = room
	}
	if r.input > room {
		return in.wrong("input_length %d exceeds the %d tokens of its %d hash_ids (%d tokens each)", r.input, room, len(r.ids), blockSize)
	}
	if r.has(hasTokens) && len(r.tokens) != r.output {
		return in.wrong("output_length %d differs from the %d output_token_ids", r.output, len(r.tokens))
	}
	return nil
}

// number numbers the ids of a row. The list is valid until the next call.
func (r *row) number(n *interner) []uint32 {
	r.numbered = r.numbered[:0]
	for _, id := range r.ids {
		r.numbered = append(r.numbered, n.number(id))
	}
	return r.numbered
}

func (r *row) extra() *Extra {
	if r.given&(hasTokens|hasPriority|hasStrict|hasClass|hasRequest) == 0 {
		return nil
	}
	return &Extra{Tokens: r.tokens, Priority: r.priority, Strict: r.strict, Class: r.class, RequestID: r.request}
}

// place puts a turn into its session.
func (m *mooncake) place(r *row, u Turn) error {
	index, known := -1, false
	if r.has(hasSession) {
		index, known = m.lookup(r.session)
	}
	if !known {
		s := Session{Name: r.session, Named: r.has(hasSession), Arrival: math.NaN(), Turns: []Turn{u}}
		if !s.Named {
			s.Name = fmt.Sprintf("request_%d", m.in.number)
		}
		if r.has(hasDelay) && r.delay != 0 {
			return m.in.wrong("delay of the first turn of session %s: there is nothing to wait for", s.Name)
		}
		if r.has(hasTimestamp) {
			s.Arrival = r.timestamp
		}
		m.t.Sessions = append(m.t.Sessions, s)
		if s.Named {
			m.sessions[s.Name] = len(m.t.Sessions) - 1
			if r.has(hasTimestamp) {
				m.latest[len(m.t.Sessions)-1] = r.timestamp
			}
		}
		return nil
	}
	delay, err := m.delay(r, index)
	if err != nil {
		return err
	}
	u.Delay = delay
	m.t.Sessions[index].Turns = append(m.t.Sessions[index].Turns, u)
	return nil
}

func (m *mooncake) lookup(session string) (int, bool) {
	i, ok := m.sessions[session]
	return i, ok
}

// delay returns how long a follow-up turn waits, from its delay or its timestamp.
func (m *mooncake) delay(r *row, session int) (float64, error) {
	delay := 0.0
	before, known := m.latest[session]
	switch {
	case r.has(hasDelay):
		delay = r.delay
	case r.has(hasTimestamp) && !known:
		return 0, m.in.wrong("session %s: a timestamp without one before it gives no delay", r.session)
	case r.has(hasTimestamp):
		delay = r.timestamp - before
	}
	if r.has(hasTimestamp) {
		m.latest[session] = r.timestamp
	}
	if !(delay >= 0) || math.IsInf(delay, 0) {
		return 0, m.in.wrong("delay must be finite and not negative, got %s", short(delay))
	}
	return delay, nil
}
