package eventplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"mockbench/kv"
	"mockbench/transport/wire"
)

// dumpsInFlight is how many dumps of one rank are made at the same time; further queries wait.
const dumpsInFlight = 8

// Recovery answers the queries of routers that missed events of one rank, or start without any. It is safe for
// concurrent use.
type Recovery struct {
	sink  *kvSink
	dumps chan struct{}
}

func newRecovery(k *kvSink) *Recovery {
	return &Recovery{sink: k, dumps: make(chan struct{}, dumpsInFlight)}
}

// query is the body of a recovery query.
type query struct {
	Worker *uint64         `json:"worker_id"`
	Rank   *uint64         `json:"dp_rank"`
	Start  *uint64         `json:"start_event_id"`
	End    *uint64         `json:"end_event_id"`
	Kind   json.RawMessage `json:"kind"`
}

// Handle answers one query with the single data frame of its response stream; the frame that completes the stream is
// the stream's business. jsonCodec chooses the form of body and frame, else both are MessagePack. A query that cannot
// be understood is answered with an error frame: a router shows no event of the rank as long as a query of it is
// unanswered. The only error is that ctx ended while the query waited for its turn.
func (r *Recovery) Handle(ctx context.Context, body []byte, jsonCodec bool) (frame []byte, err error) {
	answer, err := r.answer(ctx, body, jsonCodec)
	if err != nil {
		return nil, err
	}
	frame = append([]byte("\x82\xa4data\x81"), answer...)
	frame = append(frame, "\xaecomplete_final\xc2"...)
	if jsonCodec {
		return wire.AppendJSON(nil, frame)
	}
	return frame, nil
}

// Check asks what a router asks that has just found the rank, and returns an error if the answer would be one.
func (r *Recovery) Check(ctx context.Context) error {
	self := r.sink.pipeline.source
	frame, err := r.Handle(ctx, fmt.Appendf(nil, `{"worker_id":%d,"dp_rank":%d,"kind":"recovery"}`, self.worker, self.rank), true)
	if err != nil {
		return err
	}
	var answer struct {
		Data struct{ TreeDump json.RawMessage }
	}
	if err := json.Unmarshal(frame, &answer); err != nil {
		return err
	}
	if answer.Data.TreeDump == nil {
		return fmt.Errorf("a query was answered with %.200q", frame)
	}
	return nil
}

// answer returns name and content of the answer's variant.
func (r *Recovery) answer(ctx context.Context, body []byte, jsonCodec bool) ([]byte, error) {
	q, err := decodeQuery(body, jsonCodec)
	if err != nil {
		return errorAnswer("cannot read the recovery query: " + err.Error()), nil
	}
	self := r.sink.pipeline.source
	switch {
	case *q.Worker != self.worker:
		return errorAnswer(fmt.Sprintf("WorkerKvQueryEngine::generate worker_id mismatch: request.worker_id=%d this.worker_id=%d",
			*q.Worker, self.worker)), nil
	case *q.Rank != uint64(self.rank):
		return errorAnswer(fmt.Sprintf("WorkerKvQueryEngine::generate dp_rank mismatch: request.dp_rank=%d this.dp_rank=%d",
			*q.Rank, self.rank)), nil
	case q.Start != nil && q.End != nil && *q.End < *q.Start:
		b := wire.AppendUint([]byte("\xacInvalidRange\x82\xa8start_id"), *q.Start)
		return wire.AppendUint(append(b, "\xa6end_id"...), *q.End), nil
	}
	if q.Start != nil {
		if b := r.recent(*q.Start, q.End); b != nil {
			return b, nil
		}
	}
	select {
	case r.dumps <- struct{}{}:
		defer func() { <-r.dumps }()
		return r.dump(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// decodeQuery reads a query. JSON's decoder is used for both codecs, because it refuses numbers that are negative or
// too large.
func decodeQuery(body []byte, jsonCodec bool) (q query, err error) {
	if !jsonCodec {
		if body, err = wire.AppendJSON(nil, body); err != nil {
			return q, err
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return q, err
	}
	if q.Worker == nil || q.Rank == nil {
		return q, errors.New("worker_id and dp_rank must be given")
	}
	if kind := string(q.Kind); kind != "" && kind != `"recovery"` && kind != "null" {
		return q, errors.New("KV state-agent status is not supported by this endpoint")
	}
	return q, nil
}

func errorAnswer(text string) []byte {
	return wire.AppendString([]byte("\xa5Error"), text)
}

// recent answers from the newest events, from start on; nil if they do not reach back so far.
func (r *Recovery) recent(start uint64, end *uint64) []byte {
	k := r.sink
	k.flush()
	k.work.Lock()
	defer k.work.Unlock()
	h := &k.pipeline.history
	oldest, ok := h.ring.oldest()
	if !ok || start < oldest {
		return nil
	}
	if start > h.last {
		requested := h.last
		if end != nil {
			requested = *end
		}
		b := wire.AppendUint([]byte("\xa6TooNew\x83\xafrequested_start"), start)
		b = wire.AppendUint(append(b, "\xadrequested_end"...), requested)
		return wire.AppendUint(append(b, "\xb0newest_available"...), h.last)
	}
	b := append([]byte("\xa6Events\x82"), "\xa6events"...)
	b = wire.AppendArray(b, int(h.last-start)+1)
	h.ring.each(start, func(e kv.Event, sequence, local []uint64) {
		b = k.pipeline.source.appendEvent(b, e, sequence, local, nil)
	})
	return wire.AppendUint(append(b, "\xadlast_event_id"...), h.last)
}

// dump answers with the present content of all tiers. Only copying it keeps the rank's events waiting.
func (r *Recovery) dump() []byte {
	k := r.sink
	k.flush()
	k.work.Lock()
	last := k.pipeline.history.last
	tiers := k.pipeline.history.tiers
	for t := range tiers {
		tiers[t] = tiers[t].clone()
	}
	k.work.Unlock()

	var events []byte
	n := 0
	for t := range tiers {
		id := uint64(0)
		tiers[t].dump(kv.Tier(t), func(e kv.Event, sequence, local []uint64) {
			e.ID = id
			events = k.pipeline.source.appendEvent(events, e, sequence, local, nil)
			id++
			n++
		})
	}
	b := append([]byte("\xa8TreeDump\x83"), "\xa6events"...)
	b = append(wire.AppendArray(b, n), events...)
	b = wire.AppendUint(append(b, "\xadlast_event_id"...), last)
	return append(b, "\xabreset_scope\xa3all"...)
}
