package replay

import (
	"container/heap"

	"mockbench/engine"
	"mockbench/engine/report"
)

// disaggregated is a fleet in which one worker computes the prompt of a request and another one its answer. The KV of the
// prompt is handed over from the first (source) to the second (destination):
//
//   - vLLM and TensorRT-LLM begin at the source: the prompt is computed and its KV held, then room is reserved at a
//     destination.
//   - SGLang begins at the destination: room is reserved, then the prompt is computed.
//
// With the KV held and the room reserved, the transfer takes its time; then the destination goes to work and the source
// lets go. The client sees only the tokens of the destination.
type disaggregated struct {
	s                *sim
	prefill, decode  *pool
	destinationFirst bool
	transfer         transferCost
	todo             []step // in order; some wait for a worker to end its pass
	transfers        transferHeap
}

// handoff is how far a request is on its way from source to destination.
type handoff struct {
	request   engine.Request // of the source
	ordinal   uint64
	tokens    int  // held at the source
	missing   int  // tokens that the destination lacks
	submitted bool // to the source
	held      bool
	asked     bool // for room at the destination
	reserved  bool
	prefillAt bool // has a place in the prefill pool's books
	decodeAt  bool // has a place in the decode pool's books
	closed    bool // nothing more is to be done for it
	source    bool // the source still has it
}

// stepKind is something to be done for a handoff.
type stepKind uint8

const (
	start stepKind = iota // send to where it was placed at arrival
	reserve
	submitPrefill
	activate
	releaseSource
	cancelSource
	cancelDestination
)

type step struct {
	kind stepKind
	job  *job
}

// transferCost is how long a transfer takes.
type transferCost struct {
	bytesPerToken int
	bandwidth     float64 // GB/s; 0: no time
	missing       bool    // only tokens that the destination lacks count
}

func (c transferCost) delay(h *handoff) engine.Time {
	if c.bytesPerToken == 0 || c.bandwidth <= 0 {
		return 0
	}
	tokens := h.tokens
	if c.missing {
		tokens = h.missing
	}
	return engine.Time(float64(tokens) * float64(c.bytesPerToken) / (c.bandwidth * 1e9) * 1000)
}

func newDisaggregated(s *sim, prefill, decode *pool) *disaggregated {
	cfg := &s.o.Prefill.Engine
	return &disaggregated{s: s, prefill: prefill, decode: decode, destinationFirst: cfg.Backend == engine.SGLang,
		transfer: transferCost{cfg.KVTransferBytesPerToken, cfg.KVTransferBandwidth, cfg.KVTransferTimingMode == "destination_missing"}}
}

// arrive finds a place on the side that comes first. The request gets there with the other steps of the next round, after
// passes of this instant have started.
func (d *disaggregated) arrive(q *job) error {
	q.handoff.ordinal = uint64(d.s.collect.Arrived())
	p := d.prefill
	if d.destinationFirst {
		p = d.decode
	}
	placed, err := d.s.place(p, q)
	if placed {
		d.todo = append(d.todo, step{start, q})
	}
	return err
}

// placed sends a request to its rank.
func (d *disaggregated) placed(p *pool, q *job) error {
	h := &q.handoff
	if p == d.decode {
		h.decodeAt = true
		return d.reserve(q)
	}
	h.prefillAt, h.submitted, h.source = true, true, true
	h.request = q.request
	h.request.MaxOutput = min(q.request.OutputLimit(), 1)
	if q.request.Output != nil {
		h.request.Output = q.request.Output[:h.request.MaxOutput]
	}
	return d.s.submit(p, q)
}

// reserve asks the destination for room. A destination that can never have it ends the request.
func (d *disaggregated) reserve(q *job) error {
	t := &q.tickets[d.decode.slot]
	w := d.decode.workers[t.Worker]
	q.handoff.asked = true
	r, err := w.rank(t.Rank).Reserve(&q.request, q.request.ID, d.s.now)
	if err != nil {
		q.entry.Workers[report.Decode] = -1
		q.handoff.asked = false
		return d.fail(q, report.Failed)
	}
	return d.applied(w, t.Rank, r)
}

