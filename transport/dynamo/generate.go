package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/outputs"
	"mockbench/transport/requestplane"
)

// Worker is the part of a live worker that answers requests.
type Worker interface {
	Submit(live.Request) (*live.Stream, error)
	Ranks() int
	Config() engine.Config
}

// Generator answers generate requests with a worker's tokens. It is a request plane handler.
type Generator struct {
	Worker Worker
	Index  int    // number of the worker in the process; with Seed it decides the tokens clients see
	Seed   uint64 //
	Quirks bool   // answer client mistakes and rejections exactly as the reference does

	Reasoning *outputs.Reasoning // nil: no reasoning span
	Replay    *outputs.Table     // recorded answers; nil: none were loaded
	Log       *slog.Logger

	// Prefilled is called when the first token of a request leaves that a router placed on a rank; may be nil. It must
	// not block.
	Prefilled func(request string, rank int)

	// Handoffs joins requests with their other halves; nil: this worker is neither a prefill nor a decode worker.
	Handoffs *Handoffs

	count atomic.Uint64 // of requests, for their tokens
}

// order is a request that passed the checks.
type order struct {
	request live.Request
	answer  answer
	limit   int  // tokens expected
	placed  bool // a router chose the rank
	prefill bool // the answer is for a decode worker
	native  *native

	handoff   *Bootstrap  // to be joined with another worker's request; nil: stands alone
	started   func()      // called when the frontend was told that the request is being answered; nil: nothing to do
	abandoned func()      // called instead if it could not be told
	ending    ending      // nil: the answer ends with its stream
	complete  atomic.Bool // all tokens of the answer were sent
}

// Serve answers one request.
func (g *Generator) Serve(ctx context.Context, r *requestplane.Request, s *requestplane.Stream) {
	body, err := decodeBody(r.Codec, r.Body)
	if err != nil {
		g.Log.Warn("request refused", "request", r.ID, "error", err)
		_ = s.Refuse(clientMistake(err.Error()))
		return
	}
	o, refusal := g.order(r.ID, body)
	if refusal != nil {
		g.refuse(s, refusal)
		return
	}
	tokens, refusal := g.begin(ctx, r.ID, o)
	if refusal != nil {
		g.refuse(s, refusal)
		return
	}
	if err := s.Accept(); err != nil {
		tokens.Cancel()
		if o.abandoned != nil {
			o.abandoned()
		}
		return
	}
	if o.started != nil {
		o.started()
	}
	if !g.stream(ctx, r.ID, o, tokens, s) {
		tokens.Cancel()
	}
}

// refusal is a request that never reaches the engine.
type refusal struct {
	failure requestplane.Failure
	early   bool // refuse before the stream: the worker is the cause, or the reference does so
}

func (g *Generator) refuse(s *requestplane.Stream, r *refusal) {
	if r.early {
		_ = s.Refuse(&r.failure)
		return
	}
	if s.Accept() != nil {
		return
	}
	s.Fail(&r.failure)
	_ = s.Finish()
}

func clientMistake(text string) *requestplane.Failure {
	return &requestplane.Failure{Reason: requestplane.InvalidArgument, Diagnostic: text, Public: text}
}

func mistake(text string) *refusal { return &refusal{failure: *clientMistake(text)} }

// pedantic is a client's mistake for which the reference takes the blame itself.
func (g *Generator) pedantic(text string) *refusal {
	if g.Quirks {
		return &refusal{failure: requestplane.Failure{Reason: requestplane.Unclassified, Diagnostic: text}, early: true}
	}
	return mistake(text)
}

// unexplained is a client's mistake that the reference does not explain to the client.
func (g *Generator) unexplained(text string) *refusal {
	r := mistake(text)
	if g.Quirks {
		r.failure.Public = ""
	}
	return r
}

func submitRefusal(err error) *refusal {
	if setting := (*engine.SettingError)(nil); errors.As(err, &setting) {
		return mistake(err.Error())
	}
	return &refusal{failure: shutdown(err), early: true}
}

// shutdown is the failure that lets a frontend try another worker.
func shutdown(err error) requestplane.Failure {
	return requestplane.Failure{Reason: requestplane.EngineShutdown, Diagnostic: err.Error(), Public: "the worker is shutting down"}
}

// order checks a request and turns it into one for the engine.
func (g *Generator) order(id string, body *Preprocessed) (*order, *refusal) {
	config := g.Worker.Config()
	prefill := config.Role == engine.PrefillRole
	o := &order{prefill: prefill, request: live.Request{Label: id, Prompt: body.Tokens, Rank: -1}}
	var err error
	if o.native, err = body.Extra.native(); err != nil {
		return nil, g.unexplained(err.Error())
	}
	if body.Routing != nil && body.Routing.Rank != nil {
		rank := int(*body.Routing.Rank)
		if rank >= g.Worker.Ranks() {
			return nil, mistake(fmt.Sprintf("dp_rank %d is out of bounds for dp_size %d", rank, g.Worker.Ranks()))
		}
		o.request.Rank, o.placed = rank, true
	}
	if body.StopConditions.MaxTokens == nil && !prefill {
		return nil, &refusal{failure: requestplane.Failure{Reason: requestplane.InvalidArgument,
			Diagnostic: "max_output_tokens must be specified for mocker",
			Public:     "`max_output_tokens` (or `max_tokens`) is required by the mocker worker"}}
	}
	if r := g.checkHandoff(&config, body.Bootstrap); r != nil {
		return nil, r
	}
	if config.Role != engine.Aggregated {
		o.handoff = body.Bootstrap
	}
	if r := g.measure(o, id, body); r != nil {
		return nil, r
	}
	o.answer.seed = answerSeed(g.Seed, g.Index, g.count.Add(1)-1)
	return o, nil
}

// measure decides how long the answer is to be, and what is known of it.
func (g *Generator) measure(o *order, id string, body *Preprocessed) *refusal {
	budget := 1
	if !o.prefill {
		budget = int(*body.StopConditions.MaxTokens)
	}
	if planned, ok := g.recorded(id, o, body.Annotations); ok {
		if o.prefill && len(planned) > 1 {
			planned = planned[:1]
		}
		o.answer.planned, budget = planned, len(planned)
	}
	if budget == 0 {
		return g.pedantic("live requests must generate at least one output token")
	}
	o.request.MaxOutput, o.request.Output = budget, o.answer.planned
	o.limit = budget
	if limit := g.Worker.Config().MaxModelLen; limit > 0 {
		o.limit = min(budget, limit-len(body.Tokens))
	}
	if o.answer.planned == nil {
		o.answer.reasoning, o.answer.span = g.Reasoning, g.Reasoning.Span(o.limit)
		if g.Quirks {
			o.answer.span = g.Reasoning.Span(budget)
		}
	}
	return nil
}

// recorded returns the recorded answer that a request asks for: by an annotation, or by the id of a native request.
func (g *Generator) recorded(id string, o *order, annotations []string) ([]uint32, bool) {
	for _, a := range annotations {
		key, ok := strings.CutPrefix(a, replayAnnotation)
		if !ok {
			continue
		}
		tokens, found := g.Replay.Lookup(key)
		switch {
		case found:
			return tokens, true
		case g.Replay == nil:
			g.Log.Warn("request asks for a recorded answer but none were loaded", "request", id, "replay_key", key)
		default:
			g.Log.Warn("request asks for a recorded answer that does not exist", "request", id, "replay_key", key)
		}
		return nil, false
	}
	if o.native != nil && g.Replay != nil && !o.prefill {
		return g.Replay.Lookup(o.native.id(id))
	}
	return nil, false
}
