package quicline

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/quic-go/quic-go"

	"mockbench/engine/spawn"
)

const (
	protocol    = "dynamo-response-v2"
	serverName  = "localhost"
	violation   = quic.ApplicationErrorCode(1) // of the protocol; also how a bundle that is lost in part is given up
	orderly     = quic.ApplicationErrorCode(0)
	dialTimeout = 5 * time.Second

	// keepAlive holds bundles open between requests.
	keepAlive = 10 * time.Second

	// writeTimeout is how long a frontend may hold a lane back before the bundle counts as lost.
	writeTimeout = 5 * time.Minute
)

// errClosed is why answers end when the pool is closed.
var errClosed = errors.New("the worker is being closed")

// bundle is the connections to one frontend.
type bundle struct {
	conns          []*quic.Conn
	bulk, priority [lanes]*lane

	mu      sync.Mutex
	answers map[uuid.UUID]*Answer
	lost    error // why the bundle is of no more use
	onLoss  func()
}

// dialBundle connects to a frontend and opens all lanes, whose bulk ones batch. onLoss is called once when the bundle is
// lost.
func dialBundle(ctx context.Context, h Home, batch time.Duration, onLoss func()) (*bundle, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	b := &bundle{conns: make([]*quic.Conn, lanes+1), answers: map[uuid.UUID]*Answer{}, onLoss: onLoss}
	errs := make([]error, len(b.conns))
	var all sync.WaitGroup
	for i := range b.conns {
		all.Add(1)
		spawn.Go("dial QUIC", func() {
			defer all.Done()
			b.conns[i], errs[i] = quic.DialAddr(ctx, h.Address, clientTLS(h.Certificate), &quic.Config{KeepAlivePeriod: keepAlive})
		})
	}
	all.Wait()
	err := errors.Join(errs...)
	if err == nil {
		err = b.openLanes(ctx)
	}
	if err != nil {
		b.closeConns(violation, "")
		return nil, fmt.Errorf("QUIC to %s: %w", h.Address, err)
	}
	for i := range lanes {
		b.bulk[i].batch, b.bulk[i].failed = batch, b.lose
		b.listen(b.bulk[i])
		b.listen(b.priority[i])
	}
	return b, nil
}

// clientTLS accepts exactly one certificate, whatever it says.
func clientTLS(certificate string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: serverName, NextProtos: []string{protocol},
		InsecureSkipVerify: true, // the check of the fingerprint replaces the usual one
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(raw) == 0 {
				return errors.New("the frontend shows no certificate")
			}
			if got := sha256.Sum256(raw[0]); hex.EncodeToString(got[:]) != certificate {
				return fmt.Errorf("the frontend's certificate has the fingerprint %x, want %s", got, certificate)
			}
			return nil
		},
	}
}

// openLanes opens a bulk lane on each of the first connections and all priority lanes on the last one.
func (b *bundle) openLanes(ctx context.Context) error {
	hello := AppendFrame(nil, Bundle, uuid.New(), nil)
	open := func(c *quic.Conn) (*lane, error) {
		stream, err := c.OpenStreamSync(ctx)
		if err != nil {
			return nil, err
		}
		l := &lane{stream: stream}
		return l, l.write(hello)
	}
	for i := range lanes {
		var err error
		if b.bulk[i], err = open(b.conns[i]); err != nil {
			return err
		}
		if b.priority[i], err = open(b.conns[lanes]); err != nil {
			return err
		}
	}
	return nil
}

// flush writes what waits on the bulk lanes.
func (b *bundle) flush() {
	for _, l := range b.bulk {
		_ = l.flush()
	}
}

// listen reads what the frontend says on a lane.
func (b *bundle) listen(l *lane) {
	spawn.Go("QUIC lane", func() {
		r := bufio.NewReader(l.stream)
		for {
			kind, id, err := readFrame(r)
			if err == nil {
				err = b.take(kind, id)
			}
			if err != nil {
				b.lose(err)
				return
			}
		}
	})
}

// take acts on a frame of the frontend. Frames for answers that have ended are no mistake.
func (b *bundle) take(kind Kind, id uuid.UUID) error {
	b.mu.Lock()
	a := b.answers[id]
	b.mu.Unlock()
	switch {
	case kind != Registered && kind != Stop && kind != Kill && kind != Reset:
		return fmt.Errorf("a frontend sent a frame of kind %d", kind)
	case a == nil:
	case kind == Registered:
		a.confirm()
	default:
		a.end(kind == Stop)
	}
	return nil
}

// add makes an answer known.
func (b *bundle) add(a *Answer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil {
		return b.lost
	}
	if b.answers[a.id] != nil {
		return fmt.Errorf("registration %s exists already", a.id)
	}
	b.answers[a.id] = a
	return nil
}

func (b *bundle) remove(a *Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.answers, a.id)
}

// lose gives the bundle up: all its answers end.
func (b *bundle) lose(why error) {
	b.mu.Lock()
	first := b.lost == nil
	if first {
		b.lost = fmt.Errorf("the connection to the frontend is lost: %w", why)
	}
	answers := b.answers
	b.answers = map[uuid.UUID]*Answer{}
	b.mu.Unlock()
	if !first {
		return
	}
	b.onLoss()
	code := violation
	if errors.Is(why, errClosed) {
		code = orderly
	}
	b.closeConns(code, why.Error())
	for _, a := range answers {
		a.end(false)
	}
}

func (b *bundle) closeConns(code quic.ApplicationErrorCode, why string) {
	for _, c := range b.conns {
		if c != nil {
			_ = c.CloseWithError(code, why)
		}
	}
}
