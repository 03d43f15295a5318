package etcd

import (
	"context"
	"errors"
	"io"
	"net"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// server is an etcd server as far as discovery needs one, whose leases only end when a test says so.
type server struct {
	pb.UnimplementedKVServer
	pb.UnimplementedLeaseServer

	grpc *grpc.Server
	door *door

	mu       sync.Mutex
	next     int64
	leases   map[int64]int64 // TTL by id
	records  map[string]*mvccpb.KeyValue
	renewals int
	hung     chan struct{} // requests wait until it is closed; nil: they do not
	refusal  error
	history  []string // keys in the order in which they were created
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{leases: map[int64]int64{}, records: map[string]*mvccpb.KeyValue{}, next: 0x22f0a22a51b22009}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.door, s.grpc = &door{Listener: l}, grpc.NewServer()
	pb.RegisterKVServer(s.grpc, s)
	pb.RegisterLeaseServer(s.grpc, s)
	go s.grpc.Serve(s.door)
	t.Cleanup(func() {
		s.thaw()
		s.grpc.Stop()
	})
	return s
}

func (s *server) url() string { return "http://" + s.door.Addr().String() }

// door is a listener that can be shut without giving its port away: connections are ended at once.
type door struct {
	net.Listener
	mu     sync.Mutex
	shut   bool
	inside []net.Conn
}

func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		shut := d.shut
		if !shut {
			d.inside = append(d.inside, c)
		}
		d.mu.Unlock()
		if !shut {
			return c, nil
		}
		c.Close()
	}
}

func (d *door) set(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = shut
	if shut {
		for _, c := range d.inside {
			c.Close()
		}
		d.inside = nil
	}
}

// hang makes the server silent while its connections stand.
func (s *server) hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung = make(chan struct{})
}

func (s *server) thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hung != nil {
		close(s.hung)
		s.hung = nil
	}
}

// enter locks the server for a request, after waiting if it hangs.
func (s *server) enter(ctx context.Context) (func(), error) {
	s.mu.Lock()
	hung := s.hung
	s.mu.Unlock()
	if hung != nil {
		select {
		case <-hung:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	if err := s.refusal; err != nil {
		s.mu.Unlock()
		return nil, err
	}
	return s.mu.Unlock, nil
}

// drop ends a lease and its records.
func (s *server) drop(id int64) {
	delete(s.leases, id)
	for key, r := range s.records {
		if r.Lease == id {
			delete(s.records, key)
		}
	}
}

func (s *server) expire(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(int64(id))
}

func (s *server) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = err
}

// keys lists all records, the leases behind them must be of the given ids.
func (s *server) keys(t *testing.T, ids ...uint64) (list []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[int64]bool{}
	for _, id := range ids {
		known[int64(id)] = true
	}
	for key, r := range s.records {
		list = append(list, key)
		if !known[r.Lease] {
			t.Errorf("%s hangs on lease %x", key, r.Lease)
		}
	}
	sort.Strings(list)
	return list
}

func (s *server) count() (leases, records, renewals int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases), len(s.records), s.renewals
}

func (s *server) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if _, exists := s.leases[r.ID]; exists {
		return nil, rpctypes.ErrGRPCLeaseExist
	}
	if r.ID == 0 {
		s.next++
		r.ID = s.next
	}
	s.leases[r.ID] = r.TTL
	return &pb.LeaseGrantResponse{ID: r.ID, TTL: r.TTL}, nil
}

func (s *server) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if _, exists := s.leases[r.ID]; !exists {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	s.drop(r.ID)
	return new(pb.LeaseRevokeResponse), nil
}

func (s *server) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		done, err := s.enter(stream.Context())
		if err != nil {
			return err
		}
		s.renewals++
		ttl := s.leases[r.ID]
		done()
		if err := stream.Send(&pb.LeaseKeepAliveResponse{ID: r.ID, TTL: ttl}); err != nil {
			return err
		}
	}
}

func (s *server) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	out := new(pb.RangeResponse)
	for key, record := range s.records {
		if strings.HasPrefix(key, string(r.Key)) {
			out.Kvs = append(out.Kvs, record)
		}
	}
	return out, nil
}

func (s *server) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	delete(s.records, string(r.Key))
	return new(pb.DeleteRangeResponse), nil
}

func (s *server) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.txn(r)
}

func (s *server) txn(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	out := &pb.TxnResponse{Succeeded: true}
	for _, c := range r.Compare {
		record := s.records[string(c.Key)]
		if record == nil {
			record = new(mvccpb.KeyValue)
		}
		out.Succeeded = out.Succeeded && record.Version == c.GetVersion() && record.Lease == c.GetLease() ||
			out.Succeeded && c.Target == pb.Compare_LEASE && record.Lease == c.GetLease()
	}
	list := r.Success
	if !out.Succeeded {
		list = r.Failure
	}
	for _, op := range list {
		if put := op.GetRequestPut(); put != nil {
			if _, alive := s.leases[put.Lease]; !alive {
				return nil, rpctypes.ErrGRPCLeaseNotFound
			}
			s.records[string(put.Key)] = &mvccpb.KeyValue{Key: put.Key, Value: put.Value, Lease: put.Lease, Version: 1}
			s.history = append(s.history, string(put.Key))
			out.Responses = append(out.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: new(pb.PutResponse)}})
		} else {
			inner, err := s.txn(op.GetRequestTxn())
			if err != nil {
				return nil, err
			}
			out.Responses = append(out.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: inner}})
		}
	}
	return out, nil
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
