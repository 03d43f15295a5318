package zmtp

import (
	"bytes"
	"fmt"
	"time"
)

// Router is a socket that answers requests of DEALER and REQ peers. It is safe for concurrent use.
type Router struct {
	server *server
	answer Answer
}

// Answer handles one request. The frames are valid during the call. Each message given to reply goes to the peer that
// asked; reply waits while the peer's queue is full and returns false once the peer is gone. Requests of one peer are
// answered one after the other, those of different peers at the same time.
type Answer func(request [][]byte, reply func(message []byte) bool)

// ListenRouter opens a socket whose requests go to answer.
func ListenRouter(o Options, answer Answer) (*Router, error) {
	s, err := listen(o, "ROUTER", []string{"DEALER", "REQ", "ROUTER"})
	if err != nil {
		return nil, err
	}
	r := &Router{server: s, answer: answer}
	s.start(r.serve)
	return r, nil
}

// Addr returns the host:port the socket listens on.
func (r *Router) Addr() string { return r.server.listener.Addr().String() }

// Peers returns the connected peers in order of arrival.
func (r *Router) Peers() []Peer {
	peers, _ := r.server.describe()
	return peers
}

// Close stops listening, waits at most linger until peers have taken what is queued for them, and disconnects them.
func (r *Router) Close(linger time.Duration) { r.server.close(linger) }

func (r *Router) serve(p *peer) error {
	var request [][]byte
	for {
		flags, body, err := p.in.next()
		if err != nil {
			return err
		}
		if flags&flagCommand != 0 {
			if err := p.command(body); err != nil {
				return err
			}
			continue
		}
		if len(request) == maxMessageFrames {
			return fmt.Errorf("%w: message of more than %d frames", errGarbage, maxMessageFrames)
		}
		request = append(request, bytes.Clone(body))
		if flags&flagMore == 0 {
			r.answer(request, func(m []byte) bool { return p.send(m, r.server.stop) })
			request = request[:0]
		}
	}
}

// send queues a message, waiting for space; false if the connection fails or stop is closed meanwhile.
func (p *peer) send(m []byte, stop <-chan struct{}) bool {
	for {
		if p.out.add(m) {
			return true
		}
		select {
		case <-p.out.space:
		case <-p.out.done:
			return false
		case <-stop:
			return false
		}
	}
}
