package vllm

import "mockbench/engine"

// queue is a waiting queue. It knows what metrics say of it without a walk.
type queue struct {
	head, tail *sequence
	n          int
	empty      int            // requests with an empty prompt
	received   int            // requests whose prompt was computed by another rank, and that never ran
	prefills   engine.Moments // prompt lengths of sequences that never ran
	decodes    engine.Moments // known tokens of preempted and received ones
}

func (w *queue) pushBack(q *sequence) {
	q.prev, q.next = w.tail, nil
	if w.tail == nil {
		w.head = q
	} else {
		w.tail.next = q
	}
	w.tail = q
	w.count(q)
}

func (w *queue) pushFront(q *sequence) { w.insert(q, w.head) }

// insert puts q before a member of the queue, or at the end.
func (w *queue) insert(q, before *sequence) {
	if before == nil {
		w.pushBack(q)
		return
	}
	q.prev, q.next = before.prev, before
	if before.prev == nil {
		w.head = q
	} else {
		before.prev.next = q
	}
	before.prev = q
	w.count(q)
}

// insertReceived puts in a destination whose KV has arrived: in front, but not before destinations reserved earlier, not
// even if they were preempted in the meantime.
func (w *queue) insertReceived(q *sequence) {
	at := w.head
	for at != nil && at.received && at.serial < q.serial {
		at = at.next
	}
	w.insert(q, at)
}

func (w *queue) count(q *sequence) {
	w.n++
	if q.prompt == 0 {
		w.empty++
	}
	switch {
	case q.place == destinationReady:
		w.received++
		w.decodes.Add(q.length)
	case q.preempted:
		w.decodes.Add(q.length)
	default:
		w.prefills.Add(q.prompt)
	}
}

func (w *queue) remove(q *sequence) {
	if q.prev == nil {
		w.head = q.next
	} else {
		q.prev.next = q.next
	}
	if q.next == nil {
		w.tail = q.prev
	} else {
		q.next.prev = q.prev
	}
	q.prev, q.next = nil, nil
	w.n--
	if q.prompt == 0 {
		w.empty--
	}
	switch {
	case q.place == destinationReady:
		w.received--
		w.decodes.Remove(q.length)
	case q.preempted:
		w.decodes.Remove(q.length)
	default:
		w.prefills.Remove(q.prompt)
	}
}

// firstEmpty returns the first request with an empty prompt.
func (w *queue) firstEmpty() *sequence {
	if w.empty == 0 {
		return nil
	}
	q := w.head
	for q.prompt > 0 {
		q = q.next
	}
	return q
}

// firstReceived returns the first destination whose KV has arrived.
func (w *queue) firstReceived() *sequence {
	if w.received == 0 {
		return nil
	}
	q := w.head
	for q.place != destinationReady {
		q = q.next
	}
	return q
}
