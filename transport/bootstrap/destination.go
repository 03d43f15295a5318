package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
)

// DialOptions say where the source of a request is and who asks.
type DialOptions struct {
	Host     string // a name or an address; IPv6 in brackets or not
	Port     uint16
	Identity Identity
	Rank     int
	Backend  engine.Backend
	Timeout  time.Duration // of the session, without the modelled transfer
	Log      *slog.Logger  // nil: none
}

// Destination is a session as the decode worker sees it.
type Destination struct {
	o    DialOptions
	peer *peer

	local     Local
	stored    map[uint64]taken // actions and their outcomes
	queue     []ActionRequest  // that wait for the one in flight
	inFlight  *ActionRequest   // a reservation that the engine has not answered
	activated bool

	timing   *Timing
	missing  int // tokens, -1 until there is room
	extended bool
	end      time.Time
	deadline *time.Timer
}

// taken is an action and its outcome.
type taken struct {
	action  ActionRequest
	outcome *Outcome // nil: not yet
}

var (
	errUnexpected = fmt.Errorf("%w: a message that the other side does not send", errProtocol)
	errEarly      = fmt.Errorf("%w: a message before the registration was answered", errProtocol)
)

// Connect connects to the source of a request and introduces the destination. Run carries the handoff out.
func Connect(ctx context.Context, o DialOptions) (*Destination, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	address := net.JoinHostPort(strings.Trim(o.Host, "[]"), strconv.Itoa(int(o.Port)))
	dialer := net.Dialer{Timeout: defaultRendezvous}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("bootstrap connection failed: %s", reasonOf(err, address))
	}
	hello := appendFrame(preface[:len(preface):len(preface)], o.Identity,
		Register{Role: destinationRole, Rank: o.Rank, Order: OrderOf(o.Backend), Engine: string(o.Backend)})
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := conn.Write(hello); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("bootstrap connection failed: %s", reasonOf(err, address))
	}
	return &Destination{o: o, peer: newPeer(conn, bufio.NewReader(conn), o.Identity), stored: map[uint64]taken{}, missing: -1}, nil
}

// reasonOf words a failure to connect as the reference does.
func reasonOf(err error, address string) string {
	var number syscall.Errno
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		return "bootstrap connect timeout to " + address
	case errors.As(err, &number):
		text := number.Error()
		return fmt.Sprintf("%s%s (os error %d)", strings.ToUpper(text[:1]), text[1:], int(number))
	}
	return err.Error()
}

// Abandon ends a session that will not be Run.
func (d *Destination) Abandon() { d.peer.close() }

// Run does what the source asks for until the handoff is complete. On an error it cancels the request at the engine;
// the client is to be told ErrEnded. ctx ends when the client leaves before its answer is complete: the source then sees
// the connection end.
func (d *Destination) Run(ctx context.Context, local Local) error {
	d.local = local
	d.end = time.Now().Add(defaultRendezvous)
	d.deadline = time.NewTimer(defaultRendezvous)
	defer d.deadline.Stop()
	defer d.peer.close()
	err := d.registered(ctx)
	for complete := false; err == nil && !complete; {
		complete, err = d.wait(ctx)
	}
	if err == nil {
		d.o.Log.Debug("handoff complete", "handoff", d.o.Identity.Handoff, "request", d.o.Identity.Request)
		return nil
	}
	d.o.Log.Warn("handoff failed", "handoff", d.o.Identity.Handoff, "request", d.o.Identity.Request, "error", err)
	if errors.Is(err, errProtocol) || errors.Is(err, errTimeout) {
		_ = d.peer.send(Abort{err.Error()})
	}
	local.Cancel()
	return err
}

// registered waits for the source.
func (d *Destination) registered(ctx context.Context) error {
	select {
	case got := <-d.peer.frames():
		if got.err != nil {
			return failure(got.err, errSourceLeft)
		}
		if _, ok := got.message.(Registered); !ok {
			return refusalOf(got.message, errEarly)
		}
	case <-d.deadline.C:
		return errRendezvous
	case <-ctx.Done():
		return ctx.Err()
	}
	d.end = time.Now().Add(d.o.Timeout)
	d.deadline.Reset(d.o.Timeout)
	return nil
}

var errSourceLeft = errors.New("source disconnected")

// refusalOf is the error that a message of the source means.
func refusalOf(m Message, other error) error {
	switch m := m.(type) {
	case Abort:
		return errors.New(m.Message)
	case ProtocolError:
		return errors.New(m.Message)
	case Overloaded:
		return errors.New("the source is overloaded")
	}
	return other
}

