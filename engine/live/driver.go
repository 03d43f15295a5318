package live

import (
	"math"
	"runtime"
	"time"

	"mockbench/engine"
)

// catchUp is how far in the past, in wall time, a pass may start to make up for lateness.
const catchUp = 5 * time.Millisecond

// nanosecond is the resolution of sleeping; a moment that is nearer than that has come.
const nanosecond engine.Time = 1e-6

// driver is what the worker's goroutine owns: the engine and its place in simulated time.
type driver struct {
	w     *Worker
	group *engine.Group
	alarm alarm

	time    engine.Time // start of the running pass, else end of the latest or time of the latest command
	due     engine.Time // end of the previous pass, if carried
	carried bool        // the next pass follows the previous one without a break
	running bool        // between Begin and Complete
	ahead   engine.Time // by how much this worker is ahead of the clock
	steps   int         // passes asked for while the clock is paused

	flights flights
	touched []*Stream // streams to wake, in the course of a publication
	letters letters   // read mail whose memory is used again
	submits []*flight
	stalls  stalls

	transfers map[engine.ID]*Transfer // by handoff, as long as the engine may hold something for it
	late      []*call                 // that wait for the end of the running pass

	next         *replacement // of the engine; nil unless it is to be replaced
	shelf        []*flight    // requests kept back for it, in the order they came
	reservations []*Transfer  // destinations that came meanwhile

	loads    []LoadReader
	requests []RequestReader
}

func newDriver(w *Worker, group *engine.Group, a alarm) *driver {
	d := &driver{w: w, group: group, alarm: a, stalls: newStalls(group.Ranks()),
		transfers: map[engine.ID]*Transfer{}}
	for _, r := range w.o.Readers {
		if l, ok := r.(LoadReader); ok {
			d.loads = append(d.loads, l)
		}
		if q, ok := r.(RequestReader); ok {
			d.requests = append(d.requests, q)
		}
	}
	return d
}

// loop runs until the worker is closed.
func (d *driver) loop() {
	if !d.startup() {
		return
	}
	for {
		d.advance()
		if !d.serve() {
			return
		}
		d.replace()
		d.accept()
		switch {
		case !d.group.Ready() || d.stalls.parked:
			d.carried = false
			d.rest()
		case !d.w.o.Clock.Paused():
			if !d.pass(false) {
				return
			}
		case d.step():
			if !d.pass(true) {
				return
			}
		default: // paused
			d.await(d.time, d.w.mail.work)
		}
	}
}

// startup lets the worker's start-up time pass. Requests wait meanwhile; other mail is read. It reports false if the
// worker was closed.
func (d *driver) startup() bool {
	if d.w.o.Startup == 0 {
		return true
	}
	t := time.NewTimer(d.w.o.Startup)
	defer t.Stop()
	for d.serve() {
		select {
		case <-t.C:
			return true
		case <-d.w.mail.urgent:
		}
	}
	return false
}

// rest waits for mail or for the next internal event of the engine.
func (d *driver) rest() {
	at, ok := d.group.Deadline()
	switch stepped := d.w.o.Clock.Paused() && d.step(); {
	case stepped && d.stalls.parked:
		d.stalls.parked = false
	case ok && (stepped || d.w.o.NoDelay):
		d.skip(at)
	case ok:
		d.await(at, d.w.mail.work)
	default:
		select {
		case <-d.w.mail.urgent:
		case <-d.w.mail.work:
		}
	}
}

// pass runs one pass of the group and reports false if the worker was closed meanwhile. A stepped pass ends at once.
func (d *driver) pass(stepped bool) bool {
	start := d.start()
	if d.carried && start > d.due && !d.w.o.NoDelay {
		d.w.slip.Add(int64(float64(start-d.due) / d.w.o.Clock.Speed() * float64(time.Millisecond)))
	}
	d.time, d.running = start, true
	_, end := d.group.Begin(start)
	if !d.sleep(end, stepped || d.w.o.NoDelay) {
		return false
	}
	records := d.group.Complete()
	d.time, d.running = end, false
	d.due, d.carried = end, true
	d.publish(records)
	d.handoffs(records)
	d.w.passes.Add(1)
	d.judge(records, end == start)
	if !d.serve() {
		return false
	}
	d.accept()
	d.carried = d.group.Ready()
	return true
}

// now returns the worker's simulated time.
func (d *driver) now() engine.Time { return d.w.o.Clock.Now() + d.ahead }

// skip lets the worker's time go on to t without waiting.
func (d *driver) skip(t engine.Time) {
	left := t - d.now()
	if left <= 0 {
		return
	}
	d.ahead += left
	for d.now() < t { // lost in rounding
		d.ahead = engine.Time(math.Nextafter(float64(d.ahead), math.Inf(1)))
	}
	d.w.ahead.Store(math.Float64bits(float64(d.ahead)))
}

// start returns when a pass that starts now starts in simulated time.
func (d *driver) start() engine.Time {
	now := d.now()
	if !d.carried {
		return max(now, d.time)
	}
	late := engine.Time(catchUp.Seconds() * 1000 * d.w.o.Clock.Speed())
	return max(d.due, now-late, d.time)
}

// sleep waits until the end of the running pass and serves urgent mail meanwhile. It reports false if the worker was
// closed. If skip is set it does not wait but lets the worker's time go on to the end.
func (d *driver) sleep(end engine.Time, skip bool) bool {
	for d.serve() {
		if skip || d.w.o.Clock.Paused() && d.step() {
			d.skip(end)
			runtime.Gosched()
			return true
		}
		if d.await(end, nil) {
			return true
		}
	}
	return false
}

// await waits until simulated time t has come and reports whether it has: it also returns when there is urgent mail,
// when work holds something or when the clock changes. A time that has passed makes it yield once, so that others get
// their turn between passes of length zero.
func (d *driver) await(t engine.Time, work <-chan struct{}) bool {
	left, changed, running := d.w.o.Clock.Until(t - d.ahead)
	if running && left <= 0 {
		runtime.Gosched()
		return true
	}
	var rings <-chan time.Time
	if running {
		d.alarm.set(left)
		rings = d.alarm.rings()
	}
	select {
	case <-d.w.mail.urgent:
	case <-work:
	case <-rings:
	case <-changed:
	}
	return false
}

// step reports whether a pass was asked for, once for each Step.
func (d *driver) step() bool {
	if d.steps == 0 {
		return false
	}
	d.steps--
	return true
}
