package live

import (
	"errors"
	"fmt"

	"mockbench/engine"
)

// submit hands a request to its rank.
func (d *driver) submit(f *flight, now engine.Time) error {
	t := f.transfer
	if t == nil {
		return d.group.Submit(f.stream.Rank, &f.request, now)
	}
	e, err := d.disaggregated(t)
	if err == nil {
		err = e.SubmitSource(&f.request, t.id, now)
	}
	if err == nil {
		d.accepted(t)
	}
	return err
}

// reserve asks a rank for room for a destination.
func (d *driver) reserve(t *Transfer) {
	f := t.f
	if f.ended {
		return
	}
	if d.next != nil {
		d.reservations = append(d.reservations, t)
		return
	}
	now := d.command()
	f.request.Arrival = min(f.request.Arrival, now)
	f.queued = true
	d.flights.add(f)
	e, err := d.disaggregated(t)
	var result engine.CommandResult
	if err == nil {
		result, err = e.Reserve(&f.request, t.id, now)
	}
	if err != nil {
		d.refuse(f, err, now)
		return
	}
	d.accepted(t)
	for _, q := range d.requests {
		q.Submitted(t.Rank, &f.request, now)
	}
	d.follow(t.Rank, now, result.CancelResult)
}

// refuse ends a request that its rank does not take. Readers learn of one that exceeds the limits of the engine as of any
// other that is rejected.
func (d *driver) refuse(f *flight, err error, now engine.Time) {
	if limit := (*engine.SettingError)(nil); errors.As(err, &limit) {
		rank := f.stream.Rank
		for _, q := range d.requests {
			q.Submitted(rank, &f.request, now)
		}
		d.record(&engine.Pass{Rank: rank, Start: now, ComputeStart: now, RankEnd: now, End: now, Idle: true, Effect: true,
			Load: d.group.Rank(rank).Load(), Outputs: []engine.Output{{Request: &f.request, Completed: true, Rejected: true}}})
	}
	d.end(f, Failed, err)
	f.stream.wake()
}

// disaggregated returns the rank of a transfer that is new to it.
func (d *driver) disaggregated(t *Transfer) (engine.Disaggregated, error) {
	e, ok := d.group.Rank(t.Rank).(engine.Disaggregated)
	switch {
	case !ok:
		return nil, fmt.Errorf("rank %d: the engine cannot hand requests over", t.Rank)
	case d.transfers[t.id] != nil:
		return nil, fmt.Errorf("rank %d: handoff %x: %w", t.Rank, t.id, engine.ErrActive)
	}
	return e, nil
}

func (d *driver) accepted(t *Transfer) {
	d.transfers[t.id] = t
	t.steps <- Step{Kind: Accepted}
}

// handoff applies a handoff command to the rank of a transfer and reports whether it changed anything.
func (d *driver) handoff(t *Transfer, command func(engine.Disaggregated, engine.Time) engine.CommandResult) bool {
	if d.transfers[t.id] != t {
		return false
	}
	now := d.command()
	result := command(d.group.Rank(t.Rank).(engine.Disaggregated), now)
	d.follow(t.Rank, now, result.CancelResult)
	return result.Applied
}

func (d *driver) activate(t *Transfer) bool {
	applied := d.handoff(t, func(e engine.Disaggregated, now engine.Time) engine.CommandResult { return e.Activate(t.id, now) })
	t.activated = t.activated || applied
	for _, q := range d.requests {
		if h, ok := q.(HandoffReader); ok && applied {
			h.Activated(t.Rank, &t.f.request, d.time)
		}
	}
	return applied
}

func (d *driver) release(t *Transfer) bool {
	applied := d.handoff(t, func(e engine.Disaggregated, now engine.Time) engine.CommandResult { return e.ReleaseSource(t.id, now) })
	if applied && t.f.ended {
		delete(d.transfers, t.id)
	}
	t.released = t.released || applied
	return applied
}

// withdraw takes a transfer out, wherever it is. A request that its rank does not know by its handoff any more, because
// the hold was dropped or its last token is in the running pass, is cancelled like any other.
func (d *driver) withdraw(t *Transfer) bool {
	f := t.f
	if !f.queued {
		return d.cancelUnread(f)
	}
	applied := d.handoff(t, func(e engine.Disaggregated, now engine.Time) engine.CommandResult {
		if t.source {
			return e.CancelSource(t.id, now)
		}
		return e.CancelDestination(t.id, now)
	})
	if !f.ended {
		var result engine.CancelResult
		if !applied {
			result = d.group.Cancel(t.Rank, f.request.ID, d.command(), true)
		}
		d.cancelled(f, Cancelled)
		d.follow(t.Rank, d.time, result)
		applied = true
	}
	if d.transfers[t.id] == t {
		delete(d.transfers, t.id)
	}
	return applied
}

// progress tells that a transfer has become ready.
func (d *driver) progress(h engine.Handoff, now engine.Time) {
	t := d.transfers[h.ID]
	if t == nil || &t.f.request != h.Request || t.ready || t.told {
		return
	}
	t.ready, t.since = true, now
	t.steps <- Step{Kind: Ready, Tokens: h.Tokens}
}

// handoffs tells which transfers a pass has made ready, and runs the calls that waited for its end.
func (d *driver) handoffs(records []*engine.Pass) {
	for _, p := range records {
		for _, h := range p.Handoffs {
			d.progress(h, p.End)
		}
	}
	for _, c := range d.late {
		c.run(d)
	}
	clear(d.late)
	d.late = d.late[:0]
}

// settle takes note of the end of a transfer's stream. A source that is complete goes on to hold its KV.
func (d *driver) settle(t *Transfer, end End, err error) {
	held := t.source && end == Finished && !t.released
	if !t.ready && !t.told && !held {
		t.told = true
		kind := Lost
		if d.transfers[t.id] != t && err != nil {
			kind = Refused
		}
		t.steps <- Step{Kind: kind, Err: err}
	}
	if !held && d.transfers[t.id] == t {
		delete(d.transfers, t.id)
	}
}

// follow makes visible what a command did beside its own purpose.
func (d *driver) follow(rank int, now engine.Time, result engine.CancelResult) {
	for _, h := range result.Steps {
		d.progress(h, now)
	}
	told := &engine.Pass{Rank: rank, Start: now, ComputeStart: now, RankEnd: now, End: now, Idle: true, Effect: true,
		Transfers: result.Transfers}
	if result.Events != nil && !d.running {
		told.Events = *result.Events
	}
	if len(told.Events.List)+len(told.Transfers) > 0 {
		told.Load = d.group.Rank(rank).Load()
		d.record(told)
	}
	d.rearm()
	if l := d.group.Rank(rank).Load(); !d.running || l.Running+l.Waiting == 0 {
		d.showLoad(rank, now, l)
	}
}
