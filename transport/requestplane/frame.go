package requestplane

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// DefaultMaxMessage is the largest request frame, in bytes, that frontends and workers accept unless told otherwise.
const DefaultMaxMessage = 32 << 20

// frameOverhead is the length of the three lengths in a request frame; they count towards its limit.
const frameOverhead = 8

// Frame is one request as it stands on the wire.
type Frame struct {
	Path    string
	Headers []byte // a JSON object of strings, possibly empty or invalid
	Payload []byte // one two-part message
}

// SizeError is a frame that exceeds the limit; none of its payload was read.
type SizeError struct{ Size, Limit int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("request frame has %d bytes, at most %d are accepted", e.Size, e.Limit)
}

// ReadFrame reads one request frame of at most limit bytes in all. It returns io.EOF if the input ends between frames.
func ReadFrame(r *bufio.Reader, limit int) (Frame, error) {
	path, err := readShort(r)
	if err != nil {
		return Frame{}, err
	}
	headers, err := readShort(r)
	if err != nil {
		return Frame{}, inside(err)
	}
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return Frame{}, inside(err)
	}
	n := int(binary.BigEndian.Uint32(length[:]))
	if size := frameOverhead + len(path) + len(headers) + n; size > limit {
		return Frame{}, &SizeError{Size: size, Limit: limit}
	}
	payload, err := readGrowing(r, n)
	if err != nil {
		return Frame{}, inside(err)
	}
	return Frame{Path: string(path), Headers: headers, Payload: payload}, nil
}

// readShort reads a field with a 16-bit length.
func readShort(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, b)
	return b, inside(err)
}

// inside turns the end of the input in the middle of a frame into an error of its own.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// sentAt returns when the frontend says it sent the frame; zero if it does not say.
func (f Frame) sentAt() time.Time {
	var headers struct {
		Sent string `json:"x-frontend-send-ts-ns"`
	}
	if json.Unmarshal(f.Headers, &headers) != nil {
		return time.Time{}
	}
	ns, err := strconv.ParseInt(headers.Sent, 10, 64)
	if err != nil || ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// The words that frontends look for at the start of an acknowledgement. Every other text accepts the request.
const (
	prefixOverloaded  = "Server overloaded:"
	prefixUnavailable = "Server unavailable:"
)

// Ack is what a worker says to a request frame.
type Ack string

// Append adds the acknowledgement as it stands on the wire.
func (a Ack) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(a)))
	return append(b, a...)
}

func ackUnknown(path string) Ack {
	return Ack(prefixUnavailable + " unknown endpoint " + strings.ToValidUTF8(path, "\ufffd"))
}

func ackTooLarge(e *SizeError) Ack {
	return Ack(fmt.Sprintf("Read error: message too large: %d bytes (max: %d bytes)", e.Size, e.Limit))
}

const (
	ackAccepted   Ack = ""
	ackOverloaded Ack = prefixOverloaded + " worker at capacity"
	ackNoReturn   Ack = prefixUnavailable + " the request does not say where to send the answer"
)
