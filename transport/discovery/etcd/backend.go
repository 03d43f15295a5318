package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"mockbench/engine/spawn"
	"mockbench/transport/discovery"
)

const (
	dialTimeout    = 5 * time.Second
	requestTimeout = 5 * time.Second // of one request; a caller's context may end it sooner
	requestTries   = 5               // the last failure says more than running out of time

	leastTry          = time.Second // to connect, however little time is left
	firstStartupPause = time.Second
	mostStartupPause  = 30 * time.Second
)

// reconnect is how the connection comes back: soon after the server does, so that leases are not lost by waiting.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 250 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
	MinConnectTimeout: dialTimeout,
}

// Backend is a connection to an etcd server.
type Backend struct {
	o      Options
	log    *slog.Logger
	client *clientv3.Client // its requests wait for a connection
	direct pb.KVClient      // its requests fail at once without one
	leases pb.LeaseClient   // these too

	life context.Context // ends when the backend is closed
	end  context.CancelFunc

	mu     sync.Mutex // guards members and closed
	places []*lease
	closed bool
}

// Open connects to the server and waits until it answers, at most Options.StartupTimeout.
func Open(ctx context.Context, o Options) (*Backend, error) {
	b := &Backend{o: o, log: o.Log}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.life, b.end = context.WithCancel(context.Background())
	if err := b.connect(ctx); err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

// connect tries until a server answers.
func (b *Backend) connect(ctx context.Context) error {
	begin, pause := time.Now(), firstStartupPause
	for {
		err := b.try(ctx, min(requestTimeout, max(leastTry, b.o.StartupTimeout-time.Since(begin))))
		left := b.o.StartupTimeout - time.Since(begin)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case refused(err):
			return fmt.Errorf("etcd at %s refuses us: %s (ETCD_AUTH_USERNAME and ETCD_AUTH_PASSWORD say who we are)", b.where(), reason(err))
		case left <= 0:
			return fmt.Errorf("etcd did not answer at %s (ETCD_ENDPOINTS) within %v (ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS), at last: %s",
				b.where(), b.o.StartupTimeout, reason(err))
		}
		wait := min(pause, left)
		b.log.Warn("etcd does not answer", "endpoints", b.where(), "retry_in", wait, "error", reason(err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, mostStartupPause)
	}
}

// try makes a client and reads a key with it.
func (b *Backend) try(ctx context.Context, limit time.Duration) error {
	config := clientv3.Config{
		Context: b.life, Endpoints: b.o.Endpoints, DialTimeout: dialTimeout, TLS: b.o.TLS, Username: b.o.Username,
		Password: b.o.Password, DialKeepAliveTimeout: b.o.PingTimeout, DialKeepAliveTime: b.o.PingInterval,
		MaxUnaryRetries: requestTries, BackoffWaitBetween: 100 * time.Millisecond,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(reconnect)},
		Logger:      zap.NewNop(), // it would write to stderr, over the screen
	}
	client, err := clientv3.New(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	direct := pb.NewKVClient(client.ActiveConnection())
	if _, err := direct.Range(ctx, &pb.RangeRequest{Key: []byte(discovery.Instances)}); err != nil {
		client.Close()
		return rpctypes.Error(err)
	}
	b.client, b.direct, b.leases = client, direct, clientv3.RetryLeaseClient(client)
	return nil
}

func (b *Backend) where() string { return strings.Join(b.o.Endpoints, ",") }

// String implements discovery.Backend.
func (b *Backend) String() string { return "etcd " + b.where() }

// Join implements discovery.Backend: it grants a lease and keeps it alive.
func (b *Backend) Join(ctx context.Context) (discovery.Member, error) {
	if b.life.Err() != nil {
		return discovery.Member{}, discovery.ErrClosed
	}
	l := newLease(b)
	if err := l.grant(ctx, 0); err != nil {
		return discovery.Member{}, fmt.Errorf("etcd at %s grants no lease: %s", b.where(), reason(err))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		l.revoke(ctx)
		return discovery.Member{}, discovery.ErrClosed
	}
	b.places = append(b.places, l)
	spawn.Go("etcd lease", l.keepAlive)
	return discovery.Member{Store: l, ID: l.NewID(), Lost: l.lost}, nil
}

// List implements discovery.Backend.
func (b *Backend) List(ctx context.Context, bucket string) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	prefix := bucket + "/"
	r, err := b.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: listing %s: %s", b.where(), bucket, reason(err))
	}
	list := make(map[string][]byte, len(r.Kvs))
	for _, kv := range r.Kvs {
		list[strings.TrimPrefix(string(kv.Key), prefix)] = kv.Value
	}
	return list, nil
}

// Restored implements discovery.Backend: it returns how many leases had to be taken anew.
func (b *Backend) Restored() (n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.places {
		n += l.renewed.Load()
	}
	return n
}

// Away returns how many workers have no lease at present.
func (b *Backend) Away() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.places {
		if l.away() {
			n++
		}
	}
	return n
}

// Close implements discovery.Backend: it revokes all leases at once, and every record goes with its lease.
func (b *Backend) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	places := b.places
	b.mu.Unlock()
	defer b.end()
	errs := make([]error, len(places))
	var all sync.WaitGroup
	for i, l := range places {
		all.Add(1)
		spawn.Go("etcd revoke", func() {
			defer all.Done()
			errs[i] = l.Close(ctx)
		})
	}
	all.Wait()
	_ = b.client.Close()
	return errors.Join(errs...)
}

// refused reports whether trying again is pointless.
func refused(err error) bool {
	for _, e := range []error{rpctypes.ErrAuthFailed, rpctypes.ErrPermissionDenied, rpctypes.ErrAuthNotEnabled, rpctypes.ErrUserEmpty} {
		if errors.Is(rpctypes.Error(err), e) {
			return true
		}
	}
	return false
}

// reason says in one line why a request failed.
func reason(err error) string {
	text := err.Error()
	switch s, ok := status.FromError(err); {
	case errors.Is(err, context.DeadlineExceeded), ok && s.Code() == codes.DeadlineExceeded:
		text = "no answer in time"
	case ok:
		text = s.Message()
	}
	return strings.Join(strings.Fields(text), " ")
}