// applied makes known what a command did.
func (d *disaggregated) applied(w *worker, rank int, r engine.CommandResult) error {
	w.wake()
	w.publishLoad(rank)
	if r.Events != nil {
		if err := w.pool.placer.Events((w.id-w.pool.first)*w.pool.ranks+rank, r.Events, d.s.now); err != nil {
			return err
		}
	}
	return d.handoffs(w, r.Steps)
}

// handoffs takes in what has become ready.
func (d *disaggregated) handoffs(_ *worker, list []engine.Handoff) error {
	for i := range list {
		q := d.s.jobs.of(list[i].Request)
		h := &q.handoff
		if h.closed {
			continue
		}
		if list[i].Kind == engine.SourceHeld {
			h.held, h.tokens, q.entry.SourceHeld = true, list[i].Tokens, d.s.now
		} else {
			h.reserved, h.missing, q.entry.DestinationReserved = true, list[i].Tokens, d.s.now
		}
		switch {
		case h.held && h.reserved:
			d.startTransfer(q)
		case h.held:
			d.todo = append(d.todo, step{reserve, q})
		default:
			d.todo = append(d.todo, step{submitPrefill, q})
		}
	}
	return nil
}

func (d *disaggregated) startTransfer(q *job) {
	if delay := d.transfer.delay(&q.handoff); delay > 0 {
		heap.Push(&d.transfers, transferEnd{d.s.now + delay, q})
		return
	}
	d.todo = append(d.todo, step{activate, q})
}

func (d *disaggregated) next() (engine.Time, bool) {
	if len(d.transfers) == 0 {
		return 0, false
	}
	return d.transfers[0].at, true
}

// settle ends transfers and does what is to be done, except for workers that are in a pass.
func (d *disaggregated) settle() (moved bool, err error) {
	for len(d.transfers) > 0 && d.transfers[0].at <= d.s.now {
		d.todo = append(d.todo, step{activate, heap.Pop(&d.transfers).(transferEnd).job})
		moved = true
	}
	for again := true; again; {
		again = false
		var waiting []step
		for i := 0; i < len(d.todo); i++ {
			if d.deferred(d.todo[i]) {
				waiting = append(waiting, d.todo[i])
				continue
			}
			again, moved = true, true
			if err := d.do(d.todo[i]); err != nil {
				return moved, err
			}
		}
		d.todo = append(d.todo[:0], waiting...)
	}
	return moved, nil
}

// deferred reports whether a step has to wait for the end of a pass.
func (d *disaggregated) deferred(x step) bool {
	switch x.kind {
	case activate, cancelDestination:
		return d.decode.workers[x.job.tickets[d.decode.slot].Worker].running
	case releaseSource, cancelSource:
		return d.prefill.workers[x.job.tickets[d.prefill.slot].Worker].running
	}
	return false
}

func (d *disaggregated) do(x step) error {
	q, s := x.job, d.s
	h := &q.handoff
	switch x.kind {
	case start:
		if d.destinationFirst {
			return d.placed(d.decode, q)
		}
		return d.placed(d.prefill, q)
	case reserve, submitPrefill:
		if h.closed {
			return nil
		}
		p := d.decode
		if x.kind == submitPrefill {
			p = d.prefill
		}
		placed, err := s.place(p, q)
		if !placed || err != nil {
			return err
		}
		return d.placed(p, q)
	case activate:
		if h.closed {
			return nil
		}
		q.entry.DestinationActivated = s.now
		d.todo = append(d.todo, step{releaseSource, q})
		w, rank := d.decodeRank(q)
		return d.applied(w, rank, w.rank(rank).Activate(q.request.ID, s.now))
	case cancelDestination:
		w, rank := d.decodeRank(q)
		if err := d.applied(w, rank, w.rank(rank).CancelDestination(q.request.ID, s.now)); err != nil {
			return err
		}
		return d.leaveDecode(q)
	}
	w, rank := d.prefillRank(q)
	command := w.rank(rank).ReleaseSource
	if x.kind == cancelSource {
		command = w.rank(rank).CancelSource
	} else {
		q.entry.SourceReleased = s.now
	}
	if err := d.applied(w, rank, command(q.request.ID, s.now)); err != nil {
		return err
	}
	h.source = false
	return d.leavePrefill(q)
}