// wait takes in the next thing that happens.
func (d *Destination) wait(ctx context.Context) (complete bool, err error) {
	select {
	case step := <-d.local.Steps():
		return false, d.step(step)
	case got := <-d.peer.frames():
		if got.err != nil {
			return false, failure(got.err, errSourceLeft)
		}
		return d.receive(got.message)
	case <-d.deadline.C:
		return false, errTimeout
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (d *Destination) receive(m Message) (complete bool, err error) {
	switch m := m.(type) {
	case ActionRequest:
		return false, d.action(m)
	case SourceHeld:
		if err := m.Timing.Check(); err != nil {
			return false, fmt.Errorf("%w: %v", errProtocol, err)
		}
		if m.Handoff == d.o.Identity.Handoff && d.timing == nil {
			d.timing = &m.Timing
			d.extend()
		}
		return false, nil
	case Complete:
		if !d.activated || d.inFlight != nil {
			return false, fmt.Errorf("%w: completion before the activation", errProtocol)
		}
		return true, nil
	}
	return false, refusalOf(m, errUnexpected)
}

// action takes in an action: a new one, or one that was asked for before.
func (d *Destination) action(a ActionRequest) error {
	if before, ok := d.stored[a.ID]; ok {
		switch {
		case before.action != a:
			return fmt.Errorf("%w: action %d came again with other content", errProtocol, a.ID)
		case before.outcome != nil:
			return d.send(ActionAck{a.ID, *before.outcome})
		}
		return nil
	}
	if len(d.stored) >= maxActions {
		return fmt.Errorf("%w: more than %d actions", errProtocol, maxActions)
	}
	d.stored[a.ID] = taken{action: a}
	d.queue = append(d.queue, a)
	return d.next()
}

// next carries out the actions that wait, one after the other.
func (d *Destination) next() error {
	for len(d.queue) > 0 && d.inFlight == nil {
		a := d.queue[0]
		d.queue = d.queue[1:]
		o, answered := d.do(a)
		if !answered {
			d.inFlight = &a
			return nil
		}
		if err := d.acknowledge(a, o); err != nil {
			return err
		}
	}
	return nil
}

// do carries out one action. A reservation is answered when the engine has answered.
func (d *Destination) do(a ActionRequest) (o Outcome, answered bool) {
	if a.Handoff != d.o.Identity.Handoff {
		return Failed("the action belongs to a different handoff"), true
	}
	switch a.Kind {
	case ReserveDestination:
		if err := d.local.Submit(); err != nil {
			return Failed(err.Error()), true
		}
		return o, false
	case ActivateDestination:
		if !d.local.Activate() {
			return Failed("the destination has no reservation"), true
		}
		d.activated = true
		return Applied, true
	case CancelDestination:
		d.local.Cancel()
		return Applied, true
	}
	return Failed("not an action of a destination: " + string(a.Kind)), true
}

func (d *Destination) acknowledge(a ActionRequest, o Outcome) error {
	d.stored[a.ID] = taken{a, &o}
	return d.send(ActionAck{a.ID, o})
}

func (d *Destination) send(m Message) error {
	if d.peer.send(m) != nil {
		return errSourceLeft
	}
	return nil
}

func (d *Destination) step(s live.Step) error {
	switch s.Kind {
	case live.Accepted:
		return d.answer(Accepted)
	case live.Refused:
		return d.answer(Failed(s.Err.Error()))
	case live.Ready:
		d.missing = s.Tokens
		d.extend()
		return d.send(DestinationReserved{Handoff: d.o.Identity.Handoff, Tokens: s.Tokens})
	}
	if d.inFlight != nil {
		return d.answer(Failed("the request has ended"))
	}
	return nil
}

// answer ends the action in flight.
func (d *Destination) answer(o Outcome) error {
	a := d.inFlight
	if a == nil {
		return nil
	}
	d.inFlight = nil
	if err := d.acknowledge(*a, o); err != nil {
		return err
	}
	return d.next()
}

// extend moves the deadline by the length of the transfer, once that is known.
func (d *Destination) extend() {
	if d.extended || d.timing == nil || d.timing.Mode == DestinationMissing && d.missing < 0 {
		return
	}
	d.extended = true
	if ms, ok := d.timing.Delay(d.missing); ok {
		d.end = d.end.Add(milliseconds(ms))
		d.deadline.Reset(time.Until(d.end))
	}
}
