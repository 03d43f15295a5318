// Package planetest is a scripted frontend for tests of what serves the request plane.
package planetest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"mockbench/transport/requestplane"
)

// Patience is how long a test waits for what must happen.
const Patience = 20 * time.Second

// Frontend is a listener for answers.
type Frontend struct {
	t        testing.TB
	listener net.Listener
	mu       sync.Mutex
	serial   int
}

// New starts a frontend that ends with the test.
func New(t testing.TB) *Frontend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &Frontend{t: t, listener: l}
}

// Addr returns where answers are expected.
func (f *Frontend) Addr() string { return f.listener.Addr().String() }

// ID returns a new request id.
func (f *Frontend) ID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serial++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", f.serial)
}

// Control returns the control message of a request in a codec. Its subject is "subject-" and the id.
func (f *Frontend) Control(id, codec string) []byte {
	info, _ := json.Marshal(map[string]string{"address": f.Addr(), "subject": Subject(id), "context": id, "stream_type": "response"})
	control, _ := json.Marshal(map[string]any{"id": id, "request_type": "single_in", "response_type": "many_out",
		"payload_codec": codec, "connection_info": map[string]string{"transport": "tcp_server", "info": string(info)}})
	return control
}

// Subject is the subject of a request.
func Subject(id string) string { return "subject-" + id }

// Answer waits for the next worker to call, reads its introduction and returns the connection.
func (f *Frontend) Answer() *Answer {
	f.t.Helper()
	a, err := f.answer(Patience)
	if err != nil {
		f.t.Fatalf("no worker has called: %v", err)
	}
	return a
}

// Silent reports whether no worker calls within the given time.
func (f *Frontend) Silent(d time.Duration) bool {
	a, err := f.answer(d)
	if err == nil {
		a.Conn.Close()
	}
	return errors.Is(err, errDeadline)
}

var errDeadline = errors.New("nothing happened in time")

func (f *Frontend) answer(d time.Duration) (*Answer, error) {
	_ = f.listener.(*net.TCPListener).SetDeadline(time.Now().Add(d))
	c, err := f.listener.Accept()
	if err != nil {
		return nil, errors.Join(errDeadline, err)
	}
	f.t.Cleanup(func() { c.Close() })
	a := &Answer{t: f.t, Conn: c.(*net.TCPConn)}
	if a.Introduction, err = a.read(); err != nil {
		return nil, err
	}
	return a, nil
}

// Message is one two-part message.
type Message struct{ Header, Body []byte }

// Answer is a connection on which a worker answers.
type Answer struct {
	t            testing.TB
	Conn         *net.TCPConn
	Introduction Message
}

// Next returns the next message; ok is false at the end of the connection.
func (a *Answer) Next() (m Message, ok bool) {
	a.t.Helper()
	m, err := a.read()
	if err != nil && !errors.Is(err, io.EOF) {
		a.t.Fatalf("answer connection: %v", err)
	}
	return m, err == nil
}

// Rest returns all messages up to the sentinel or the end of the connection, and closes it.
func (a *Answer) Rest() (list []Message) {
	a.t.Helper()
	defer a.Conn.Close()
	for {
		m, ok := a.Next()
		if !ok {
			return list
		}
		list = append(list, m)
		if string(m.Header) == `"sentinel"` {
			return list
		}
	}
}

// Send writes a header to the worker.
func (a *Answer) Send(header string) {
	a.t.Helper()
	if _, err := a.Conn.Write(requestplane.AppendMessage(nil, []byte(header), nil)); err != nil {
		a.t.Fatal(err)
	}
}

func (a *Answer) read() (Message, error) {
	_ = a.Conn.SetReadDeadline(time.Now().Add(Patience))
	header, body, err := requestplane.ReadMessage(a.Conn, 64<<20)
	return Message{header, body}, err
}

// Conn is a request connection to a worker.
type Conn struct {
	t testing.TB
	net.Conn
}

// Dial connects to a worker.
func Dial(t testing.TB, addr string) *Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &Conn{t, c}
}

// Send writes a request frame.
func (c *Conn) Send(path string, headers, control, body []byte) {
	c.t.Helper()
	if _, err := c.Write(Frame(path, headers, requestplane.AppendMessage(nil, control, body))); err != nil {
		c.t.Fatal(err)
	}
}

// Frame returns a request frame.
func Frame(path string, headers, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(path)))
	b = append(b, path...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(headers)))
	b = append(b, headers...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// Ack returns the next acknowledgement.
func (c *Conn) Ack() string {
	c.t.Helper()
	var n [4]byte
	_ = c.SetReadDeadline(time.Now().Add(Patience))
	if _, err := io.ReadFull(c, n[:]); err != nil {
		c.t.Fatalf("no acknowledgement: %v", err)
	}
	b := make([]byte, binary.BigEndian.Uint32(n[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		c.t.Fatalf("half an acknowledgement: %v", err)
	}
	return string(b)
}

// Closed waits for the worker to close the connection.
func (c *Conn) Closed() bool {
	_ = c.SetReadDeadline(time.Now().Add(Patience))
	n, err := c.Read(make([]byte, 1))
	var timeout net.Error
	return n == 0 && err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}
