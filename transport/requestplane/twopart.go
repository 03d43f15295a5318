package requestplane

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// headSize is the length of the three numbers in front of a two-part message: header length, body length and a
// checksum that nobody checks and that is written as 0.
const headSize = 24

// ErrIncomplete is returned for bytes that do not hold a whole two-part message.
var ErrIncomplete = errors.New("two-part message is incomplete")

// ErrTooLarge is returned for a message that declares more bytes than its reader accepts.
var ErrTooLarge = errors.New("two-part message is too large")

// AppendMessage adds a two-part message and returns the longer slice.
func AppendMessage(b, header, body []byte) []byte {
	b = appendHead(b, len(header), len(body))
	b = append(b, header...)
	return append(b, body...)
}

func appendHead(b []byte, header, body int) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(header))
	b = binary.BigEndian.AppendUint64(b, uint64(body))
	return binary.BigEndian.AppendUint64(b, 0)
}

// SplitMessage returns the parts of the two-part message at the start of b. Bytes after it are ignored.
func SplitMessage(b []byte) (header, body []byte, err error) {
	if len(b) < headSize {
		return nil, nil, ErrIncomplete
	}
	h, n, rest := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), uint64(len(b)-headSize)
	if h > rest || n > rest-h {
		return nil, nil, ErrIncomplete
	}
	b = b[headSize:]
	return b[:h:h], b[h : h+n : h+n], nil
}

// ReadMessage reads one two-part message of at most limit bytes behind its lengths. It returns io.EOF if the input ends
// between messages.
func ReadMessage(r io.Reader, limit int) (header, body []byte, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, nil, err
	}
	h, n := binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint64(head[8:])
	if h > math.MaxInt32 || n > math.MaxInt32 || h+n > uint64(limit) {
		return nil, nil, ErrTooLarge
	}
	b, err := readGrowing(r, int(h+n))
	if err != nil {
		return nil, nil, inside(err)
	}
	return b[:h:h], b[h:], nil
}

// firstRead bounds what is allocated for a declared length before any byte of it has arrived.
const firstRead = 256 << 10

// readGrowing reads exactly n bytes into a buffer that grows with what arrives.
func readGrowing(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, 0, min(n, firstRead))
	for len(b) < n {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(n, 2*cap(b))), b...)
		}
		got, err := io.ReadFull(r, b[len(b):cap(b)])
		b = b[:len(b)+got]
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}
