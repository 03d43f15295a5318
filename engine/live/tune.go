package live

import (
	"slices"

	"mockbench/engine"
	"mockbench/engine/backend"
)

// change is a change of settings on its way to the engine.
type change struct {
	w   *Worker
	c   *call
	err error // valid when c is done
}

// wait waits until the settings are in force, or says why they never will be.
func (c *change) wait() error {
	if err := c.w.await(c.c); err != nil {
		return err
	}
	return c.err
}

// Config returns the configuration of each rank, as it is in force.
func (w *Worker) Config() engine.Config { return *w.config.Load() }

// Tune changes settings from the next pass on, also while requests run. Changes come into force in the order of the
// calls. A wrong value is refused at once with an *engine.SettingError. wait waits until the settings are in force, or
// says why they never will be: an *engine.SettingError, or ErrClosed for a worker that has ended. A change of a paused
// worker in the middle of a pass comes when its clock goes on.
func (w *Worker) Tune(t engine.Tuning) (wait func() error, err error) {
	cfg := w.Config().With(t)
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &change{w: w}
	c.c = &call{atEnd: true, done: make(chan struct{}), f: func(d *driver) { c.err = d.tune(t) }}
	if !w.mail.post(func(l *letters) { l.calls = append(l.calls, c.c) }) {
		return nil, ErrClosed
	}
	return c.wait, nil
}

// Restart gives the worker another engine: what runs now ends in the old one, what waits is kept back for the new one,
// and so are the requests that come meanwhile. The worker stays open, its caches are lost, and its readers are told.
// A wrong value is refused at once with an *engine.SettingError. A second call before the first one has come into force
// takes its place. wait is that of Tune.
func (w *Worker) Restart(cfg engine.Config) (wait func() error, err error) {
	group, err := backend.NewGroup(cfg, 0, w.ranks)
	if err != nil {
		return nil, err
	}
	c := &change{w: w, c: &call{done: make(chan struct{})}}
	begin := &call{atEnd: true, done: make(chan struct{}), f: func(d *driver) { d.restart(&replacement{cfg, group, c}) }}
	w.restarting.Store(true)
	if !w.mail.post(func(l *letters) { l.calls = append(l.calls, begin) }) {
		w.restarting.Store(false)
		return nil, ErrClosed
	}
	return c.wait, nil
}

// Hurry cancels what still runs in an engine that is about to be replaced.
func (w *Worker) Hurry() {
	hurry := &call{done: make(chan struct{}), f: (*driver).hurry}
	w.mail.post(func(l *letters) { l.calls = append(l.calls, hurry) })
}

// Restarting reports whether the engine is about to be replaced.
func (w *Worker) Restarting() bool { return w.restarting.Load() }

// replacement is the engine that is to take the place of the present one.
type replacement struct {
	cfg    engine.Config
	group  *engine.Group
	change *change
}

// done lets those go who wait for the replacement.
func (n *replacement) done(err error) {
	n.change.err = err
	close(n.change.c.done)
}

// tune gives settings to the engine, and to the one that is to take its place.
func (d *driver) tune(t engine.Tuning) error {
	cfg := d.w.Config()
	if err := d.group.Tune(cfg, t); err != nil {
		return err
	}
	if n := d.next; n != nil {
		if err := n.group.Tune(n.cfg, t); err != nil {
			return err
		}
		n.cfg = n.cfg.With(t)
	}
	d.inForce(cfg.With(t))
	d.rearm()
	return nil
}

// inForce tells of new settings.
func (d *driver) inForce(cfg engine.Config) {
	d.w.config.Store(&cfg)
	if d.w.o.Changed != nil {
		d.w.o.Changed(cfg)
	}
}

// restart begins to replace the engine. Requests that have not run yet are taken back from it.
func (d *driver) restart(n *replacement) {
	if d.next != nil {
		d.next.done(nil)
	}
	d.next = n
	d.w.restarting.Store(true)
	now := d.command()
	for _, f := range d.flights.slots {
		if f == nil || f.admitted || f.transfer != nil || f.shelved {
			continue
		}
		result := d.group.Cancel(f.stream.Rank, f.request.ID, now, false)
		if !result.Applied {
			continue
		}
		f.shelved = true
		d.shelf = append(d.shelf, f)
		d.follow(f.stream.Rank, now, result)
	}
	slices.SortFunc(d.shelf, func(a, b *flight) int { return int(a.number) - int(b.number) })
}

// hurry cancels what runs in the engine that is to be replaced.
func (d *driver) hurry() {
	if d.next == nil {
		return
	}
	for _, f := range d.flights.slots {
		if f != nil && !f.shelved {
			d.cancel(f)
		}
	}
	for _, t := range d.transfers {
		d.withdraw(t)
	}
}

// replace puts the new engine in place once the old one is drained.
func (d *driver) replace() {
	n := d.next
	if n == nil || !d.group.Drained() {
		return
	}
	d.next, d.carried = nil, false
	now := d.command()
	records, err := d.group.Replace(n.group, now)
	if err == nil {
		d.publish(records)
		d.inForce(n.cfg)
	}
	d.stalls = newStalls(d.group.Ranks())
	d.showStalls()
	d.w.restarting.Store(false)
	d.unshelve(now)
	n.done(err)
}

// unshelve submits the requests that were kept back, and asks for the room of destinations that came meanwhile.
func (d *driver) unshelve(now engine.Time) {
	for _, f := range d.shelf {
		if f.shelved = false; f.ended {
			continue
		}
		if err := d.submit(f, now); err != nil {
			d.end(f, Failed, err)
			f.stream.wake()
		}
	}
	clear(d.shelf)
	d.shelf = d.shelf[:0]
	late := d.reservations
	d.reservations = nil
	for _, t := range late {
		d.reserve(t)
	}
	d.showLoads(now)
}
