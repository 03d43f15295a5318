package live

import "mockbench/engine"

// Tree returns the prefix cache of a rank as a tree of at most limit nodes. ok is false if its engine keeps none.
func (w *Worker) Tree(rank, limit int) (t engine.PrefixTree, ok bool, err error) {
	err = w.look(rank, func(r engine.Scheduler) {
		var inspector engine.TreeInspector
		if inspector, ok = r.(engine.TreeInspector); ok {
			t = inspector.Tree(limit)
		}
	})
	return t, ok, err
}

// CancelHead takes the request that a rank stalls on out of its queue and ends its stream as rejected. It returns the
// request's label, and false if the rank does not stall.
func (w *Worker) CancelHead(rank int) (label string, ok bool) {
	if rank < 0 || rank >= w.ranks {
		return "", false
	}
	err := w.ask(&call{f: func(d *driver) { label, ok = d.cancelHead(rank) }, done: make(chan struct{})})
	return label, ok && err == nil
}

func (d *driver) cancelHead(rank int) (label string, ok bool) {
	p := &d.stalls.ranks[rank]
	if !p.stuck || p.hint.Head == nil || p.hint.Kind == engine.HintHandoff {
		return "", false
	}
	f := d.flights.of(p.hint.Head)
	switch {
	case f == nil:
		return "", false
	case f.transfer != nil:
		d.withdraw(f.transfer)
	default:
		d.takeOut(f, Rejected)
	}
	return f.request.Label, true
}
