package bootstrap

import (
	"context"
	"errors"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
)

// source is a session as the prefill worker sees it.
type source struct {
	s     *Server
	ctx   context.Context // of the request
	peer  *peer
	local Local
	c     *Coordinator

	todo        []Action // to be done, in order
	submit      uint64   // id of the local submission
	timing      *Timing  // when it is held
	missing     int      // tokens, -1 until the destination has said
	extended    bool     // the deadline, by the transfer
	end         time.Time
	deadline    *time.Timer
	transferred chan struct{}
}

// Source waits for the destination of a request and carries its handoff out. The engine does not see the request before
// the destination has come. It returns nil when the destination has the KV, else the text for both clients; either way
// the engine holds nothing for the handoff any more. ctx is that of the request.
func (s *Server) Source(ctx context.Context, id Identity, local Local) error {
	p, err := s.meet(ctx, id)
	if err != nil {
		local.Cancel()
		return err
	}
	defer s.finish(id.Handoff)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	x := &source{s: s, ctx: ctx, peer: p, local: local, c: NewCoordinator(id.Handoff, OrderOf(s.o.Engine.Backend)), missing: -1,
		end: time.Now().Add(s.o.Timeout), deadline: time.NewTimer(s.o.Timeout), transferred: make(chan struct{}, 1)}
	defer x.deadline.Stop()
	defer p.close()
	if err := x.run(); err != nil {
		s.o.Log.Warn("handoff failed", "handoff", id.Handoff, "request", id.Request, "error", err)
		_ = p.send(Abort{err.Error()})
		local.Cancel()
		return err
	}
	s.o.Log.Debug("handoff complete", "handoff", id.Handoff, "request", id.Request)
	return nil
}

// run carries the handoff out.
func (x *source) run() error {
	if err := x.peer.send(Registered{}); err != nil {
		return errDisconnected
	}
	x.todo = x.c.Start()
	for {
		for len(x.todo) > 0 {
			a := x.todo[0]
			x.todo = x.todo[1:]
			if err := x.do(a); err != nil {
				return err
			}
		}
		if how := x.c.Completion(); how == Success {
			_ = x.peer.send(Complete{}) // if it has left, it has the KV all the same
			return nil
		} else if how == Canceled {
			return errCancelled
		}
		if err := x.wait(); err != nil {
			return err
		}
	}
}

// wait takes in the next thing that happens.
func (x *source) wait() error {
	select {
	case step := <-x.local.Steps():
		return x.step(step)
	case got := <-x.peer.frames():
		if got.err != nil {
			return failure(got.err, errDisconnected)
		}
		return x.receive(got.message)
	case <-x.transferred:
		return x.then(x.c.Transferred())
	case <-x.deadline.C:
		return errTimeout
	case <-x.ctx.Done():
		return errSourceGone
	case <-x.s.ctx.Done():
		return errStopping
	}
}

// then adds actions.
func (x *source) then(list []Action, err error) error {
	x.todo = append(x.todo, list...)
	return err
}

func (x *source) step(s live.Step) error {
	switch s.Kind {
	case live.Accepted:
		return x.then(x.c.Ack(x.submit, Submitted))
	case live.Refused:
		return x.then(x.c.Ack(x.submit, Failed(s.Err.Error())))
	case live.Lost:
		return x.then(x.c.Cleanup(), nil)
	}
	t := TimingOf(&x.s.o.Engine, s.Tokens)
	if err := x.peer.send(SourceHeld{Handoff: x.peer.id.Handoff, Timing: t}); err != nil {
		return errDisconnected
	}
	err := x.then(x.c.Held(x.peer.id.Handoff, t))
	x.timing = &t
	x.extend()
	return err
}

func (x *source) receive(m Message) error {
	switch m := m.(type) {
	case ActionAck:
		return x.then(x.c.Ack(m.ID, m.Outcome))
	case DestinationReserved:
		err := x.then(x.c.Reserved(m.Handoff, m.Tokens))
		x.missing = m.Tokens
		x.extend()
		return err
	case Abort:
		return errors.New(m.Message)
	case ProtocolError:
		return errors.New(m.Message)
	case Overloaded:
		return errOverloaded
	}
	return errUnexpected
}

// extend moves the deadline by the length of the transfer, once that is known.
func (x *source) extend() {
	if x.extended || x.timing == nil || x.timing.Mode == DestinationMissing && x.missing < 0 {
		return
	}
	x.extended = true
	if ms, ok := x.timing.Delay(x.missing); ok {
		x.end = x.end.Add(milliseconds(ms))
		x.deadline.Reset(time.Until(x.end))
	}
}

func milliseconds(ms float64) time.Duration {
	const most = 24 * time.Hour
	return time.Duration(min(ms*float64(time.Millisecond), float64(most)))
}

// do carries out one action.
func (x *source) do(a Action) error {
	switch a.Kind {
	case SubmitPrefill:
		x.submit = a.ID
		if err := x.local.Submit(); err != nil {
			return x.then(x.c.Ack(a.ID, Failed(err.Error())))
		}
	case ReserveDestination, ActivateDestination, CancelDestination:
		if x.peer.send(ActionRequest{ID: a.ID, Kind: a.Kind, Handoff: x.peer.id.Handoff}) != nil {
			return errDisconnected
		}
	case StartTransfer:
		startTransfer(x.ctx, x.local, engine.Time(a.DelayMS), x.transferred)
		return x.then(x.c.Ack(a.ID, Scheduled))
	case ReleaseSource:
		return x.then(x.c.Ack(a.ID, done(x.local.Release())))
	case CancelSource:
		return x.then(x.c.Ack(a.ID, done(x.local.Cancel())))
	}
	return nil
}

func done(applied bool) Outcome {
	if applied {
		return Applied
	}
	return Noop
}
