package vllm

import "mockbench/engine"

// queue is a waiting queue. It knows what metrics say of it without a walk.
type queue struct {
	head, tail *sequence
	n          int
	empty      int            // requests with an empty prompt
	prefills   engine.Moments // prompt lengths of sequences that never ran
	decodes    engine.Moments // known tokens of preempted ones
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

func (w *queue) pushFront(q *sequence) {
	q.prev, q.next = nil, w.head
	if w.head == nil {
		w.tail = q
	} else {
		w.head.prev = q
	}
	w.head = q
	w.count(q)
}

func (w *queue) count(q *sequence) {
	w.n++
	if q.prompt == 0 {
		w.empty++
	}
	if q.preempted {
		w.decodes.Add(q.length)
	} else {
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
	if q.preempted {
		w.decodes.Remove(q.length)
	} else {
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
