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
			d.end(end, early)
			return s.Finish() == nil
		}
		if s.Flush() != nil {
			return false
		}
	}
}

func (d *delivery) token(t live.Token) {
	id := d.answer.token(d.sent)
	d.sent++
	if d.sent > 1 && !d.prefill {
		d.frame.put(d.out, id)
		return
	}
	o := output{token: id, hasToken: true, prefilled: d.prefill}
	if d.sent == 1 {
		if t.Cached >= 0 {
			d.usage = &usage{prompt: d.prompt, completion: 1, cached: int(t.Cached)}
			o.usage = d.usage
		}
		if d.placed && !d.prefill && d.g.Prefilled != nil {
			d.g.Prefilled(d.id, d.tokens.Rank)
		}
	}
	d.out.Encode(o.encode)
}

// end adds the last frames before the finish.
func (d *delivery) end(end live.End, early bool) {
	o := output{}
	switch {
	case early:
		o.failure = textEarly
	case end == live.Finished:
		o.finish = finishLength
		if d.usage != nil {
			d.usage.completion = d.sent
			o.usage = d.usage
		}
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
	d.out.Encode(o.encode)
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
	if c.MaxModelLen > 0 && d.prompt+1 > c.MaxModelLen {
		return tooLong(d.prompt, c.MaxModelLen)
	}
	if c.BlockSize > 0 {
		if blocks := (d.prompt + c.BlockSize) / c.BlockSize; blocks > c.NumGPUBlocks {
			return fmt.Sprintf("the prompt has %d tokens and needs %d cache blocks of %d, the worker has %d",
				d.prompt, blocks, c.BlockSize, c.NumGPUBlocks)
		}
	}
	return fmt.Sprintf("the prompt has %d tokens, which is more than the worker's limits allow", d.prompt)
}
