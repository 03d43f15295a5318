package dynamo

import (
	"encoding/binary"
	"math"

	"mockbench/transport/requestplane"
)

// usage counts the tokens of a request for the client.
type usage struct{ prompt, completion, cached int }

func (u *usage) encode(e *requestplane.Encoder) {
	count := func(key string, n int) {
		e.Key(key)
		e.Uint(min(uint64(max(n, 0)), math.MaxUint32))
	}
	e.Map(4)
	count("prompt_tokens", u.prompt)
	count("completion_tokens", u.completion)
	count("total_tokens", u.prompt+u.completion)
	e.Key("prompt_tokens_details")
	e.Map(2)
	e.Key("audio_tokens")
	e.Nil()
	count("cached_tokens", u.cached)
	e.EndMap()
	e.EndMap()
}

// output is one data frame of an answer.
type output struct {
	token     uint32
	hasToken  bool
	finish    string // finish reason; empty if the answer goes on
	failure   string // text of the finish reason "error"
	prefilled bool   // the frame of a prefill worker that lets the decode worker go on
	usage     *usage
	native    *response // nil: none is asked for
}

// terminal reports whether the answer ends with the frame.
func (o *output) terminal() bool { return o.finish != "" || o.failure != "" }

func (o *output) tokens() []uint32 {
	if o.hasToken {
		return []uint32{o.token}
	}
	return nil
}

func (o *output) encodeTokens(e *requestplane.Encoder) {
	if o.hasToken {
		e.Array(1)
		e.Uint(uint64(o.token))
	} else {
		e.Array(0)
	}
	e.EndArray()
}

const finishLength = "length"

// encode writes the frame with every key that frontends know as always present, in their order.
func (o *output) encode(e *requestplane.Encoder) {
	n := 9
	if o.prefilled {
		n++
	}
	if o.usage != nil {
		n++
	}
	if o.native != nil {
		n++
	}
	e.Map(2)
	e.Key("data")
	e.Map(1)
	e.Key("data")
	e.Map(n)
	e.Key("token_ids")
	o.encodeTokens(e)
	absent(e, "tokens", "text")
	e.Key("output_type")
	e.String("text")
	absent(e, "cum_log_probs", "log_probs", "top_logprobs")
	o.encodeFinish(e)
	absent(e, "index")
	if o.prefilled {
		e.Key("disaggregated_params")
		e.String("dummy")
	}
	if o.usage != nil {
		e.Key("completion_usage")
		o.usage.encode(e)
	}
	if o.native != nil {
		e.Key("engine_data")
		o.native.encode(e, o)
	}
	e.EndMap()
	e.EndMap()
	e.Key("complete_final")
	e.Bool(false)
	e.EndMap()
}

func (o *output) encodeFinish(e *requestplane.Encoder) {
	e.Key("finish_reason")
	switch {
	case o.failure != "":
		e.Map(1)
		e.Key("error")
		e.String(o.failure)
		e.EndMap()
	case o.finish != "":
		e.String(o.finish)
	default:
		e.Nil()
	}
}

func absent(e *requestplane.Encoder, keys ...string) {
	for _, k := range keys {
		e.Key(k)
		e.Nil()
	}
}

// tokenFrame is the frame of a token in the middle of an answer, which is all but constant: almost every frame that a
// worker sends is one of these, so it is encoded once and only the token is written into it. It serves MessagePack and
// ids that take two bytes there.
type tokenFrame struct {
	frame []byte
	place int // of the two bytes
}

// templateToken has both bytes different from everything around its place.
const templateToken = 0xfefd

func newTokenFrame() tokenFrame {
	var e requestplane.Encoder
	o := output{token: templateToken, hasToken: true}
	o.encode(&e)
	for i := range e.Buf {
		if i+1 < len(e.Buf) && binary.BigEndian.Uint16(e.Buf[i:]) == templateToken {
			return tokenFrame{frame: e.Buf, place: i}
		}
	}
	panic("the token is not in its frame")
}

// put adds the frame of one token to an answer.
func (f *tokenFrame) put(s *requestplane.Stream, token uint32) {
	if s.Codec() != requestplane.MsgPack || token <= math.MaxUint8 || token > math.MaxUint16 {
		o := output{token: token, hasToken: true}
		s.Encode(o.encode)
		return
	}
	binary.BigEndian.PutUint16(f.frame[f.place:], uint16(token))
	s.Data(f.frame)
}
