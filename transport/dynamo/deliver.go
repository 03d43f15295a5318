package dynamo

import (
	"context"
	"errors"
	"fmt"

	"mockbench/engine/live"
	"mockbench/transport/requestplane"
)

// Texts of the reference that clients and frontends see.
const (
	textRejected = "request rejected: request exceeds worker admission limits"
	textEarly    = "Completion signal received before max tokens reached"
	textGone     = "All output transmitters closed"
)

// delivery is an answer on its way.
type delivery struct {
	*order
	g      *Generator
	id     string
	tokens *live.Stream
	out    *requestplane.Stream
	frame  tokenFrame
	sent   int // tokens
	usage  *usage

	finished bool // the frame of the last token said so
}

// stream sends the answer until its end and reports whether it came to an end by itself. What is there at one wake-up
// goes out in one write.
func (g *Generator) stream(ctx context.Context, id string, o *order, tokens *live.Stream, s *requestplane.Stream) bool {
	d := &delivery{order: o, g: g, id: id, tokens: tokens, out: s, frame: newTokenFrame()}
	var buffer []live.Token
	for {
		batch, end, err := tokens.Take(ctx, buffer[:0])
		if err != nil {
			return false
		}
		buffer = batch
		early := end == live.Finished && d.sent+len(batch) < o.limit && g.Quirks
		if early {
			batch = batch[:max(0, len(batch)-1)]
		}
		for _, t := range batch {
			d.token(t)
		}
		if end != live.Open {
			return d.conclude(ctx, end, early)
		}
		if s.Flush() != nil {
			return false
		}
	}
}

// conclude ends the answer and reports whether that was possible.
func (d *delivery) conclude(ctx context.Context, end live.End, early bool) bool {
	if d.ending == nil {
		d.end(end, early)
		return d.out.Finish() == nil
	}
	if d.out.Flush() != nil {
		return false
	}
	switch text, err := d.ending(ctx, end); {
	case err != nil:
		return false
	case text != "":
		d.put(&output{failure: text})
	default:
		d.end(end, early)
	}
	return d.out.Finish() == nil
}

func (d *delivery) token(t live.Token) {
	id := d.answer.token(d.sent)
	d.sent++
	if d.sent > 1 && !d.prefill && d.native == nil {
		d.frame.put(d.out, id)
		return
	}
	o := output{token: id, hasToken: true, prefilled: d.prefill}
	if d.sent == 1 {
		if t.Cached >= 0 {
			d.usage = &usage{prompt: len(d.request.Prompt), completion: 1, cached: int(t.Cached)}
			o.usage = d.usage
		}
		if d.placed && !d.prefill && d.g.Prefilled != nil {
			d.g.Prefilled(d.id, d.tokens.Rank)
		}
	}
	if d.native != nil && d.sent == d.limit {
		d.finish(&o)
	}
	d.put(&o)
}

// put adds a frame.
func (d *delivery) put(o *output) {
	if d.native != nil {
		o.native = &response{args: d.native, id: d.native.id(d.id), prompt: d.request.Prompt, completion: d.sent}
	}
	d.out.Encode(o.encode)
}

// finish makes a frame the last one of a complete answer.
func (d *delivery) finish(o *output) {
	d.finished = true
	o.finish = finishLength
	if d.usage != nil {
		d.usage.completion = d.sent
		o.usage = d.usage
	}
}

// end adds the last frame before the finish, if there is one to add.
func (d *delivery) end(end live.End, early bool) {
	o := output{}
	switch {
	case d.finished:
		return
	case early:
		o.failure = textEarly
	case end == live.Finished:
		d.finish(&o)
	case end == live.Rejected && !d.g.Quirks:
		d.out.Fail(clientMistake(d.rejection()))
		return
	case end == live.Rejected:
		o.failure = textRejected
	case d.g.Quirks:
		o.failure = textGone
	default:
		failure := shutdown(d.cause())
		d.out.Fail(&failure)
		return
	}
	d.put(&o)
}

func (d *delivery) cause() error {
	if err := d.tokens.Err(); err != nil {
		return err
	}
	return errors.New("the worker was closed before the answer was complete")
}

// rejection says which limit a request exceeds.
func (d *delivery) rejection() string {
	c := d.g.Worker.Config()
	if c.MaxModelLen > 0 && len(d.request.Prompt)+1 > c.MaxModelLen {
		return tooLong(len(d.request.Prompt), c.MaxModelLen)
	}
	if c.BlockSize > 0 {
		if blocks := (len(d.request.Prompt) + c.BlockSize) / c.BlockSize; blocks > c.NumGPUBlocks {
			return fmt.Sprintf("the prompt has %d tokens and needs %d cache blocks of %d, the worker has %d",
				len(d.request.Prompt), blocks, c.BlockSize, c.NumGPUBlocks)
		}
	}
	return fmt.Sprintf("the prompt has %d tokens, which is more than the worker's limits allow", len(d.request.Prompt))
}
