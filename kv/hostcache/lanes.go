package hostcache

// lanes moves the transfers of one rank one after the other, stores and loads in lanes of their own. When a transfer is
// complete is fixed when it is submitted.
type lanes [2]struct {
	tail  float64 // when the last transfer is complete
	queue []*Transfer
}

func (l *lanes) submit(t *Transfer) {
	lane := &l[t.direction()]
	begin := max(lane.tail, t.ready)
	t.Done = begin
	if rate := t.port.link[t.direction()]; rate > 0 {
		t.Done += t.left / rate
	}
	lane.tail = t.Done
	lane.queue = append(lane.queue, t)
}

// first returns the transfer that is complete next.
func (l *lanes) first() *Transfer {
	var first *Transfer
	for i := range l {
		q := &l[i].queue
		for len(*q) > 0 && (*q)[0].cancelled {
			*q = (*q)[1:]
		}
		if len(*q) == 0 {
			continue
		}
		if t := (*q)[0]; first == nil || t.Done < first.Done || t.Done == first.Done && before(t, first) {
			first = t
		}
	}
	return first
}

func (l *lanes) next(float64) (float64, bool) {
	t := l.first()
	if t == nil {
		return 0, false
	}
	return t.Done, true
}

func (l *lanes) advance(_, to float64) (done []*Transfer) {
	for {
		t := l.first()
		if t == nil || t.Done > to {
			return done
		}
		lane := &l[t.direction()]
		lane.queue = lane.queue[1:]
		done = append(done, t)
	}
}

func (l *lanes) cancel(*Transfer) {} // it is passed over when its turn comes
