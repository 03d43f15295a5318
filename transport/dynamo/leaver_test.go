package dynamo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
)

// door is where requests are handed in.
type door interface {
	// hand hands a request in and waits until it is acknowledged.
	hand(payload []byte) (ack string, err error)

	// drop begins to hand a request in and goes away.
	drop(payload []byte, r *rand.Rand) error
}

// tcpDoor is the request plane of a worker; every request has a connection of its own.
type tcpDoor struct{ address, path string }

func (d tcpDoor) hand(payload []byte) (string, error) {
	c, err := net.Dial("tcp", d.address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write(planetest.Frame(d.path, nil, payload)); err != nil {
		return "", err
	}
	_ = c.SetReadDeadline(time.Now().Add(planetest.Patience))
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return "", err
	}
	text := make([]byte, size[3])
	_, err = io.ReadFull(c, text)
	return string(text), err
}

func (d tcpDoor) drop(payload []byte, r *rand.Rand) error {
	c, err := net.Dial("tcp", d.address)
	if err != nil {
		return err
	}
	frame := planetest.Frame(d.path, nil, payload)
	if r.IntN(2) == 0 {
		frame = frame[:r.IntN(len(frame))]
	}
	if _, err := c.Write(frame); err != nil {
		return err
	}
	depart(c.(*net.TCPConn), r)
	return nil
}

// natsDoor is the subject of a worker.
type natsDoor struct {
	conn    *nats.Conn
	subject string
}

func (d natsDoor) hand(payload []byte) (string, error) {
	m, err := d.conn.Request(d.subject, payload, planetest.Patience)
	if err != nil {
		return "", err
	}
	return string(m.Data), nil
}

func (d natsDoor) drop(payload []byte, r *rand.Rand) error {
	if r.IntN(2) == 0 {
		payload = payload[:r.IntN(len(payload))]
	}
	return d.conn.Publish(d.subject, payload)
}

// depart closes a connection with a reset or in order.
func depart(c *net.TCPConn, r *rand.Rand) {
	if r.IntN(2) == 0 {
		_ = c.SetLinger(0)
	}
	_ = c.Close()
}

// leaver is a frontend whose clients leave, one request after the other.
type leaver struct {
	name   string
	random *rand.Rand
	door   door
	home   *net.TCPListener
	serial int
	left   map[string]int // by the way they left
}

func newLeaver(seed uint64, d door) (*leaver, error) {
	l := &leaver{name: fmt.Sprint("f", seed), random: rand.New(rand.NewPCG(seed, 0)), door: d, left: map[string]int{}}
	return l, l.move()
}

// move listens for answers at a new address: answers to the old one find nobody.
func (l *leaver) move() error {
	if l.home != nil {
		_ = l.home.Close()
	}
	home, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	l.home = home
	return err
}

// id is the id of the latest request.
func (l *leaver) id() string { return fmt.Sprint(l.name, "-", l.serial) }

// request returns the payload of a request, and the number of tokens it asks for.
func (l *leaver) request() (payload []byte, tokens int, err error) {
	l.serial++
	id := l.id()
	info, err := json.Marshal(map[string]string{"address": l.home.Addr().String(), "subject": id, "context": id, "stream_type": "response"})
	if err != nil {
		return nil, 0, err
	}
	control, err := json.Marshal(map[string]any{"id": id, "request_type": "single_in", "response_type": "many_out",
		"payload_codec": "json", "connection_info": map[string]string{"transport": "tcp_server", "info": string(info)}})
	if err != nil {
		return nil, 0, err
	}
	tokens = 1 + l.random.IntN(60)
	prompt := make([]int, 1+l.random.IntN(300))
	first := l.random.IntN(8)
	for i := range prompt {
		prompt[i] = first + i
	}
	body, err := json.Marshal(request(prompt, tokens))
	return requestplane.AppendMessage(nil, control, body), tokens, err
}

