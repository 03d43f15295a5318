package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
)

// Store is one discovery backend. It is safe for concurrent use.
type Store interface {
	// NewID returns the instance id of a new worker. A backend whose ids are leases, or belong to the pod, has one id a
	// store: each worker gets a store of its own there, and all records of the store live and die with the lease.
	NewID() uint64

	// Put publishes a record whole or not at all, and keeps it alive until it is deleted or the store is closed.
	Put(ctx context.Context, key Key, value []byte) error

	// Delete takes a record back. A record that is not there is no error.
	Delete(ctx context.Context, key Key) error

	// List returns the values of a bucket by key path.
	List(ctx context.Context, bucket string) (map[string][]byte, error)

	// Close takes all records of this store back and stops keeping them alive.
	Close(ctx context.Context) error

	// String names the backend for people.
	String() string
}

// ErrClosed is returned by a store after Close.
var ErrClosed = errors.New("discovery: store is closed")

// Publish puts a record under the key that derives from its body.
func Publish(ctx context.Context, s Store, r Record) error {
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("discovery: encoding %s: %w", r.Key().Path, err)
	}
	return s.Put(ctx, r.Key(), value)
}

// Memory is a store that nothing outside the process sees. The zero value is not usable; call OpenMemory.
type Memory struct {
	mu      sync.Mutex
	records map[Key][]byte
}

// OpenMemory returns an empty store.
func OpenMemory() *Memory { return &Memory{records: map[Key][]byte{}} }

// NewID implements Store.
func (m *Memory) NewID() uint64 { return rand.Uint64() }

// Put implements Store.
func (m *Memory) Put(_ context.Context, key Key, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		return ErrClosed
	}
	m.records[key] = append([]byte(nil), value...)
	return nil
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, key Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
	return nil
}

// List implements Store.
func (m *Memory) List(_ context.Context, bucket string) (map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := map[string][]byte{}
	for k, v := range m.records {
		if k.Bucket == bucket {
			list[k.Path] = append([]byte(nil), v...)
		}
	}
	return list, nil
}

// Close implements Store.
func (m *Memory) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = nil
	return nil
}

// String implements Store.
func (m *Memory) String() string { return "mem" }
