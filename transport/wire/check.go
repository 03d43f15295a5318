// Package wire holds the small MessagePack pieces that all wires share: a check to run over bytes from the network
// before any decoder sees them, appending encoders for the messages that are built for every pass, and a translation
// to JSON for peers that speak it.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxDepth is the deepest nesting of arrays and maps that Check accepts.
const MaxDepth = 128

// Errors of Check, wrapped with the position in the input.
var (
	ErrTruncated = errors.New("value is cut off")
	ErrLength    = errors.New("declared length exceeds the input")
	ErrDepth     = fmt.Errorf("nesting deeper than %d", MaxDepth)
	ErrCode      = errors.New("unused code 0xc1")
	ErrTrailing  = errors.New("bytes after the value")
)

// Check reports whether b is exactly one well-formed MessagePack value. It allocates nothing and never trusts a
// declared length, so it belongs in front of decoders that do: they end the process on hostile lengths and depths.
func Check(b []byte) error {
	rest, err := skip(b, 0)
	if err == nil && len(rest) > 0 {
		err = ErrTrailing
	}
	if err != nil {
		return fmt.Errorf("msgpack: %w at byte %d of %d", err, len(b)-len(rest), len(b))
	}
	return nil
}

// skip returns what follows the first value of b; with an error, what was left when it was found.
func skip(b []byte, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return b, ErrDepth
	}
	h, err := readHead(b)
	if err != nil {
		return b, err
	}
	b = b[h.size:]
	if h.bytes > uint64(len(b)) {
		return b, ErrLength
	}
	b = b[h.bytes:]
	if h.items > uint64(len(b)) {
		return b, ErrLength
	}
	for range h.items {
		if b, err = skip(b, depth+1); err != nil {
			return b, err
		}
	}
	return b, nil
}

// kind is the type of a value.
type kind uint8

const (
	kindNil kind = iota
	kindBool
	kindUint
	kindInt
	kindFloat32
	kindFloat64
	kindString
	kindBinary
	kindExtension
	kindArray
	kindMap
)

// head is the first part of a value: its type and how much follows.
type head struct {
	kind  kind
	size  int    // bytes of the head itself
	bytes uint64 // bytes of content after it
	items uint64 // values after it; two for each entry of a map
	value uint64 // the number itself: bool, integer (two's complement) or bits of a float
}

// readHead reads the head of the first value of b.
func readHead(b []byte) (head, error) {
	if len(b) == 0 {
		return head{}, ErrTruncated
	}
	c := b[0]
	switch {
	case c < 0x80:
		return head{kind: kindUint, size: 1, value: uint64(c)}, nil
	case c < 0x90:
		return head{kind: kindMap, size: 1, items: 2 * uint64(c&0x0f)}, nil
	case c < 0xa0:
		return head{kind: kindArray, size: 1, items: uint64(c & 0x0f)}, nil
	case c < 0xc0:
		return head{kind: kindString, size: 1, bytes: uint64(c & 0x1f)}, nil
	case c >= 0xe0:
		return head{kind: kindInt, size: 1, value: uint64(int64(int8(c)))}, nil
	case c == 0xc1:
		return head{}, ErrCode
	}
	width := widths[c-0xc0]
	if len(b) < 1+width {
		return head{}, ErrTruncated
	}
	n := bigEndian(b[1 : 1+width])
	h := head{size: 1 + width}
	switch {
	case c == 0xc0:
		h.kind = kindNil
	case c <= 0xc3:
		h.kind, h.value = kindBool, uint64(c-0xc2)
	case c <= 0xc6:
		h.kind, h.bytes = kindBinary, n
	case c <= 0xc9:
		h.kind, h.bytes = kindExtension, n+1
	case c == 0xca:
		h.kind, h.value = kindFloat32, n
	case c == 0xcb:
		h.kind, h.value = kindFloat64, n
	case c <= 0xcf:
		h.kind, h.value = kindUint, n
	case c <= 0xd3:
		h.kind, h.value = kindInt, signExtend(n, width)
	case c <= 0xd8:
		h.kind, h.bytes = kindExtension, 1+1<<(c-0xd4)
	case c <= 0xdb:
		h.kind, h.bytes = kindString, n
	case c <= 0xdd:
		h.kind, h.items = kindArray, n
	default:
		h.kind, h.items = kindMap, 2*n
	}
	return h, nil
}

// widths is the number of bytes between code and content for codes 0xc0 to 0xdf.
var widths = [32]int{
	0, 0, 0, 0, // nil, unused, false, true
	1, 2, 4, // binary
	1, 2, 4, // extension
	4, 8, // floats
	1, 2, 4, 8, // unsigned
	1, 2, 4, 8, // signed
	0, 0, 0, 0, 0, // fixed extension
	1, 2, 4, // string
	2, 4, // array
	2, 4, // map
}

func bigEndian(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func signExtend(n uint64, width int) uint64 {
	shift := 64 - 8*width
	return uint64(int64(n<<shift) >> shift)
}
