package trace

import (
	"errors"
	"math"
	"os"
)

// Request is a request that nobody follows.
type Request struct {
	Turn
	Number  int     // in the file, from 0
	Arrival float64 // milliseconds
}

// ErrNoStream says that a file cannot be read as a stream: requests depend on one another, or do not come in the order of
// their arrival, or something is wrong with a line. Read finds out what, or reads it all the same.
var ErrNoStream = errors.New("trace: not a stream of single requests in the order of their arrival")

// Stream reads a Mooncake trace piece by piece, so that one may be larger than memory. What it keeps of the lines read is
// the numbers of their ids. Arrivals are aligned: the first one is at 0.
type Stream struct {
	path      string
	blockSize int
	speedup   float64

	in       *lines
	scan     scanner
	row      row
	interner interner
	first    float64 // arrival of the first request
	count    int
	plan     uint64
	ahead    Request // read, but not handed out
	more     bool
	ids      [2][]uint32 // of the requests handed out last and before
	requests [2][]Request
}

// NewStream returns a stream of a file with Mooncake rows, sped up by a ratio; nil if the file cannot be read twice,
// which it is if it turns out to be no stream.
func NewStream(path string, blockSize int, speedup float64) *Stream {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if blockSize == 0 {
		blockSize = DefaultBlockSize
	}
	return &Stream{path: path, blockSize: blockSize, speedup: speedup}
}

// BlockSize returns the number of tokens an id stands for.
func (s *Stream) BlockSize() int { return s.blockSize }

// ReadAll reads the file as a whole.
func (s *Stream) ReadAll() (*Trace, error) { return readMooncake(s.path, s.blockSize) }

// Next returns about n requests: all that arrive at the same time as one of them belong to them. They are valid until the
// call after the next. until is the arrival of the next one, +Inf at the end. Any error is ErrNoStream.
func (s *Stream) Next(n int) (list []Request, until float64, err error) {
	if s.in == nil {
		if s.in, err = openLines(s.path); err != nil {
			return nil, 0, ErrNoStream
		}
		if err := s.read(); err != nil || !s.more {
			s.Close()
			return nil, 0, ErrNoStream
		}
	}
	list, ids := s.requests[0][:0], s.ids[0][:0]
	for s.more && (len(list) < n || s.ahead.Arrival == list[len(list)-1].Arrival) {
		from := len(ids)
		ids = append(ids, s.ahead.IDs...)
		list = append(list, s.ahead)
		list[len(list)-1].IDs = ids[from:len(ids):len(ids)]
		if err := s.read(); err != nil {
			s.Close()
			return nil, 0, ErrNoStream
		}
	}
	s.requests[0], s.requests[1] = s.requests[1], list
	s.ids[0], s.ids[1] = s.ids[1], ids
	if !s.more {
		s.Close()
		return list, math.Inf(1), nil
	}
	return list, s.ahead.Arrival, nil
}

// Close closes the file.
func (s *Stream) Close() {
	if s.in != nil {
		s.in.close()
	}
}

// read reads the next request into ahead. Its ids are valid until the next call.
func (s *Stream) read() error {
	more, err := s.in.next()
	if s.more = more; err != nil || !more {
		return err
	}
	r := &s.row
	s.scan.reset(s.in.text)
	if err := r.read(&s.scan); err != nil {
		return ErrNoStream
	}
	if err := r.check(s.in, s.blockSize); err != nil {
		return err
	}
	if !r.has(hasTimestamp) || r.has(hasSession|hasTokens) || r.delay != 0 || r.input == 0 {
		return ErrNoStream
	}
	if s.count == 0 {
		s.first = r.timestamp
	}
	arrival := (r.timestamp - s.first) / s.speedup
	if s.count > 0 && arrival < s.ahead.Arrival || math.IsInf(arrival, 0) || math.IsNaN(arrival) {
		return ErrNoStream
	}
	s.ahead = Request{Number: s.count, Arrival: arrival,
		Turn: Turn{IDs: r.number(&s.interner), Input: r.input, Output: r.output, Plan: s.plan, Extra: r.extra()}}
	s.plan += uint64(r.output)
	s.count++
	return nil
}