// ways are how a client leaves once the worker has called. tokens is how long the whole answer is.
var ways = map[string]func(l *leaver, c *net.TCPConn, tokens int) error{
	"after the introduction": func(*leaver, *net.TCPConn, int) error { return nil },
	"while it reads": func(l *leaver, c *net.TCPConn, tokens int) error {
		return read(c, l.random.IntN(tokens+1))
	},
	"while it reads nothing": func(l *leaver, c *net.TCPConn, _ int) error {
		_ = c.SetReadBuffer(1) // the least that the system allows
		time.Sleep(time.Duration(l.random.IntN(20)) * time.Millisecond)
		return nil
	},
	"with a kill":     func(l *leaver, c *net.TCPConn, tokens int) error { return l.say(c, tokens, "kill") },
	"with a stop":     func(l *leaver, c *net.TCPConn, tokens int) error { return l.say(c, tokens, "stop") },
	"with stop, kill": func(l *leaver, c *net.TCPConn, tokens int) error { return l.say(c, tokens, "stop", "kill") },
	"killed, then waits": func(l *leaver, c *net.TCPConn, tokens int) error {
		if err := l.say(c, tokens, "kill"); err != nil {
			return err
		}
		return untilEnd(c)
	},
	"half closed, then waits": func(l *leaver, c *net.TCPConn, tokens int) error {
		if err := read(c, l.random.IntN(tokens+1)); err != nil {
			return err
		}
		_ = c.CloseWrite()
		return untilEnd(c)
	},
	"with garbage": func(l *leaver, c *net.TCPConn, tokens int) error {
		garbage := make([]byte, 1+l.random.IntN(100))
		for i := range garbage {
			garbage[i] = byte(l.random.Uint32())
		}
		_, _ = c.Write(garbage)
		return nil
	},
	"after the answer": func(_ *leaver, c *net.TCPConn, tokens int) error {
		const others = 4 // prologue, final frame, end of the answer and sentinel
		if err := read(c, tokens+others); err != nil {
			return fmt.Errorf("a client that stays: %w", err)
		}
		return nil
	},
}

// More ways to leave, for which no worker has to call.
const (
	beforeAck  = "before the acknowledgement"
	beforeCall = "before the worker calls"
	atCall     = "when the worker calls"
)

// wayNames are the keys of ways in an order that does not change.
var wayNames = func() (names []string) {
	for name := range ways {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

// next hands one request in and leaves.
func (l *leaver) next() error {
	payload, tokens, err := l.request()
	if err != nil {
		return err
	}
	switch way := l.random.IntN(len(ways) + 3); way {
	case len(ways):
		l.left[beforeAck]++
		if err := l.door.drop(payload, l.random); err != nil {
			return err
		}
		return l.move()
	case len(ways) + 1:
		l.left[beforeCall]++
		_ = l.home.Close()
		if _, err := l.door.hand(payload); err != nil {
			return err
		}
		return l.move()
	case len(ways) + 2:
		l.left[atCall]++
		c, err := l.call(payload)
		if err != nil {
			return err
		}
		depart(c, l.random)
		return l.move()
	default:
		return l.answer(wayNames[way], payload, tokens)
	}
}

// answer hands a request in, waits for the answer and leaves in one of the ways.
func (l *leaver) answer(way string, payload []byte, tokens int) error {
	l.left[way]++
	c, err := l.call(payload)
	for ; err == nil; c, err = l.accept() {
		_ = c.SetDeadline(time.Now().Add(planetest.Patience))
		introduction, _, err := requestplane.ReadMessage(c, 1<<20)
		if err == nil && strings.Contains(string(introduction), `"`+l.id()+`"`) {
			break
		}
		_ = c.Close() // for a frontend that had this address before
	}
	if err != nil {
		return err
	}
	defer depart(c, l.random)
	if err := ways[way](l, c, tokens); err != nil {
		return fmt.Errorf("a client that leaves %s: %w", way, err)
	}
	return nil
}

// call hands a request in and waits for somebody to call.
func (l *leaver) call(payload []byte) (*net.TCPConn, error) {
	if ack, err := l.door.hand(payload); err != nil || ack != "" {
		return nil, fmt.Errorf("acknowledged %q: %w", ack, err)
	}
	return l.accept()
}

func (l *leaver) accept() (*net.TCPConn, error) {
	_ = l.home.SetDeadline(time.Now().Add(planetest.Patience))
	return l.home.AcceptTCP()
}

// say reads a part of the answer, then sends words.
func (l *leaver) say(c *net.TCPConn, tokens int, words ...string) error {
	if err := read(c, l.random.IntN(tokens+1)); err != nil {
		return err
	}
	for _, word := range words {
		_, _ = c.Write(requestplane.AppendMessage(nil, []byte(`"`+word+`"`), nil)) // fails if the answer is complete
	}
	return nil
}

// read reads n messages.
func read(c *net.TCPConn, n int) error {
	for i := range n {
		if _, _, err := requestplane.ReadMessage(c, 1<<20); err != nil {
			return fmt.Errorf("message %d of %d: %w", i, n, err)
		}
	}
	return nil
}

// untilEnd reads until the worker closes or the answer is complete, one of which must happen.
func untilEnd(c *net.TCPConn) error {
	for {
		header, _, err := requestplane.ReadMessage(c, 1<<20)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			return errors.New("the worker does not close the connection")
		}
		if err != nil || string(header) == `"sentinel"` {
			return nil
		}
	}
}
