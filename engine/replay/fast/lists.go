package fast

// chain names the lists that a request can be in at the same time.
type chain uint8

const (
	inOrder    chain = iota // of the queue, or of what runs in order of admission
	byBoundary              // by the passes in which it begins or fills a block
	byEnd                   // by the pass in which it ends
	chains
)

// links are the neighbours of a request in one list.
type links struct{ prev, next *request }

// list is requests linked through one of their chains.
type list struct{ head, tail *request }

func (l *list) pushBack(q *request, c chain) {
	q.links[c] = links{prev: l.tail}
	if l.tail == nil {
		l.head = q
	} else {
		l.tail.links[c].next = q
	}
	l.tail = q
}

func (l *list) pushFront(q *request, c chain) {
	q.links[c] = links{next: l.head}
	if l.head == nil {
		l.tail = q
	} else {
		l.head.links[c].prev = q
	}
	l.head = q
}

func (l *list) remove(q *request, c chain) {
	k := &q.links[c]
	if k.prev == nil {
		l.head = k.next
	} else {
		k.prev.links[c].next = k.next
	}
	if k.next == nil {
		l.tail = k.prev
	} else {
		k.next.links[c].prev = k.prev
	}
	*k = links{}
}
