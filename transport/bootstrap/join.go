package bootstrap

import (
	"context"

	"github.com/google/uuid"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/spawn"
)

// joint is a handoff between two workers of one process.
type joint struct {
	ctx                 context.Context
	config              *engine.Config
	c                   *Coordinator
	source, destination Local
	todo                []Action // to be done, in order
	submit, reserve     uint64   // ids of the actions that the engines answer
	transferred         chan struct{}
}

// Join carries a handoff between two workers of one process out: the same decisions as in a session, without a
// connection, and without its deadlines, since neither side can disappear. config is that of the source. It returns nil
// when the destination has the KV; otherwise both sides have been cancelled. ctx ends when the client leaves.
func Join(ctx context.Context, config *engine.Config, handoff uuid.UUID, source, destination Local) error {
	j := &joint{ctx: ctx, config: config, c: NewCoordinator(handoff, OrderOf(config.Backend)), source: source,
		destination: destination, transferred: make(chan struct{}, 1)}
	err := j.run()
	if err != nil {
		source.Cancel()
		destination.Cancel()
	}
	return err
}

func (j *joint) run() error {
	j.todo = j.c.Start()
	for {
		for len(j.todo) > 0 {
			a := j.todo[0]
			j.todo = j.todo[1:]
			if err := j.do(a); err != nil {
				return err
			}
		}
		switch j.c.Completion() {
		case Success:
			return nil
		case Canceled:
			return errCancelled
		}
		if err := j.wait(); err != nil {
			return err
		}
	}
}

// wait takes in the next thing that happens.
func (j *joint) wait() error {
	select {
	case s := <-j.source.Steps():
		return j.step(s, j.submit, Submitted, func() ([]Action, error) {
			return j.c.Held(j.c.handoff, TimingOf(j.config, s.Tokens))
		})
	case s := <-j.destination.Steps():
		return j.step(s, j.reserve, Accepted, func() ([]Action, error) {
			return j.c.Reserved(j.c.handoff, s.Tokens)
		})
	case <-j.transferred:
		return j.then(j.c.Transferred())
	case <-j.ctx.Done():
		return j.ctx.Err()
	}
}

// step takes in a step of one side, which answers an action or is a fact.
func (j *joint) step(s live.Step, action uint64, accepted Outcome, fact func() ([]Action, error)) error {
	switch s.Kind {
	case live.Accepted:
		return j.then(j.c.Ack(action, accepted))
	case live.Refused:
		return j.then(j.c.Ack(action, Failed(s.Err.Error())))
	case live.Ready:
		return j.then(fact())
	}
	return errCancelled // the request ended before it was ready
}

// then adds actions.
func (j *joint) then(list []Action, err error) error {
	j.todo = append(j.todo, list...)
	return err
}

// do carries out one action.
func (j *joint) do(a Action) error {
	ack := func(o Outcome) error { return j.then(j.c.Ack(a.ID, o)) }
	switch a.Kind {
	case SubmitPrefill:
		j.submit = a.ID
		if err := j.source.Submit(); err != nil {
			return ack(Failed(err.Error()))
		}
	case ReserveDestination:
		j.reserve = a.ID
		if err := j.destination.Submit(); err != nil {
			return ack(Failed(err.Error()))
		}
	case StartTransfer:
		startTransfer(j.ctx, j.source, engine.Time(a.DelayMS), j.transferred)
		return ack(Scheduled)
	case ActivateDestination:
		if !j.destination.Activate() {
			return ack(Failed("the destination has no reservation"))
		}
		return ack(Applied)
	case ReleaseSource:
		return ack(done(j.source.Release()))
	case CancelSource:
		return ack(done(j.source.Cancel()))
	case CancelDestination:
		return ack(done(j.destination.Cancel()))
	}
	return nil
}

// startTransfer tells when the time of a transfer has passed.
func startTransfer(ctx context.Context, local Local, d engine.Time, transferred chan struct{}) {
	if d <= 0 {
		transferred <- struct{}{}
		return
	}
	spawn.Go("kv transfer", func() {
		if local.Sleep(ctx, d) == nil {
			transferred <- struct{}{}
		}
	})
}
