package dynamo

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/spawn"
	"mockbench/transport/bootstrap"
	"mockbench/transport/requestplane"
)

// Handoffs joins the requests of a prefill or decode worker with their other halves at another worker.
type Handoffs struct {
	Worker  *live.Worker
	Server  *bootstrap.Server // where decode workers reach this prefill worker; nil: requests are not joined
	Timeout time.Duration     // of a session, without the modelled transfer
	Log     *slog.Logger

	mu       sync.Mutex
	sessions map[int]int // by rank
	running  sync.WaitGroup

	ctx  context.Context // of the sessions of a decode worker, which may outlive their answers
	stop context.CancelFunc
}

// NewHandoffs returns the handoffs of a worker. Close ends them.
func NewHandoffs(w *live.Worker, server *bootstrap.Server, timeout time.Duration, log *slog.Logger) *Handoffs {
	h := &Handoffs{Worker: w, Server: server, Timeout: timeout, Log: log, sessions: map[int]int{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// SessionLimit returns how many handoffs a rank takes part in at a time.
func SessionLimit(c *engine.Config) int {
	if c.MaxNumSeqs == engine.Unlimited {
		return max(c.NumGPUBlocks, 1)
	}
	return int(min(max(c.MaxNumSeqs, 1), 1<<30))
}

// Close ends the sessions of a decode worker, whose clients have their answers by now or are cut off. The sessions of a
// prefill worker end with its Server.
func (h *Handoffs) Close() {
	h.stop()
	h.running.Wait()
}

// enter lets a session in unless its rank has too many.
func (h *Handoffs) enter(rank int) bool {
	c := h.Worker.Config()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[rank] >= SessionLimit(&c) {
		return false
	}
	h.sessions[rank]++
	h.running.Add(1)
	return true
}

func (h *Handoffs) leave(rank int) {
	h.mu.Lock()
	h.sessions[rank]--
	h.mu.Unlock()
	h.running.Done()
}

// ending is called when the last token of an answer was sent, or when its stream ended otherwise. It waits for whatever
// the end of the answer has to wait for, and returns the text of an error that replaces the end, if there is one. An
// error means that the client is gone.
type ending func(ctx context.Context, end live.End) (text string, err error)

// checkHandoff checks the part of a request that connects a prefill and a decode worker.
func (g *Generator) checkHandoff(c *engine.Config, b *Bootstrap) *refusal {
	early := func(text string) *refusal {
		return &refusal{failure: requestplane.Failure{Reason: requestplane.Unclassified, Diagnostic: text}, early: true}
	}
	switch {
	case b == nil || c.Role == engine.Aggregated && b.Handoff == nil:
		return nil
	case c.Role == engine.Aggregated:
		return g.pedantic("aggregated mocker request cannot carry handoff metadata")
	case b.Handoff == nil:
		return g.pedantic("disaggregated mocker requires a handoff ID")
	case g.Handoffs == nil || c.Role == engine.PrefillRole && g.Handoffs.Server == nil:
		side := map[bool]string{true: "source", false: "destination"}[c.Role == engine.PrefillRole]
		return early(side + " handoff manager is not initialized")
	case c.Backend == engine.TRTLLM:
		return early("mocker handoff does not support TRT-LLM")
	}
	return nil
}

// begin hands an order to the engine, with its handoff if it has one.
func (g *Generator) begin(ctx context.Context, id string, o *order) (*live.Stream, *refusal) {
	h := g.Handoffs
	switch {
	case o.handoff == nil:
		if o.prefill && h != nil {
			o.ending = h.transferTime(o)
		}
		tokens, err := g.Worker.Submit(o.request)
		if err != nil {
			return nil, submitRefusal(err)
		}
		return tokens, nil
	case o.prefill:
		return h.source(ctx, id, o)
	}
	return h.destination(ctx, id, o)
}

// transferTime lets the answer of a prefill worker end when its KV would have been transferred.
func (h *Handoffs) transferTime(o *order) ending {
	c := h.Worker.Config()
	timing := bootstrap.TimingOf(&c, len(o.request.Prompt))
	ms, ok := timing.Of(timing.Tokens)
	if !ok {
		return nil
	}
	return func(ctx context.Context, end live.End) (string, error) {
		if end != live.Finished {
			return "", nil
		}
		return "", h.Worker.Sleep(ctx, engine.Time(ms))
	}
}

// source joins a request of a prefill worker with that of a decode worker. The engine sees it when both have met.
func (h *Handoffs) source(ctx context.Context, id string, o *order) (*live.Stream, *refusal) {
	t, refusal := h.prepare(h.Worker.Source, o)
	if refusal != nil {
		return nil, refusal
	}
	result := make(chan error, 1)
	o.started = func() {
		spawn.Go("handoff source", func() {
			defer h.leave(t.Rank)
			result <- h.Server.Source(ctx, identityOf(id, o.handoff), t)
		})
	}
	o.abandoned = func() { h.leave(t.Rank) }
	o.ending = func(ctx context.Context, end live.End) (string, error) {
		if end == live.Rejected {
			return "", nil
		}
		return await(ctx, result)
	}
	return t.Stream, nil
}

// destination joins a request of a decode worker with that of a prefill worker. The connection stands before the
// frontend is told that the request is being answered.
func (h *Handoffs) destination(ctx context.Context, id string, o *order) (*live.Stream, *refusal) {
	t, refused := h.prepare(h.Worker.Destination, o)
	if refused != nil {
		return nil, refused
	}
	d, err := bootstrap.Connect(ctx, bootstrap.DialOptions{Host: o.handoff.Host, Port: o.handoff.Port, Identity: identityOf(id, o.handoff),
		Rank: t.Rank, Backend: h.Worker.Config().Backend, Timeout: h.Timeout, Log: h.Log})
	if err != nil {
		h.leave(t.Rank)
		return nil, &refusal{failure: requestplane.Failure{Reason: requestplane.Unclassified, Diagnostic: err.Error()}, early: true}
	}
	session, drop := context.WithCancel(h.ctx)
	result := make(chan error, 1)
	o.started = func() {
		context.AfterFunc(ctx, func() {
			if !o.complete.Load() {
				drop()
			}
		})
		spawn.Go("handoff destination", func() {
			defer h.leave(t.Rank)
			defer drop()
			result <- d.Run(session, t)
		})
	}
	o.abandoned = func() {
		d.Abandon()
		drop()
		h.leave(t.Rank)
	}
	o.ending = func(ctx context.Context, end live.End) (string, error) {
		if end == live.Finished {
			o.complete.Store(true)
			return "", nil
		}
		drop() // unless the session itself has ended the stream
		text, err := await(ctx, result)
		if text != "" {
			text = bootstrap.ErrEnded.Error()
		}
		return text, err
	}
	return t.Stream, nil
}

// prepare makes the transfer of a request and lets its session in.
func (h *Handoffs) prepare(side func(live.Request, engine.ID) (*live.Transfer, error), o *order) (*live.Transfer, *refusal) {
	t, err := side(o.request, engine.ID(*o.handoff.Handoff))
	if err != nil {
		return nil, submitRefusal(err)
	}
	if !h.enter(t.Rank) {
		return nil, &refusal{failure: requestplane.Failure{Reason: requestplane.Unclassified,
			Diagnostic: fmt.Sprintf("mocker handoff session limit reached for DP rank %d", t.Rank)}, early: true}
	}
	return t, nil
}

// await waits for the result of a session.
func await(ctx context.Context, result chan error) (text string, err error) {
	select {
	case err := <-result:
		if err != nil {
			return err.Error(), nil
		}
		return "", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// identityOf names the session of a request. Both workers get the same request id; one that is no UUID is turned into
// one, in the same way on both sides.
func identityOf(request string, b *Bootstrap) bootstrap.Identity {
	id, err := uuid.Parse(request)
	if err != nil {
		id = uuid.NewSHA1(uuid.NameSpaceOID, []byte(request))
	}
	return bootstrap.Identity{Handoff: uuid.UUID(*b.Handoff), Room: b.Room, Request: id}
}
