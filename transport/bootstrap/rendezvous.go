package bootstrap

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// destination lets a destination wait for its source, or gives it to a source that waits. It returns the last word to
// the destination, nil if a session has begun or the destination has left.
func (s *Server) destination(p *peer, r Register) Message {
	w, refusal := s.present(p, r)
	if w == nil {
		return refusal
	}
	timer := time.NewTimer(s.o.Rendezvous)
	defer timer.Stop()
	var why error
	in := p.in
	for why == nil {
		select {
		case <-w.taken:
			return w.handOver()
		case got := <-in:
			p.early <- got
			in = nil // the session reads the rest
			if got.err != nil {
				why = errLeftEarly
			}
		case <-timer.C:
			why = errRendezvous
		case <-s.ctx.Done():
			why = errShutdown
		}
	}
	if !s.leave(w, why) { // the source has come in this moment
		return w.handOver()
	}
	if errors.Is(why, errLeftEarly) {
		p.close()
		return nil
	}
	return ProtocolError{why.Error()}
}

// handOver gives a destination that was taken to its source, or returns the last word to it.
func (w *waiter) handOver() Message {
	if w.refusal != nil {
		return ProtocolError{w.refusal.Error()}
	}
	w.result <- meeting{peer: w.peer}
	return nil
}

// present registers a destination. It returns its waiter if it has to wait, else its last word, if there is one.
func (s *Server) present(p *peer, r Register) (*waiter, Message) {
	refuse := func(err error) (*waiter, Message) { return nil, ProtocolError{err.Error()} }
	fits := r.Order == OrderOf(s.o.Engine.Backend) && r.Engine == string(s.o.Engine.Backend)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[p.id.Handoff]
	switch err := s.unusable(p.id.Handoff); {
	case err != nil:
		return refuse(err)
	case w != nil && w.peer != nil:
		return refuse(errDuplicate)
	case w != nil && (w.id != p.id || !fits):
		s.retire(w.id.Handoff, errRetired)
		w.result <- meeting{err: errMismatch}
		return refuse(errMismatch)
	case w != nil:
		s.engage(p.id.Handoff)
		w.result <- meeting{peer: p}
		return nil, nil
	case !fits:
		s.retire(p.id.Handoff, errMismatch) // so that the source need not wait
		return refuse(errMismatch)
	case s.full():
		return nil, Overloaded{}
	}
	w = &waiter{id: p.id, peer: p, taken: make(chan struct{}), result: make(chan meeting, 1)}
	s.waiting[p.id.Handoff] = w
	return w, nil
}

// meet lets a source wait for its destination.
func (s *Server) meet(ctx context.Context, id Identity) (*peer, error) {
	w, err := s.arrive(id)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(s.o.Rendezvous)
	defer timer.Stop()
	var why error
	if w.peer == nil {
		select {
		case m := <-w.result:
			return m.peer, m.err
		case <-timer.C:
			why = errRendezvous
		case <-ctx.Done():
			why = errSourceEarly
		case <-s.ctx.Done():
			why = errShutdown
		}
		if s.leave(w, why) {
			return nil, why
		}
	}
	m := <-w.result // the other side is about to send it
	return m.peer, m.err
}

// arrive registers a source. The waiter is its own, or that of the destination it takes.
func (s *Server) arrive(id Identity) (*waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[id.Handoff]
	switch err := s.unusable(id.Handoff); {
	case err != nil:
		return nil, err
	case w != nil && w.peer == nil:
		return nil, errRetired
	case w != nil && w.id != id:
		s.retire(id.Handoff, errRetired)
		w.refusal = errMismatch
		close(w.taken)
		return nil, errMismatch
	case w != nil:
		s.engage(id.Handoff)
		close(w.taken)
		return w, nil
	case s.full():
		return nil, errLimit
	}
	w = &waiter{id: id, result: make(chan meeting, 1)}
	s.waiting[id.Handoff] = w
	return w, nil
}

// unusable returns why a handoff id cannot be used, or nil. s.mu is locked, as in what follows.
func (s *Server) unusable(id uuid.UUID) error {
	switch {
	case s.closed:
		return errShutdown
	case s.active[id]:
		return errRetired
	}
	s.forget(time.Now())
	return s.retired[id]
}

func (s *Server) full() bool { return len(s.waiting)+len(s.active) >= s.o.Limit }

// engage turns a waiting id into a session.
func (s *Server) engage(id uuid.UUID) {
	delete(s.waiting, id)
	s.active[id] = true
	s.sessions.Add(1)
}

// retire bars an id for a while, for a reason that whoever asks is told.
func (s *Server) retire(id uuid.UUID, why error) {
	delete(s.waiting, id)
	delete(s.active, id)
	s.retired[id] = why
	s.byAge = append(s.byAge, retiree{id, time.Now()})
	s.forget(time.Now())
}

// forget lets go of ids that are barred for long enough, or too many.
func (s *Server) forget(now time.Time) {
	n := 0
	for n < len(s.byAge) && (len(s.byAge)-n > s.o.Limit || now.Sub(s.byAge[n].at) > s.o.Timeout) {
		delete(s.retired, s.byAge[n].id)
		n++
	}
	s.byAge = s.byAge[n:]
}

// leave ends the wait of one side and reports whether the other had not come meanwhile.
func (s *Server) leave(w *waiter, why error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[w.id.Handoff] != w {
		return false
	}
	s.retire(w.id.Handoff, why)
	return true
}

// finish ends a session.
func (s *Server) finish(id uuid.UUID) {
	s.mu.Lock()
	s.retire(id, errRetired)
	s.mu.Unlock()
	s.sessions.Done()
}
