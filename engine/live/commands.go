package live

import "mockbench/engine"

// flights finds a request's flight by the number the worker gave it. A number is used again when its request has
// left the engine.
type flights struct {
	slots []*flight
	free  []int
}

func (t *flights) add(f *flight) {
	if n := len(t.free); n > 0 {
		f.request.Key, t.free = t.free[n-1], t.free[:n-1]
		t.slots[f.request.Key] = f
		return
	}
	f.request.Key = len(t.slots)
	t.slots = append(t.slots, f)
}

func (t *flights) remove(f *flight) {
	t.slots[f.request.Key] = nil
	t.free = append(t.free, f.request.Key)
}

// of returns the flight of a request that has not ended, else nil.
func (t *flights) of(r *engine.Request) *flight {
	if f := t.slots[r.Key]; f != nil && &f.request == r {
		return f
	}
	return nil
}

// serve reads the urgent mail and reports false if the worker is to end.
func (d *driver) serve() bool {
	d.letters = d.w.mail.takeLetters(d.letters)
	for _, f := range d.letters.cancels {
		d.cancel(f)
	}
	if d.letters.cancelAll {
		d.cancelAll()
	}
	for _, c := range d.letters.calls {
		if c.atEnd && d.running {
			d.late = append(d.late, c)
			continue
		}
		c.run(d)
	}
	d.steps += d.letters.steps
	if d.steps > 0 && !d.w.o.Clock.Paused() {
		d.steps = 0
	}
	return !d.letters.stop
}

// accept submits the requests that are queued now to the engine. One that arrived after the moment in which the next
// pass will start, because that pass makes up for lateness, is said to have arrived at that moment.
func (d *driver) accept() {
	if d.next != nil {
		return // they wait for the next engine
	}
	d.submits = d.w.mail.takeSubmits(d.submits)
	if len(d.submits) == 0 {
		return
	}
	now, next := d.command(), d.start()
	for _, f := range d.submits {
		if f.ended {
			continue
		}
		f.request.Arrival = min(f.request.Arrival, next)
		f.queued = true
		d.flights.add(f)
		if err := d.submit(f, now); err != nil {
			d.end(f, Failed, err)
			f.stream.wake()
			continue
		}
		for _, q := range d.requests {
			q.Submitted(f.stream.Rank, &f.request, now)
		}
	}
	d.time = next // the pass does not start before, even if the clock's speed changes until then
	d.rearm()
	d.showLoads(now)
}

// command returns the simulated time of a command. It never decreases.
func (d *driver) command() engine.Time {
	if !d.carried && !d.running {
		d.time = max(d.time, d.now())
	}
	return d.time
}

// cancel takes a request out, wherever it is, and the hold on its KV with it.
func (d *driver) cancel(f *flight) {
	switch {
	case f.transfer != nil:
		d.withdraw(f.transfer)
	case !f.queued:
		d.cancelUnread(f)
	case f.shelved && !f.ended:
		d.cancelled(f, Cancelled)
	case !f.ended:
		d.takeOut(f, Cancelled)
	}
}

// takeOut takes a request out of the engine.
func (d *driver) takeOut(f *flight, end End) {
	now := d.command()
	result := d.group.Cancel(f.stream.Rank, f.request.ID, now, true)
	d.cancelled(f, end)
	d.follow(f.stream.Rank, now, result)
}

// cancelUnread ends a request that the engine does not have yet.
func (d *driver) cancelUnread(f *flight) bool {
	if f.ended {
		return false
	}
	d.end(f, Cancelled, nil)
	f.stream.wake()
	return true
}

// cancelled ends the stream of a request that was taken out of the engine.
func (d *driver) cancelled(f *flight, end End) {
	d.end(f, end, nil)
	f.stream.wake()
	for _, q := range d.requests {
		q.Cancelled(f.stream.Rank, &f.request, d.time)
	}
}

func (d *driver) cancelAll() {
	for _, f := range d.flights.slots {
		if f != nil {
			d.cancel(f)
		}
	}
	for _, t := range d.transfers {
		d.withdraw(t)
	}
	for _, t := range d.reservations {
		d.withdraw(t)
	}
	d.submits = d.w.mail.takeSubmits(d.submits)
	for _, f := range d.submits {
		d.cancel(f)
	}
}

// end ends the stream of a flight without waking its reader.
func (d *driver) end(f *flight, end End, err error) {
	f.ended = true
	if f.queued {
		d.flights.remove(f)
	}
	f.stream.finish(end, err)
	if f.transfer != nil {
		d.settle(f.transfer, end, err)
	}
	if d.w.inFlight.Add(-1) == 0 {
		ring(d.w.empty)
	}
}

// abandon ends all streams when the worker ends: cancelled, or failed if there was a failure. waiting are the requests
// the driver has not read.
func (d *driver) abandon(waiting []*flight, failure error) {
	end := Cancelled
	if failure != nil {
		end = Failed
	}
	var reservations []*flight
	for _, t := range d.reservations {
		reservations = append(reservations, t.f)
	}
	for _, list := range [][]*flight{d.flights.slots, d.submits, reservations, waiting} {
		for _, f := range list {
			if f == nil || f.ended {
				continue
			}
			d.end(f, end, failure)
			f.stream.wake()
			if !f.queued || failure != nil {
				continue
			}
			for _, q := range d.requests {
				q.Cancelled(f.stream.Rank, &f.request, d.time)
			}
		}
	}
}
