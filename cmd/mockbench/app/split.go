package app

import (
	"context"

	"github.com/google/uuid"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/spawn"
	"mockbench/engine/workload"
	"mockbench/transport/bootstrap"
)

// target is where the built-in load goes: to any worker, or to a prefill worker and from there to a decode worker.
func (p *program) target(f *fleet, place *placement) workload.Target {
	t := workload.Target{Clock: f.clock, Free: place.free,
		Place: func(q *workload.Request) (worker, rank int, err error) {
			return place.pools[0].place(q.Label, q.Prompt, q.MaxOutput)
		},
		Submit: func(worker int, r live.Request) (*live.Stream, error) { return f.workers[worker].Submit(r) },
	}
	if p.s.Split() {
		t.Submit = func(worker int, r live.Request) (*live.Stream, error) {
			return splitRequest(f, &place.pools[1], f.workers[worker], r)
		}
	}
	return t
}

// passage is a request of the built-in load that goes from a prefill worker to a decode worker.
type passage struct {
	prefill, decode *live.Worker
	request         live.Request // for the decode worker
	rank            int          // of the prefill worker
	answer          *live.Stream // what the load reads
}

// splitRequest sends a request that is placed on a rank of a prefill worker on its way, and chooses its decode worker.
func splitRequest(f *fleet, pool *poolRouter, prefill *live.Worker, r live.Request) (*live.Stream, error) {
	worker, rank, err := pool.place(r.Label, r.Prompt, r.MaxOutput)
	if err != nil {
		return nil, err
	}
	x := &passage{prefill: prefill, decode: f.workers[worker], request: r, rank: r.Rank}
	x.request.Rank = rank
	ctx, cancel := context.WithCancel(context.Background())
	x.answer = live.NewStream(rank, cancel)
	carry := x.sequential
	if prefill.Config().Backend != engine.TRTLLM {
		if carry, err = x.joined(); err != nil {
			cancel()
			return nil, err
		}
	}
	spawn.Go("handoff of "+r.Label, func() {
		defer cancel()
		x.answer.Close(carry(ctx))
	})
	return x.answer, nil
}

// leg returns the prefill worker's part of the request.
func (x *passage) leg() live.Request {
	r := x.request
	r.MaxOutput, r.Output, r.Rank = 1, nil, x.rank
	return r
}

// joined prepares a handoff in which both workers agree on every step.
func (x *passage) joined() (func(context.Context) (live.End, error), error) {
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(x.request.Label))
	source, err := x.prefill.Source(x.leg(), engine.ID(id))
	if err != nil {
		return nil, err
	}
	destination, err := x.decode.Destination(x.request, engine.ID(id))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (live.End, error) {
		config := x.prefill.Config()
		if err := bootstrap.Join(ctx, &config, id, source, destination); err != nil {
			for _, s := range []*live.Stream{source.Stream, destination.Stream} {
				if end, why := drain(s); end == live.Rejected || end == live.Failed {
					return end, why
				}
			}
			return live.Cancelled, nil
		}
		return x.relay(ctx, destination.Stream)
	}, nil
}

// sequential lets the prefill worker answer first, and the decode worker begin after the time of the transfer.
func (x *passage) sequential(ctx context.Context) (live.End, error) {
	first, err := x.prefill.Submit(x.leg())
	if err != nil {
		return live.Failed, err
	}
	stop := context.AfterFunc(ctx, first.Cancel)
	end, err := drain(first)
	stop()
	if end != live.Finished {
		return end, err
	}
	config := x.prefill.Config()
	timing := bootstrap.TimingOf(&config, len(x.request.Prompt))
	if ms, ok := timing.Of(timing.Tokens); ok && x.prefill.Sleep(ctx, engine.Time(ms)) != nil {
		return live.Cancelled, nil
	}
	stream, err := x.decode.Submit(x.request)
	if err != nil {
		return live.Failed, err
	}
	return x.relay(ctx, stream)
}

// relay passes the tokens of the decode worker on until its stream ends.
func (x *passage) relay(ctx context.Context, s *live.Stream) (live.End, error) {
	stop := context.AfterFunc(ctx, s.Cancel)
	defer stop()
	var tokens []live.Token
	for {
		var end live.End
		tokens, end, _ = s.Take(context.Background(), tokens[:0])
		for _, t := range tokens {
			x.answer.Push(t)
		}
		if end != live.Open {
			return end, s.Err()
		}
	}
}

// drain waits for the end of a stream.
func drain(s *live.Stream) (live.End, error) {
	for {
		if _, end, _ := s.Take(context.Background(), nil); end != live.Open {
			return end, s.Err()
		}
	}
}