func (d *disaggregated) decodeRank(q *job) (*worker, int) {
	t := &q.tickets[d.decode.slot]
	return d.decode.workers[t.Worker], t.Rank
}

func (d *disaggregated) prefillRank(q *job) (*worker, int) {
	t := &q.tickets[d.prefill.slot]
	return d.prefill.workers[t.Worker], t.Rank
}

// leavePrefill takes a request off the books of the prefill pool.
func (d *disaggregated) leavePrefill(q *job) error {
	if !q.handoff.prefillAt {
		return nil
	}
	q.handoff.prefillAt = false
	if err := d.prefill.placer.Free(&q.tickets[d.prefill.slot], d.s.now); err != nil {
		return err
	}
	d.retire(q)
	return d.refill(d.prefill)
}

// leaveDecode takes a request off the books of the decode pool.
func (d *disaggregated) leaveDecode(q *job) error {
	if !q.handoff.decodeAt {
		return nil
	}
	q.handoff.decodeAt = false
	if err := d.decode.placer.Free(&q.tickets[d.decode.slot], d.s.now); err != nil {
		return err
	}
	d.retire(q)
	return d.refill(d.decode)
}

// refill sends off the requests for which a router has room again.
func (d *disaggregated) refill(p *pool) error {
	released, err := d.s.drain(p)
	if err != nil {
		return err
	}
	for _, q := range released {
		if err := d.placed(p, q); err != nil {
			return err
		}
	}
	return nil
}

// retire lets go of a request when it has ended and neither side knows it any more.
func (d *disaggregated) retire(q *job) {
	if h := &q.handoff; q.ended && !q.kept && !h.prefillAt && !h.decodeAt {
		d.s.keep(q)
	}
}

// output takes in a signal of either side.
func (d *disaggregated) output(w *worker, o *engine.Output) error {
	q := d.s.jobs.of(o.Request)
	if w.pool == d.prefill {
		return d.prefilled(q, o)
	}
	s := d.s
	first := q.entry.Tokens() == 0
	if o.HasToken {
		s.collect.Token(&q.entry, s.now)
		if s.o.Trace.Delta {
			q.emitted = append(q.emitted, o.Token)
		}
	}
	if !o.Completed {
		if !first {
			return nil
		}
		if err := d.decode.placer.Prefilled(&q.tickets[d.decode.slot], s.now); err != nil {
			return err
		}
		return d.refill(d.decode)
	}
	s.end(q, report.Completed)
	q.handoff.decodeAt = false
	if err := d.decode.placer.Free(&q.tickets[d.decode.slot], s.now); err != nil {
		return err
	}
	s.follow(q, true)
	d.retire(q)
	return d.refill(d.decode)
}

// prefilled takes in a signal of the source: its token is nobody's, only the end counts.
func (d *disaggregated) prefilled(q *job, o *engine.Output) error {
	if !o.Completed {
		return nil
	}
	if o.Rejected {
		q.handoff.source = false
		return d.fail(q, report.Rejected)
	}
	if err := d.prefill.placer.Prefilled(&q.tickets[d.prefill.slot], d.s.now); err != nil {
		return err
	}
	return d.refill(d.prefill)
}

// fail ends a request that cannot be served and cancels what either side holds of it. A rejected request lets its session
// go on, a failed one does not.
func (d *disaggregated) fail(q *job, status report.Status) error {
	h := &q.handoff
	h.closed = true
	d.s.end(q, status)
	if h.source {
		d.todo = append(d.todo, step{cancelSource, q})
	} else if err := d.leavePrefill(q); err != nil {
		return err
	}
	if h.asked {
		d.todo = append(d.todo, step{cancelDestination, q})
	} else if err := d.leaveDecode(q); err != nil {
		return err
	}
	d.s.follow(q, status == report.Rejected)
	d.retire(q)
	return nil
}

// transferEnd is the moment at which the KV of a request has arrived.
type transferEnd struct {
	at  engine.Time
	job *job
}

type transferHeap []transferEnd

func (h transferHeap) Len() int { return len(h) }

func (h transferHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].job.handoff.ordinal < h[j].job.handoff.ordinal
}

func (h transferHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *transferHeap) Push(x any)   { *h = append(*h, x.(transferEnd)) }

func (h *transferHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	*h = (*h)[:last]
	return t
}
