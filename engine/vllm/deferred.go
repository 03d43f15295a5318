package vllm

import "mockbench/engine"

// deferred is the queue of requests that wait for the host tier. A request that leaves may keep its place as a dead entry
// and gets it back when it is deferred again: the reference does the same.
type deferred struct {
	entries  []deferredEntry
	head     int
	n        int            // requests deferred
	ready    int            // of those, awake
	prefills engine.Moments // as in queue
	decodes  engine.Moments
}

// deferredEntry is alive while its sequence is deferred and still serves the same request.
type deferredEntry struct {
	q      *sequence
	serial uint64
}

func (e deferredEntry) alive() bool { return e.q.serial == e.serial && e.q.place == inDeferred }

// add puts a request to sleep, at the end unless it has an old place.
func (d *deferred) add(q *sequence) {
	q.place, q.sleeping = inDeferred, true
	d.entries = append(d.entries, deferredEntry{q, q.serial})
	d.n++
	if q.preempted {
		d.decodes.Add(q.length)
	} else {
		d.prefills.Add(q.prompt)
	}
}

// sleep puts a request that was awake to sleep again.
func (d *deferred) sleep(q *sequence) {
	if !q.sleeping {
		q.sleeping = true
		d.ready--
	}
}

// wake wakes everybody.
func (d *deferred) wake() {
	for _, e := range d.entries[d.head:] {
		if e.alive() && e.q.sleeping {
			e.q.sleeping = false
			d.ready++
		}
	}
}

// remove takes a request out. Its entry goes only if it is the first.
func (d *deferred) remove(q *sequence) {
	d.dropDead()
	if d.entries[d.head].q == q {
		d.pop()
	}
	q.place = gone
	d.n--
	if !q.sleeping {
		d.ready--
	}
	if q.preempted {
		d.decodes.Remove(q.length)
	} else {
		d.prefills.Remove(q.prompt)
	}
}

func (d *deferred) dropDead() {
	for d.head < len(d.entries) && !d.entries[d.head].alive() {
		d.pop()
	}
}

func (d *deferred) pop() {
	d.entries[d.head] = deferredEntry{}
	d.head++
	if d.head > 64 && 2*d.head > len(d.entries) {
		d.entries = append(d.entries[:0], d.entries[d.head:]...)
		d.head = 0
	}
}

// next returns the first request that is awake.
func (d *deferred) next() *sequence {
	if d.ready == 0 {
		return nil
	}
	d.dropDead()
	for _, e := range d.entries[d.head:] {
		if e.alive() && !e.q.sleeping {
			return e.q
		}
	}
	return nil
}
