package live

import "mockbench/engine"

// advance processes the internal events of the engine that are due.
func (d *driver) advance() {
	at, ok := d.group.Deadline()
	if !ok {
		return
	}
	now := d.start()
	if at-now >= nanosecond {
		return
	}
	now = max(now, at)
	d.time = now
	records := d.group.Advance(now)
	for _, p := range records {
		if p != nil {
			d.rearm()
			d.publish(records)
			return
		}
	}
}

// publish makes records visible: rank by rank to the readers and then to the streams, after that the load of each
// rank. Records are nil for ranks that have none.
func (d *driver) publish(records []*engine.Pass) {
	for _, p := range records {
		if p != nil {
			d.record(p)
			d.admit(p.Admissions)
			d.deliver(p.Outputs)
		}
	}
	d.w.mu.Lock()
	for rank, p := range records {
		if p != nil {
			d.w.loads[rank] = p.Load
		}
	}
	d.w.mu.Unlock()
	for rank, p := range records {
		if p == nil {
			continue
		}
		for _, l := range d.loads {
			l.Load(rank, p.End, p.Load)
		}
	}
}

func (d *driver) record(p *engine.Pass) {
	for _, r := range d.w.o.Readers {
		r.Pass(p)
	}
}

// admit notes which requests have run: they end in the engine they began in.
func (d *driver) admit(admissions []engine.Admission) {
	for i := range admissions {
		if f := d.flights.of(admissions[i].Request); f != nil {
			f.admitted = true
		}
	}
}

// deliver hands outputs to their streams and wakes each reader once, when all of them have theirs.
func (d *driver) deliver(outputs []engine.Output) {
	var last *Stream
	for i := range outputs {
		o := &outputs[i]
		f := d.flights.of(o.Request)
		if f == nil {
			continue
		}
		if o.HasToken {
			f.stream.push(Token{ID: o.Token, Cached: o.Cached})
		}
		if o.Completed {
			d.end(f, ending(o), nil)
		}
		if f.stream != last {
			last = f.stream
			d.touched = append(d.touched, last)
		}
	}
	for _, s := range d.touched {
		s.wake()
	}
	clear(d.touched)
	d.touched = d.touched[:0]
}

func ending(o *engine.Output) End {
	if o.Rejected {
		return Rejected
	}
	return Finished
}

// showLoads publishes the load of every rank after commands.
func (d *driver) showLoads(now engine.Time) {
	for rank := range d.w.ranks {
		d.showLoad(rank, now, d.group.Rank(rank).Load())
	}
}

func (d *driver) showLoad(rank int, now engine.Time, l engine.Load) {
	d.w.mu.Lock()
	before := d.w.loads[rank]
	d.w.loads[rank] = l
	d.w.mu.Unlock()
	if l == before {
		return
	}
	for _, r := range d.loads {
		r.Load(rank, now, l)
	}
}
