package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// scanner reads one JSON value from a piece of text, without building anything that is not asked for. Errors stay: after
// the first one every call does nothing.
type scanner struct {
	text []byte
	at   int
	err  error
}

func (s *scanner) reset(text []byte) { s.text, s.at, s.err = text, 0, nil }

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// peek returns the next byte that is not space, 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// take reads one byte that must come next.
func (s *scanner) take(c byte) bool {
	if s.err != nil {
		return false
	}
	if got := s.peek(); got != c {
		s.unexpected(fmt.Sprintf("%q", c))
		return false
	}
	s.at++
	return true
}

func (s *scanner) unexpected(want string) {
	c := s.peek()
	if s.at >= len(s.text) {
		s.fail("the text ends where %s should be", want)
		return
	}
	s.fail("column %d: found %q, expected %s", s.at+1, c, want)
}

// end checks that nothing follows.
func (s *scanner) end() error {
	if s.err == nil && s.peek() != 0 {
		s.fail("column %d: text after the end of the value", s.at+1)
	}
	return s.err
}

// object calls field for each key of an object; field reads the value.
func (s *scanner) object(field func(key []byte)) {
	if !s.take('{') {
		return
	}
	if s.peek() == '}' {
		s.at++
		return
	}
	for s.err == nil {
		key := s.raw()
		if !s.take(':') {
			return
		}
		field(key)
		if s.err != nil {
			return
		}
		if s.peek() == ',' {
			s.at++
			continue
		}
		s.take('}')
		return
	}
}

// array calls element for each element of an array; element reads it.
func (s *scanner) array(element func()) {
	if !s.take('[') {
		return
	}
	if s.peek() == ']' {
		s.at++
		return
	}
	for s.err == nil {
		element()
		if s.err != nil {
			return
		}
		if s.peek() == ',' {
			s.at++
			continue
		}
		s.take(']')
		return
	}
}

// null reads a null if there is one.
func (s *scanner) null() bool {
	if s.err == nil && s.peek() == 'n' {
		s.word("null")
		return s.err == nil
	}
	return false
}

func (s *scanner) word(w string) {
	if s.at+len(w) > len(s.text) || string(s.text[s.at:s.at+len(w)]) != w {
		s.unexpected("a JSON value")
		return
	}
	s.at += len(w)
}

// raw reads a string and returns its text, which is valid until the text of the scanner changes.
func (s *scanner) raw() []byte {
	if !s.take('"') {
		return nil
	}
	start := s.at
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			if out := s.text[start : s.at-1]; utf8.Valid(out) {
				return out
			}
			s.fail("column %d: text is not UTF-8", start)
			return nil
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			s.fail("column %d: control character in a text", s.at+1)
			return nil
		}
	}
	s.fail("the text ends inside a string")
	return nil
}

// escaped reads the rest of a string with escapes.
func (s *scanner) escaped(start int) []byte {
	for s.at < len(s.text) && s.text[s.at] != '"' {
		if s.text[s.at] == '\\' {
			s.at++
		}
		s.at++
	}
	if s.at >= len(s.text) {
		s.fail("the text ends inside a string")
		return nil
	}
	s.at++
	var out string
	if err := json.Unmarshal(s.text[start-1:s.at], &out); err != nil {
		s.fail("column %d: %v", start, err)
		return nil
	}
	return []byte(out)
}

func (s *scanner) string() string { return string(s.raw()) }

// digits returns the text of a number.
func (s *scanner) digits() []byte {
	if s.err != nil {
		return nil
	}
	s.peek()
	start := s.at
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			s.at++
			continue
		}
		break
	}
	if s.at == start {
		s.unexpected("a number")
	}
	return s.text[start:s.at]
}

// unsigned reads a whole number from 0 to max.
func (s *scanner) unsigned(max uint64) uint64 {
	if s.err != nil {
		return 0
	}
	s.peek()
	start, n := s.at, uint64(0)
	for s.at < len(s.text) {
		d := uint64(s.text[s.at] - '0')
		if d > 9 {
			break
		}
		if n > (math.MaxUint64-d)/10 {
			s.fail("column %d: number is too large", start+1)
			return 0
		}
		n = n*10 + d
		s.at++
	}
	following := byte(0)
	if s.at < len(s.text) {
		following = s.text[s.at]
	}
	switch {
	case s.at == start, following == '.', following == 'e', following == 'E':
		s.at = start
		s.unexpected("a whole number that is not negative")
	case s.at-start > 1 && s.text[start] == '0':
		s.fail("column %d: number with leading zeros", start+1)
	case n > max:
		s.fail("column %d: %d is too large, the most is %d", start+1, n, max)
	}
	return n
}

func (s *scanner) count() int { return int(s.unsigned(math.MaxInt32)) }

// signed reads a whole number of 32 bits.
func (s *scanner) signed() int32 {
	text := s.digits()
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || !validNumber(text) {
		s.fail("column %d: %s is not a whole number of 32 bits", s.at-len(text)+1, text)
	}
	return int32(n)
}

// float reads a number.
func (s *scanner) float() float64 {
	text := s.digits()
	if s.err != nil {
		return 0
	}
	if !validNumber(text) {
		s.fail("column %d: %s is not a number", s.at-len(text)+1, text)
		return 0
	}
	x := decimal(text)
	if math.IsInf(x, 0) {
		s.fail("column %d: %s is not a number", s.at-len(text)+1, text)
	}
	return x
}

// validNumber reports whether a text is a number in the grammar of JSON, which is narrower than Go's.
func validNumber(text []byte) bool { return json.Valid(text) }

// ids appends the elements of an array of whole numbers to dst.
func (s *scanner) ids(dst []uint64) []uint64 {
	s.array(func() { dst = append(dst, s.unsigned(math.MaxUint64)) })
	return dst
}

// tokens reads an array of tokens; it is never nil.
func (s *scanner) tokens() []uint32 {
	out := []uint32{}
	s.array(func() { out = append(out, uint32(s.unsigned(math.MaxUint32))) })
	return out
}

// maxDepth bounds how deep skipped values may be nested.
const maxDepth = 128

// skip reads a value of any kind.
func (s *scanner) skip() { s.skipAt(0) }

func (s *scanner) skipAt(depth int) {
	if depth > maxDepth {
		s.fail("column %d: values are nested too deeply", s.at+1)
		return
	}
	switch c := s.peek(); {
	case c == '{':
		s.object(func([]byte) { s.skipAt(depth + 1) })
	case c == '[':
		s.array(func() { s.skipAt(depth + 1) })
	case c == '"':
		s.raw()
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	case c == '-' || c >= '0' && c <= '9':
		if text := s.digits(); !validNumber(text) {
			s.fail("column %d: %s is not a number", s.at-len(text)+1, text)
		}
	default:
		s.unexpected("a JSON value")
	}
}
