package etcd

import (
	"context"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"mockbench/transport/discovery"
)

// Put implements discovery.Store.
func (l *lease) Put(ctx context.Context, key discovery.Key, value []byte) error {
	r := record{key, string(value)}
	l.mu.Lock()
	if l.life.Err() != nil {
		l.mu.Unlock()
		return discovery.ErrClosed
	}
	l.forget(key)
	l.records = append(l.records, r)
	l.mu.Unlock()
	err := l.write(ctx, r)
	if err != nil {
		l.mu.Lock()
		l.forget(key)
		l.mu.Unlock()
	}
	return err
}

// forget takes a record off the list of those to restore.
func (l *lease) forget(key discovery.Key) {
	l.records = slices.DeleteFunc(l.records, func(r record) bool { return r.key == key })
}

func name(key discovery.Key) string { return key.Bucket + "/" + key.Path }

// write creates a record, or replaces one that hangs on the same lease.
func (l *lease) write(ctx context.Context, r record) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	key := name(r.key)
	put := []clientv3.Op{clientv3.OpPut(key, r.value, clientv3.WithLease(l.id))}
	mine := clientv3.Compare(clientv3.LeaseValue(key), "=", l.id)
	answer, err := l.b.client.Txn(ctx).If(clientv3.Compare(clientv3.Version(key), "=", 0)).Then(put...).
		Else(clientv3.OpTxn([]clientv3.Cmp{mine}, put, nil)).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("etcd at %s: publishing %s: %s", l.b.where(), key, reason(err))
	case !answer.Succeeded && !answer.Responses[0].GetResponseTxn().Succeeded:
		return fmt.Errorf("etcd at %s: publishing %s: somebody else has published it", l.b.where(), key)
	}
	return nil
}

// Delete implements discovery.Store. A record whose lease is lost is gone already.
func (l *lease) Delete(ctx context.Context, key discovery.Key) error {
	l.mu.Lock()
	l.forget(key)
	gone := l.gone
	l.mu.Unlock()
	if gone {
		return nil
	}
	if err := l.erase(ctx, key); err != nil {
		return fmt.Errorf("etcd at %s: deleting %s: %s", l.b.where(), name(key), reason(err))
	}
	return nil
}

func (l *lease) erase(ctx context.Context, key discovery.Key) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := l.b.direct.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte(name(key))})
	return rpctypes.Error(err)
}
