package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// AppendJSON adds the JSON form of one MessagePack value, keys in the same order. Byte strings become base64 text.
// Values that JSON cannot express (NaN, infinities, extension types, keys that are not strings) are errors.
func AppendJSON(b, msg []byte) ([]byte, error) {
	if err := Check(msg); err != nil {
		return b, err
	}
	b, _, err := appendJSON(b, msg)
	return b, err
}

// appendJSON translates the first value of a checked input and returns what follows it.
func appendJSON(b, in []byte) (out, rest []byte, err error) {
	h, err := readHead(in)
	if err != nil {
		return b, in, err
	}
	in = in[h.size:]
	content := in[:h.bytes]
	in = in[h.bytes:]
	switch h.kind {
	case kindNil:
		return append(b, "null"...), in, nil
	case kindBool:
		return strconv.AppendBool(b, h.value == 1), in, nil
	case kindUint:
		return strconv.AppendUint(b, h.value, 10), in, nil
	case kindInt:
		return strconv.AppendInt(b, int64(h.value), 10), in, nil
	case kindFloat32:
		b, err = appendFloat(b, float64(math.Float32frombits(uint32(h.value))), 32)
		return b, in, err
	case kindFloat64:
		b, err = appendFloat(b, math.Float64frombits(h.value), 64)
		return b, in, err
	case kindString:
		return appendText(b, string(content)), in, nil
	case kindBinary:
		return appendText(b, base64.StdEncoding.EncodeToString(content)), in, nil
	case kindArray:
		return appendItems(b, in, h.items)
	case kindMap:
		return appendEntries(b, in, h.items/2)
	}
	return b, in, fmt.Errorf("msgpack: an extension type has no JSON form")
}

func appendItems(b, in []byte, n uint64) (out, rest []byte, err error) {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if b, in, err = appendJSON(b, in); err != nil {
			return b, in, err
		}
	}
	return append(b, ']'), in, nil
}

func appendEntries(b, in []byte, n uint64) (out, rest []byte, err error) {
	b = append(b, '{')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		h, err := readHead(in)
		if err != nil {
			return b, in, err
		}
		if h.kind != kindString {
			return b, in, fmt.Errorf("msgpack: a map key that is not a string has no JSON form")
		}
		if b, in, err = appendJSON(b, in); err != nil {
			return b, in, err
		}
		if b, in, err = appendJSON(append(b, ':'), in); err != nil {
			return b, in, err
		}
	}
	return append(b, '}'), in, nil
}

func appendFloat(b []byte, v float64, bits int) ([]byte, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return b, fmt.Errorf("msgpack: %v has no JSON form", v)
	}
	whole := len(b)
	b = strconv.AppendFloat(b, v, 'g', -1, bits)
	for _, c := range b[whole:] {
		if c == '.' || c == 'e' {
			return b, nil
		}
	}
	return append(b, ".0"...), nil
}

func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always has a JSON form
	return append(b, text...)
}
