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

	// Handoff starts the decode side or the source side of a disaggregated request; nil: this worker has none.
	Handoff func(ctx context.Context, b *Bootstrap) error

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
}

// Serve answers one request.
func (g *Generator) Serve(ctx context.Context, r *requestplane.Request, s *requestplane.Stream) {
	body, err := decodeBody(r.Codec, r.Body)
	if err != nil {
		g.Log.Warn("request refused", "request", r.ID, "error", err)
		_ = s.Refuse(clientMistake(err.Error()))
		return
	}
	o, refusal := g.order(ctx, r.ID, body)
	if refusal != nil {
		g.refuse(s, refusal)
		return
	}
	tokens, err := g.Worker.Submit(o.request)
	if err != nil {
		g.refuse(s, submitRefusal(err))
		return
	}
	if s.Accept() != nil || !g.stream(ctx, r.ID, o, tokens, s) {
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
func (g *Generator) order(ctx context.Context, id string, body *Preprocessed) (*order, *refusal) {
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
	if r := g.handoff(ctx, config.Role, body.Bootstrap); r != nil {
		return nil, r
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

// handoff checks the part of a request that connects a prefill and a decode worker.
func (g *Generator) handoff(ctx context.Context, role engine.Role, b *Bootstrap) *refusal {
	switch {
	case b == nil || role == engine.Aggregated && b.Handoff == nil:
		return nil
	case role == engine.Aggregated:
		return g.pedantic("aggregated mocker request cannot carry handoff metadata")
	case b.Handoff == nil:
		return g.pedantic("disaggregated mocker requires a handoff ID")
	case g.Handoff == nil:
		side := map[bool]string{true: "source", false: "destination"}[role == engine.PrefillRole]
		return &refusal{failure: requestplane.Failure{Reason: requestplane.Unclassified,
			Diagnostic: side + " handoff manager is not initialized"}, early: true}
	}
	if err := g.Handoff(ctx, b); err != nil {
		return &refusal{failure: requestplane.Failure{Reason: requestplane.Unclassified, Diagnostic: err.Error()}, early: true}
	}
	return nil
}
