package dynamo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/vmihailenco/msgpack/v5"

	"mockbench/transport/requestplane"
	"mockbench/transport/wire"
)

// nativeKey is the extra argument of requests whose answer is to carry SGLang's own form as well.
const nativeKey = "sglang_tito"

// maxTopLogprobs is the longest list of alternatives to a token.
const maxTopLogprobs = 20

// ExtraArgs are the free-form arguments of a request. They may be large and are looked at only if something known is
// in them.
type ExtraArgs struct {
	raw     []byte
	msgpack bool
}

// DecodeMsgpack keeps the value as it is.
func (x *ExtraArgs) DecodeMsgpack(d *msgpack.Decoder) (err error) {
	raw, err := d.DecodeRaw()
	x.raw, x.msgpack = raw, true
	return err
}

// UnmarshalJSON keeps the value as it is.
func (x *ExtraArgs) UnmarshalJSON(b []byte) error {
	x.raw = append([]byte(nil), b...)
	return nil
}

// native is what a request says about the form of its answer.
type native struct {
	RID           *string `json:"rid"`
	ReturnLogprob *bool   `json:"return_logprob"`
	TopLogprobs   *int    `json:"top_logprobs_num"`
	LogprobStart  *int    `json:"logprob_start_len"`
}

// native returns the arguments of a native request, nil for others.
func (x *ExtraArgs) native() (*native, error) {
	if x == nil || !bytes.Contains(x.raw, []byte(nativeKey)) {
		return nil, nil
	}
	text := x.raw
	if x.msgpack {
		var err error
		if text, err = wire.AppendJSON(nil, x.raw); err != nil {
			return nil, fmt.Errorf("invalid extra_args: %w", err)
		}
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(text, &args) != nil || args[nativeKey] == nil {
		return nil, nil
	}
	n := new(native)
	if err := json.Unmarshal(args[nativeKey], n); err != nil {
		return nil, fmt.Errorf("invalid extra_args.%s: %w", nativeKey, err)
	}
	switch {
	case n.top() < 0 || n.top() > maxTopLogprobs:
		return nil, fmt.Errorf("top_logprobs_num must be between 0 and %d", maxTopLogprobs)
	case n.start() < -1:
		return nil, fmt.Errorf("logprob_start_len must be -1 or greater")
	}
	return n, nil
}

// id returns the request's id in its native answer.
func (n *native) id(request string) string {
	if n.RID != nil {
		return *n.RID
	}
	return request
}

func (n *native) logprobs() bool { return n.ReturnLogprob != nil && *n.ReturnLogprob }

func (n *native) top() int {
	if n.TopLogprobs == nil {
		return 0
	}
	return *n.TopLogprobs
}

// start is the first prompt token whose log-probability is told, -1 for none.
func (n *native) start() int {
	if n.LogprobStart == nil {
		return -1
	}
	return *n.LogprobStart
}

// response is the native part of one frame.
type response struct {
	args       *native
	id         string
	prompt     []uint32
	completion int // tokens so far
}

// encode writes the frame's engine data.
func (r *response) encode(e *requestplane.Encoder, o *output) {
	e.Map(1)
	e.Key("sglang_response")
	e.Map(2)
	e.Key("output_ids")
	o.encodeTokens(e)
	e.Key("meta_info")
	r.encodeMeta(e, o)
	e.EndMap()
	e.EndMap()
}

func (r *response) encodeMeta(e *requestplane.Encoder, o *output) {
	outputs, inputs := r.args.logprobs(), r.args.logprobs() && o.terminal() && r.args.start() >= 0
	n, lists := 4, 1
	if r.args.top() > 0 {
		lists = 2
	}
	if outputs {
		n += lists
	}
	if inputs {
		n += lists
	}
	e.Map(n)
	e.Key("id")
	e.String(r.id)
	e.Key("finish_reason")
	r.encodeFinish(e, o)
	e.Key("prompt_tokens")
	e.Uint(uint64(len(r.prompt)))
	e.Key("completion_tokens")
	e.Uint(uint64(r.completion))
	if outputs {
		r.encodeLogprobs(e, "output", o.tokens(), false)
	}
	if inputs {
		r.encodeLogprobs(e, "input", r.prompt[min(r.args.start(), len(r.prompt)):], true)
	}
	e.EndMap()
}

func (r *response) encodeFinish(e *requestplane.Encoder, o *output) {
	switch {
	case o.failure != "":
		e.Map(2)
		encodeText(e, "type", "abort")
		encodeText(e, "message", o.failure)
		e.EndMap()
	case o.finish != "":
		e.Map(1)
		encodeText(e, "type", o.finish)
		e.EndMap()
	default:
		e.Nil()
	}
}

func encodeText(e *requestplane.Encoder, key, value string) {
	e.Key(key)
	e.String(value)
}

// encodeLogprobs writes the log-probabilities of tokens and, if asked for, of their alternatives. The first token of a
// prompt has none.
func (r *response) encodeLogprobs(e *requestplane.Encoder, side string, tokens []uint32, blankFirst bool) {
	e.Key(side + "_token_logprobs")
	e.Array(len(tokens))
	for i, t := range tokens {
		encodeLogprob(e, logprob(t), t, blankFirst && i == 0)
	}
	e.EndArray()
	if r.args.top() == 0 {
		return
	}
	e.Key(side + "_top_logprobs")
	e.Array(len(tokens))
	for i, t := range tokens {
		if blankFirst && i == 0 {
			e.Nil()
			continue
		}
		e.Array(r.args.top())
		for k := range r.args.top() {
			id := uint32(min(uint64(t)+uint64(k), math.MaxUint32))
			encodeLogprob(e, topLogprob(id, k), id, false)
		}
		e.EndArray()
	}
	e.EndArray()
}

func encodeLogprob(e *requestplane.Encoder, value float64, token uint32, blank bool) {
	e.Array(3)
	if blank {
		e.Nil()
	} else {
		e.Float(value)
	}
	e.Uint(uint64(token))
	e.Nil()
	e.EndArray()
}

// logprob is the made-up log-probability of a token.
func logprob(token uint32) float64 { return -0.1 * float64(token%10+1) }

// topLogprob is that of the k-th alternative.
func topLogprob(token uint32, k int) float64 { return logprob(token) - 0.01*float64(k) }
