package dynamo

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"mockbench/transport/requestplane"
)

// Preprocessed is the body of a generate request: a prompt as tokens, and the settings of the client. Only what the
// simulation reads is kept.
type Preprocessed struct {
	Tokens         Tokens         `json:"token_ids" msgpack:"token_ids"`
	StopConditions StopConditions `json:"stop_conditions" msgpack:"stop_conditions"`
	Annotations    []string       `json:"annotations" msgpack:"annotations"`
	Routing        *Routing       `json:"routing" msgpack:"routing"`
	Bootstrap      *Bootstrap     `json:"bootstrap_info" msgpack:"bootstrap_info"`
	Extra          *ExtraArgs     `json:"extra_args" msgpack:"extra_args"`
}

// StopConditions bound the output.
type StopConditions struct {
	MaxTokens *U32 `json:"max_tokens" msgpack:"max_tokens"`
}

// Routing is what the frontend's router decided.
type Routing struct {
	Rank *U32 `json:"dp_rank" msgpack:"dp_rank"`
}

// Bootstrap tells the two workers of a disaggregated request how to find each other.
type Bootstrap struct {
	Host    string     `json:"bootstrap_host" msgpack:"bootstrap_host"`
	Port    uint16     `json:"bootstrap_port" msgpack:"bootstrap_port"`
	Room    uint64     `json:"bootstrap_room" msgpack:"bootstrap_room"`
	Handoff *HandoffID `json:"handoff_id" msgpack:"handoff_id"`
}

var errNoTokens = errors.New("token_ids is missing")

// decodeBody reads a request body in the codec of its request.
func decodeBody(c requestplane.Codec, body []byte) (*Preprocessed, error) {
	p := new(Preprocessed)
	if err := c.Unmarshal(body, p); err != nil {
		return nil, fmt.Errorf("request body: %w", err)
	}
	if p.Tokens == nil {
		return nil, fmt.Errorf("request body: %w", errNoTokens)
	}
	return p, nil
}

// U32 is an integer that must fit 32 bits. The MessagePack library would cut it silently.
type U32 uint32

// DecodeMsgpack reads an integer of any width.
func (u *U32) DecodeMsgpack(d *msgpack.Decoder) error {
	v, err := decodeU32(d)
	*u = U32(v)
	return err
}

func decodeU32(d *msgpack.Decoder) (uint32, error) {
	code, err := d.PeekCode()
	if err != nil {
		return 0, err
	}
	switch {
	case code <= msgpcode.PosFixedNumHigh || code >= msgpcode.Uint8 && code <= msgpcode.Uint64:
		v, err := d.DecodeUint64()
		if err == nil && v > math.MaxUint32 {
			err = fmt.Errorf("%d does not fit 32 bits", v)
		}
		return uint32(v), err
	case code >= msgpcode.Int8 && code <= msgpcode.Int64 || code >= msgpcode.NegFixedNumLow:
		v, err := d.DecodeInt64()
		if err == nil && (v < 0 || v > math.MaxUint32) {
			err = fmt.Errorf("%d does not fit 32 bits", v)
		}
		return uint32(v), err
	}
	return 0, fmt.Errorf("an integer was expected, got code %#x", code)
}

// Tokens are token ids. In MessagePack they may come packed, as little-endian 32-bit integers in a byte string.
type Tokens []uint32

// DecodeMsgpack reads either form.
func (t *Tokens) DecodeMsgpack(d *msgpack.Decoder) error {
	code, err := d.PeekCode()
	if err != nil {
		return err
	}
	if code >= msgpcode.Bin8 && code <= msgpcode.Bin32 {
		b, err := d.DecodeBytes()
		if err != nil {
			return err
		}
		*t, err = unpackTokens(b)
		return err
	}
	n, err := d.DecodeArrayLen()
	if err != nil || n < 0 {
		return err
	}
	*t = make(Tokens, n)
	for i := range *t {
		if (*t)[i], err = decodeU32(d); err != nil {
			return fmt.Errorf("token %d: %w", i, err)
		}
	}
	return nil
}

func unpackTokens(b []byte) (Tokens, error) {
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("packed token_ids have %d bytes, not a multiple of 4", len(b))
	}
	t := make(Tokens, len(b)/4)
	for i := range t {
		t[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return t, nil
}

// HandoffID names the transfer between a prefill and a decode worker.
type HandoffID uuid.UUID

// DecodeMsgpack reads the 16 bytes that stand for a UUID in MessagePack.
func (h *HandoffID) DecodeMsgpack(d *msgpack.Decoder) error {
	code, err := d.PeekCode()
	if err != nil {
		return err
	}
	if code != msgpcode.Bin8 {
		return fmt.Errorf("handoff_id: 16 bytes were expected, got code %#x", code)
	}
	b, err := d.DecodeBytes()
	if err != nil {
		return err
	}
	id, err := uuid.FromBytes(b)
	*h = HandoffID(id)
	return err
}

// UnmarshalJSON reads the text form.
func (h *HandoffID) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	id, err := uuid.Parse(text)
	*h = HandoffID(id)
	return err
}
