package quicline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"mockbench/engine/spawn"
)

// registerTimeout bounds the wait for a frontend to confirm an answer.
const registerTimeout = 10 * time.Second

// Pool is the bundles to all frontends. The zero value is empty and ready.
type Pool struct {
	// Batch is how long bulk frames may wait for others to travel with. It is set before the first use.
	Batch time.Duration

	mu      sync.Mutex
	closed  bool
	bundles map[key]*entry
}

// key identifies a frontend.
type key struct {
	address     string
	frontend    uuid.UUID
	certificate string
}

// entry is a bundle that exists or is being made.
type entry struct {
	ready  chan struct{} // closed when one of the others is set
	bundle *bundle
	err    error
}

// Answer is one answer on its way. Write may be called by one goroutine at a time.
type Answer struct {
	bundle  *bundle
	id      uuid.UUID
	lane    int
	confirm func()
	ended   func() // the frontend wants no more, or is lost
	over    atomic.Bool
}

// Open connects to the frontend unless that has happened, and registers an answer. ended is called, at most once and by
// any goroutine, when the frontend wants no more of it.
func (p *Pool) Open(ctx context.Context, h Home, ended func()) (*Answer, error) {
	b, err := p.bundle(ctx, h)
	if err != nil {
		return nil, err
	}
	confirmed := make(chan struct{})
	gone := make(chan struct{})
	a := &Answer{bundle: b, id: h.Registration, lane: Lane(h.RequestID), confirm: sync.OnceFunc(func() { close(confirmed) })}
	a.ended = sync.OnceFunc(func() { close(gone); ended() })
	if err := b.add(a); err != nil {
		return nil, err
	}
	if err := b.priority[a.lane].write(AppendFrame(nil, Register, a.id, nil)); err != nil {
		b.remove(a)
		return nil, err
	}
	timeout := time.NewTimer(registerTimeout)
	defer timeout.Stop()
	select {
	case <-confirmed:
		return a, nil
	case <-gone:
		err = errors.New("the frontend gave the request up before it began")
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout.C:
		err = fmt.Errorf("the frontend did not confirm the answer within %v", registerTimeout)
	}
	b.remove(a)
	return nil, err
}

// bundle returns the bundle to a frontend, which is made by the first that asks for it.
func (p *Pool) bundle(ctx context.Context, h Home) (*bundle, error) {
	k := key{h.Address, h.Frontend, h.Certificate}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	if p.bundles == nil {
		p.bundles = map[key]*entry{}
	}
	e := p.bundles[k]
	if e == nil {
		e = &entry{ready: make(chan struct{})}
		p.bundles[k] = e
		spawn.Go("QUIC to "+h.Address, func() { p.dial(ctx, k, e, h) })
	}
	p.mu.Unlock()
	select {
	case <-e.ready:
		return e.bundle, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *Pool) dial(ctx context.Context, k key, e *entry, h Home) {
	defer close(e.ready)
	forget := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.bundles[k] == e {
			delete(p.bundles, k)
		}
	}
	e.bundle, e.err = dialBundle(ctx, h, p.Batch, forget)
	if e.err != nil {
		forget()
	}
}

// Close ends all connections and answers.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	var list []*entry
	for _, e := range p.bundles {
		list = append(list, e)
	}
	p.mu.Unlock()
	for _, e := range list {
		<-e.ready
		if e.bundle != nil {
			e.bundle.flush()
			e.bundle.lose(errClosed)
		}
	}
}

// ID returns the id that frames of the answer carry.
func (a *Answer) ID() uuid.UUID { return a.id }

// Priority writes frames that must not wait behind the data of other answers.
func (a *Answer) Priority(frames []byte) error { return a.write(a.bundle.priority[a.lane], frames) }

// Bulk writes the other frames.
func (a *Answer) Bulk(frames []byte) error { return a.write(a.bundle.bulk[a.lane], frames) }

func (a *Answer) write(l *lane, frames []byte) error {
	err := l.write(frames)
	if err != nil {
		a.bundle.lose(err)
	}
	return err
}

// end is called when the frontend wants no more. After a stop it still expects to be told the end.
func (a *Answer) end(stopped bool) {
	if !stopped {
		a.over.Store(true)
	}
	a.ended()
}

// Close forgets the answer. If it is not complete, the frontend is told, unless it has said that it does not care.
func (a *Answer) Close(complete bool) {
	if !complete && !a.over.Load() {
		_ = a.Priority(AppendFrame(nil, Reset, a.id, nil))
	}
	a.bundle.remove(a)
}
