package zmtp

import (
	"fmt"
	"time"
)

// A peer may hold so many subscriptions.
const maxPrefixes = 1024

// Pub is a publishing socket. A subscriber gets the messages that start with a prefix it subscribed to, in order,
// except those for which its own queue was full. It is safe for concurrent use.
type Pub struct{ server *server }

// ListenPub opens a publishing socket.
func ListenPub(o Options) (*Pub, error) {
	s, err := listen(o, "PUB", []string{"SUB", "XSUB"})
	if err != nil {
		return nil, err
	}
	p := &Pub{server: s}
	s.start(p.serve)
	return p, nil
}

// Addr returns the host:port the socket listens on.
func (p *Pub) Addr() string { return p.server.listener.Addr().String() }

// Publish queues a message, made by Message or in its form, for every subscriber whose subscriptions match topic, the
// content of its first frame. It never waits. The bytes are shared and must not be changed afterwards.
func (p *Pub) Publish(topic string, message []byte) {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, peer := range s.peers {
		if !peer.wants(topic) {
			continue
		}
		if peer.out.offer(message) {
			s.log.Warn("subscriber is too slow, messages for it are dropped", "topic", topic,
				"subscriber", peer.conn.RemoteAddr().String(), "queue", s.options.QueueMessages)
		}
	}
}

// Peers returns the connected subscribers in order of arrival, and the messages dropped so far for these and for
// subscribers that are gone.
func (p *Pub) Peers() (peers []Peer, dropped uint64) { return p.server.describe() }

// Close stops listening, waits at most linger until subscribers have taken what is queued for them, and disconnects
// them.
func (p *Pub) Close(linger time.Duration) { p.server.close(linger) }

func (p *peer) wants(topic string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for prefix := range p.prefixes {
		if len(prefix) <= len(topic) && topic[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}

// serve reads subscriptions. They come as messages whose first byte is 1 (add) or 0 (remove), or as commands.
func (p *Pub) serve(peer *peer) error {
	for {
		flags, body, err := peer.in.next()
		if err != nil {
			return err
		}
		if flags&flagCommand == 0 {
			if flags&flagMore == 0 && len(body) > 0 && body[0] <= 1 {
				err = peer.subscribe(string(body[1:]), body[0] == 1)
			}
		} else {
			err = peer.command(body)
		}
		if err != nil {
			return err
		}
	}
}

func (p *peer) command(body []byte) error {
	name, data, err := splitCommand(body)
	if err != nil {
		return err
	}
	switch name {
	case "SUBSCRIBE", "CANCEL":
		return p.subscribe(string(data), name == "SUBSCRIBE")
	case "PING":
		p.pong(data)
	}
	return nil
}

func (p *peer) subscribe(prefix string, add bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !add {
		delete(p.prefixes, prefix)
		return nil
	}
	if len(p.prefixes) >= maxPrefixes {
		return fmt.Errorf("%w: more than %d subscriptions", errGarbage, maxPrefixes)
	}
	p.prefixes[prefix] = true
	return nil
}
