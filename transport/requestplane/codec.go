package requestplane

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"

	"mockbench/transport/wire"
)

// Codec is the form of request bodies and answer frames.
type Codec uint8

const (
	MsgPack Codec = iota
	JSON
)

// String returns the codec's name on the wire.
func (c Codec) String() string {
	if c == JSON {
		return "json"
	}
	return "msgpack"
}

// ParseCodec reads a codec's name.
func ParseCodec(name string) (Codec, error) {
	switch name {
	case "msgpack":
		return MsgPack, nil
	case "json":
		return JSON, nil
	}
	return 0, fmt.Errorf("payload codec must be msgpack or json, got %q", name)
}

// Unmarshal decodes a body that came from the network. Types with a form of their own in MessagePack implement
// msgpack.CustomDecoder.
func (c Codec) Unmarshal(body []byte, v any) error {
	if c == JSON {
		return json.Unmarshal(body, v)
	}
	if err := wire.Check(body); err != nil {
		return err
	}
	return msgpack.Unmarshal(body, v)
}

// Encoder writes maps and values in either codec, in the shortest form and in the order of the calls. The zero value
// writes MessagePack.
type Encoder struct {
	Codec Codec
	Buf   []byte

	more  bool // JSON: a value stands before the next one
	keyed bool // JSON: the next value belongs to a key
}

// Reset empties the buffer and keeps its memory.
func (e *Encoder) Reset() { e.Buf, e.more, e.keyed = e.Buf[:0], false, false }

func (e *Encoder) separate() {
	if e.more && !e.keyed {
		e.Buf = append(e.Buf, ',')
	}
	e.more, e.keyed = true, false
}

func (e *Encoder) open(c byte) {
	e.separate()
	e.Buf = append(e.Buf, c)
	e.more = false
}

func (e *Encoder) close(c byte) {
	if e.Codec == JSON {
		e.Buf = append(e.Buf, c)
		e.more = true
	}
}

// Map starts a map of n entries; EndMap ends it.
func (e *Encoder) Map(n int) {
	if e.Codec == JSON {
		e.open('{')
	} else {
		e.Buf = wire.AppendMap(e.Buf, n)
	}
}

// EndMap ends the innermost map.
func (e *Encoder) EndMap() { e.close('}') }

// Array starts an array of n values; EndArray ends it.
func (e *Encoder) Array(n int) {
	if e.Codec == JSON {
		e.open('[')
	} else {
		e.Buf = wire.AppendArray(e.Buf, n)
	}
}

// EndArray ends the innermost array.
func (e *Encoder) EndArray() { e.close(']') }

// Key writes the key of the next value.
func (e *Encoder) Key(name string) {
	e.String(name)
	if e.Codec == JSON {
		e.Buf = append(e.Buf, ':')
		e.keyed = true
	}
}

// String writes a text.
func (e *Encoder) String(s string) {
	if e.Codec == JSON {
		e.separate()
		e.Buf = appendQuoted(e.Buf, s)
	} else {
		e.Buf = wire.AppendString(e.Buf, s)
	}
}

// Uint writes an unsigned integer.
func (e *Encoder) Uint(v uint64) {
	if e.Codec == JSON {
		e.separate()
		e.Buf = strconv.AppendUint(e.Buf, v, 10)
	} else {
		e.Buf = wire.AppendUint(e.Buf, v)
	}
}

// Float writes a number that is not an integer by nature, such as a log-probability.
func (e *Encoder) Float(v float64) {
	if e.Codec == MsgPack {
		e.Buf = wire.AppendFloat(e.Buf, v)
		return
	}
	e.separate()
	if text, err := wire.AppendJSON(e.Buf, wire.AppendFloat(nil, v)); err == nil {
		e.Buf = text
	} else { // infinities and NaN have no form in JSON
		e.Buf = append(e.Buf, "null"...)
	}
}

// Bool writes a boolean.
func (e *Encoder) Bool(v bool) {
	if e.Codec == JSON {
		e.separate()
		e.Buf = strconv.AppendBool(e.Buf, v)
	} else {
		e.Buf = wire.AppendBool(e.Buf, v)
	}
}

// Nil writes the absence of a value.
func (e *Encoder) Nil() {
	if e.Codec == JSON {
		e.separate()
		e.Buf = append(e.Buf, "null"...)
	} else {
		e.Buf = wire.AppendNil(e.Buf)
	}
}

// Raw writes a value that is already encoded.
func (e *Encoder) Raw(value []byte) {
	if e.Codec == JSON {
		e.separate()
	}
	e.Buf = append(e.Buf, value...)
}

// appendQuoted adds a JSON string without the escapes for HTML that encoding/json would add.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}
