package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"mockbench/transport/discovery"
)

const (
	firstRetry = 500 * time.Millisecond
	mostRetry  = 5 * time.Second
)

// errExpired is a lease the server no longer has.
var errExpired = errors.New("the lease has expired or was revoked")

// lease is the place of one worker. A goroutine of its own renews it; if it is lost, the worker's records are gone, and
// either it is granted again under the same id, or the worker is told.
type lease struct {
	b       *Backend
	id      clientv3.LeaseID
	lost    chan error // takes one
	renewed atomic.Uint64

	stop    context.CancelFunc
	life    context.Context
	stopped chan struct{}

	deadline time.Time // when the lease runs out unless it is renewed; owned by the goroutine

	mu      sync.Mutex // guards what follows
	records []record   // in the order in which they were published
	gone    bool       // the server has no lease of ours: nothing needs to be taken back
}

type record struct {
	key   discovery.Key
	value string
}

func newLease(b *Backend) *lease {
	l := &lease{b: b, lost: make(chan error, 1), stopped: make(chan struct{})}
	l.life, l.stop = context.WithCancel(b.life)
	return l
}

// NewID implements discovery.Store: the id of the lease.
func (l *lease) NewID() uint64 { return uint64(l.id) }

// String implements discovery.Store.
func (l *lease) String() string { return l.b.String() }

// List implements discovery.Store.
func (l *lease) List(ctx context.Context, bucket string) (map[string][]byte, error) {
	return l.b.List(ctx, bucket)
}

// grant takes a lease of an id; 0 lets the server choose.
func (l *lease) grant(ctx context.Context, id clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	sent := time.Now()
	r, err := l.b.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: int64(id), TTL: int64(l.b.o.TTL / time.Second)})
	if err != nil {
		return rpctypes.Error(err)
	}
	if id == 0 {
		l.id = clientv3.LeaseID(r.ID)
	}
	l.deadline = sent.Add(time.Duration(r.TTL) * time.Second)
	return nil
}

// renew asks once for more time and returns what the server gave.
func (l *lease) renew(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel() // ends the stream
	stream, err := l.b.leases.LeaseKeepAlive(ctx)
	if err != nil {
		return 0, rpctypes.Error(err)
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(l.id)}); err != nil {
		return 0, rpctypes.Error(err)
	}
	r, err := stream.Recv()
	if err != nil {
		return 0, rpctypes.Error(err)
	}
	return time.Duration(r.TTL) * time.Second, nil
}

// keepAlive runs until the place is closed or lost for good.
func (l *lease) keepAlive() {
	defer close(l.stopped)
	for {
		why := l.hold()
		if l.life.Err() != nil {
			return
		}
		l.mu.Lock()
		l.gone = true
		l.mu.Unlock()
		if !l.b.o.Reregister {
			l.lost <- fmt.Errorf("etcd at %s lost worker %x: %w", l.b.where(), l.id, why)
			return
		}
		l.b.log.Warn("lease lost, registering again", "backend", l.b, "worker", fmt.Sprintf("%x", l.id), "error", why)
		if !l.restore() {
			return
		}
		l.renewed.Add(1)
		l.b.log.Info("registered again under a new lease", "backend", l.b, "worker", fmt.Sprintf("%x", l.id))
	}
}

// hold renews the lease every third of its time, and more often after a failure. It returns why that is over: the server
// says so, or it was silent for so long that it must have dropped the lease, even if the connection still stands.
func (l *lease) hold() error {
	span, pause, retry := l.b.o.TTL, l.b.o.TTL/3, firstRetry
	for {
		if !l.sleep(min(pause, time.Until(l.deadline))) {
			return l.life.Err()
		}
		sent := time.Now()
		limit := sent.Add(max(span/3, firstRetry))
		if limit.After(l.deadline) {
			limit = l.deadline
		}
		ctx, cancel := context.WithDeadline(l.life, limit)
		ttl, err := l.renew(ctx)
		cancel()
		switch {
		case err == nil && ttl <= 0, errors.Is(err, rpctypes.ErrLeaseNotFound):
			return errExpired
		case err == nil:
			span, pause, retry, l.deadline = ttl, ttl/3, firstRetry, sent.Add(ttl)
		case !time.Now().Before(l.deadline):
			return fmt.Errorf("no renewal for %v: %s", span, reason(err))
		default:
			pause = min(retry, time.Until(l.deadline)/2)
			retry = min(2*retry, mostRetry)
		}
	}
}

// restore takes a new lease under the old id and publishes everything again. It tries until it succeeds, and reports
// false if the place is closed meanwhile.
func (l *lease) restore() bool {
	for retry := firstRetry; ; retry = min(2*retry, mostRetry) {
		err := l.again()
		if err == nil {
			return true
		}
		if !l.sleep(retry) {
			return false
		}
	}
}

func (l *lease) again() error {
	// A server that was silent may have kept the lease, and with it records that were taken back meanwhile.
	if err := l.revoke(l.life); err != nil {
		return err
	}
	if err := l.grant(l.life, l.id); err != nil {
		return err
	}
	l.mu.Lock()
	l.gone = false
	list := slices.Clone(l.records)
	l.mu.Unlock()
	for _, r := range list {
		if err := l.write(l.life, r); err != nil {
			return err
		}
		if !l.owns(r.key) { // taken back at the same time
			if err := l.erase(l.life, r.key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lease) owns(key discovery.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.records, func(r record) bool { return r.key == key })
}

// away reports whether the server has no lease of ours.
func (l *lease) away() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// revoke ends the lease and all its records. A lease the server does not know is no error.
func (l *lease) revoke(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := l.b.leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: int64(l.id)})
	if err = rpctypes.Error(err); errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return err
}

// sleep waits and reports whether the place is still open.
func (l *lease) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.life.Done():
		return false
	}
}

// Close implements discovery.Store: it revokes the lease.
func (l *lease) Close(ctx context.Context) error {
	l.stop()
	<-l.stopped
	l.mu.Lock()
	gone := l.gone
	l.records, l.gone = nil, true
	l.mu.Unlock()
	if gone {
		return nil
	}
	if err := l.revoke(ctx); err != nil {
		return fmt.Errorf("etcd at %s: revoking lease %x, which expires within %v: %s", l.b.where(), l.id, l.b.o.TTL, reason(err))
	}
	return nil
}
