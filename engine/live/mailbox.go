package live

import (
	"sync"

	"mockbench/engine"
)

// flight is a request on its way through a worker, from Submit to the end of its stream.
type flight struct {
	request engine.Request
	stream  *Stream

	transfer *Transfer // nil if it is no handoff

	entered, dropped bool // submitted, or given up before; guarded by mailbox.mu

	number uint64 // counts the requests of the worker

	// Driver only:
	queued   bool // the engine has it, or had it and will get it again
	admitted bool // it has run
	shelved  bool // kept back for the next engine
	ended    bool
}

// mailbox holds what other goroutines ask of the driver. Urgent mail is read also during a pass, submits only between
// passes.
type mailbox struct {
	urgent chan struct{} // holds one element while there may be urgent mail
	work   chan struct{} // holds one element while there may be submits

	mu      sync.Mutex
	shut    bool // nothing more is taken
	submits []*flight
	letters letters
}

// letters is the urgent mail.
type letters struct {
	cancels []*flight
	calls   []*call
	steps   int

	cancelAll, stop bool
}

// call is something to be done in the driver, while somebody may wait for it.
type call struct {
	f     func(*driver)
	atEnd bool // not in the middle of a pass
	done  chan struct{}
}

func (c *call) run(d *driver) {
	c.f(d)
	close(c.done)
}

func newMailbox() *mailbox {
	return &mailbox{urgent: make(chan struct{}, 1), work: make(chan struct{}, 1)}
}

// post adds urgent mail and reports whether the driver will read it.
func (m *mailbox) post(write func(*letters)) bool {
	m.mu.Lock()
	shut := m.shut
	if !shut {
		write(&m.letters)
	}
	m.mu.Unlock()
	if !shut {
		ring(m.urgent)
	}
	return !shut
}

// takeLetters exchanges the urgent mail for the emptied one that the driver has read.
func (m *mailbox) takeLetters(read letters) letters {
	clear(read.cancels)
	clear(read.calls)
	m.mu.Lock()
	defer m.mu.Unlock()
	read, m.letters = m.letters, letters{cancels: read.cancels[:0], calls: read.calls[:0]}
	return read
}

// takeSubmits exchanges the submits for the emptied slice that the driver has read.
func (m *mailbox) takeSubmits(read []*flight) []*flight {
	clear(read)
	m.mu.Lock()
	defer m.mu.Unlock()
	read, m.submits = m.submits, read[:0]
	return read
}

// close refuses all further mail and returns the submits that nobody has read.
func (m *mailbox) close() []*flight {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shut = true
	return m.submits
}

// ring makes the reader of a channel of capacity one look.
func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
