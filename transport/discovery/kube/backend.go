package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"mockbench/engine/spawn"
	"mockbench/transport/discovery"
)

// refreshEvery is how often the resource is written without a change, which brings it back if somebody deleted it.
const refreshEvery = 30 * time.Second

// refreshTimeout is short: changes wait while a refresh runs.
const refreshTimeout = 3 * time.Second

// Options say which pod this process is.
type Options struct {
	Pod     Pod
	Refresh time.Duration // 0 means every 30 s
	Log     *slog.Logger  // nil: nothing is logged
}

// Backend is the custom resource of this pod. A pod has one instance id, so there is room for one worker.
type Backend struct {
	o      Options
	log    *slog.Logger
	client *client
	id     uint64
	path   string // of the resource

	joined    atomic.Bool
	recreated atomic.Uint64
	stop      chan struct{}
	stopped   chan struct{}

	turn   chan struct{} // holds one token; who has it owns what follows
	data   records
	unsure bool   // the server may have other records than data
	uid    string // of the resource; empty until it is written
	ours   bool   // it did not exist before
	closed bool
}

// Open finds the API server and checks that it lets us read our resource.
func Open(ctx context.Context, o Options) (*Backend, error) {
	b := &Backend{o: o, log: o.Log, id: InstanceID(o.Pod.Resource()), path: collection(o.Pod.Namespace) + "/" + o.Pod.Resource(),
		data: newRecords(), turn: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.o.Refresh == 0 {
		b.o.Refresh = refreshEvery
	}
	var err error
	if b.client, err = newClient(b.log); err != nil {
		return nil, err
	}
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	b.turn <- struct{}{}
	spawn.Go("kubernetes refresh", b.refresh)
	return b, nil
}

// begin looks for a resource of an earlier process. A container deletes it; a pod writes over it.
func (b *Backend) begin(ctx context.Context) error {
	method := http.MethodGet
	if b.o.Pod.Container != "" {
		method = http.MethodDelete
	}
	err := persist(ctx, func() error {
		_, err := b.client.do(ctx, method, b.path, nil, "", nil, nil)
		return err
	})
	switch {
	case isStatus(err, http.StatusNotFound):
		b.ours = true
	case err != nil:
		return b.wrap(method, err)
	default:
		b.ours = method == http.MethodDelete
	}
	return nil
}

func (b *Backend) wrap(method string, err error) error {
	hint := ""
	if isStatus(err, http.StatusNotFound) {
		hint = " (is the custom resource definition " + plural + ".nvidia.com installed?)"
	}
	return fmt.Errorf("kubernetes at %s: %s %s: %w%s", b.client.base, method, b.path, err, hint)
}

// String implements discovery.Backend.
func (b *Backend) String() string {
	return fmt.Sprintf("kubernetes %s %s/%s", b.client.base, b.o.Pod.Namespace, b.o.Pod.Resource())
}

// ErrOneWorker is returned to a second worker.
var ErrOneWorker = errors.New("kubernetes: a pod has one instance id, so --num-workers must be 1")

// Join implements discovery.Backend.
func (b *Backend) Join(context.Context) (discovery.Member, error) {
	if b.joined.Swap(true) {
		return discovery.Member{}, ErrOneWorker
	}
	return discovery.Member{Store: b, ID: b.id}, nil
}

// NewID implements discovery.Store: the id that follows from the name of the resource.
func (b *Backend) NewID() uint64 { return b.id }

// Restored implements discovery.Backend: it returns how often the resource had to be written again because it was gone.
func (b *Backend) Restored() uint64 { return b.recreated.Load() }

// lock waits for the turn.
func (b *Backend) lock(ctx context.Context) error {
	select {
	case <-b.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Backend) unlock() { b.turn <- struct{}{} }

// Put implements discovery.Store.
func (b *Backend) Put(ctx context.Context, key discovery.Key, value []byte) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	if b.closed {
		return discovery.ErrClosed
	}
	var body json.RawMessage = append([]byte(nil), value...)
	if key.Bucket == discovery.EventChannels {
		var err error
		if body, err = placed(value); err != nil {
			return err
		}
	}
	bucket := b.data.bucket(key.Bucket)
	bucket[key.Path] = body
	err := b.write(ctx)
	if err != nil {
		delete(bucket, key.Path)
	}
	return err
}

// Delete implements discovery.Store.
func (b *Backend) Delete(ctx context.Context, key discovery.Key) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	bucket := b.data.bucket(key.Bucket)
	if _, there := bucket[key.Path]; b.closed || !there && !b.unsure {
		return nil
	}
	delete(bucket, key.Path)
	return b.write(ctx)
}

// write applies the whole resource. The caller has the turn.
func (b *Backend) write(ctx context.Context) error {
	body, err := json.Marshal(b.o.Pod.resource(b.data))
	if err != nil {
		return err
	}
	b.unsure = true
	query := url.Values{"fieldManager": {fieldManager}, "force": {"true"}}
	var now resource
	err = persist(ctx, func() error {
		_, err := b.client.do(ctx, http.MethodPatch, b.path, query, "application/apply-patch+yaml", body, &now)
		return err
	})
	if err != nil {
		return b.wrap(http.MethodPatch, err)
	}
	if b.uid != "" && b.uid != now.Metadata.UID {
		b.recreated.Add(1)
		b.log.Warn("discovery resource was deleted and is written again", "resource", b.path)
	}
	b.unsure, b.uid = false, now.Metadata.UID
	return nil
}

// refresh writes the resource again from time to time.
func (b *Backend) refresh() {
	defer close(b.stopped)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	spawn.Go("kubernetes refresh end", func() {
		<-b.stop
		cancel()
	})
	tick := time.NewTicker(b.o.Refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := b.writeAgain(ctx); err != nil && ctx.Err() == nil {
			b.log.Warn("discovery resource cannot be refreshed", "error", err)
		}
	}
}

// writeAgain writes the resource if it was written before.
func (b *Backend) writeAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	if b.uid == "" {
		return nil
	}
	return b.write(ctx)
}

// List implements discovery.Backend: the records of all resources in the namespace.
func (b *Backend) List(ctx context.Context, bucket string) (map[string][]byte, error) {
	list := map[string][]byte{}
	query := url.Values{"limit": {"500"}}
	for {
		var page struct {
			Metadata struct{ Continue string }
			Items    []resource
		}
		path := collection(b.o.Pod.Namespace)
		if _, err := b.client.do(ctx, http.MethodGet, path, query, "", nil, &page); err != nil {
			return nil, fmt.Errorf("kubernetes at %s: listing %s: %w", b.client.base, path, err)
		}
		for _, item := range page.Items {
			for key, value := range item.Spec.Data.bucket(bucket) {
				list[key] = value
			}
		}
		if page.Metadata.Continue == "" {
			return list, nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

// Close implements discovery.Backend. A resource that this process has made is deleted; one that was there before is
// left empty, and goes with its pod.
func (b *Backend) Close(ctx context.Context) error {
	select {
	case <-b.stop:
		return nil
	default:
		close(b.stop)
	}
	<-b.stopped
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	b.closed = true
	switch {
	case b.uid == "" && !b.unsure:
		return nil
	case b.ours:
		return b.remove(ctx)
	}
	for _, bucket := range discovery.Buckets {
		maps.DeleteFunc(b.data.bucket(bucket), func(string, json.RawMessage) bool { return true })
	}
	return b.write(ctx)
}

// remove deletes the resource, unless it is another of the same name by now.
func (b *Backend) remove(ctx context.Context) error {
	options := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}
	if b.uid != "" {
		options["preconditions"] = map[string]string{"uid": b.uid}
	}
	body, err := json.Marshal(options)
	if err != nil {
		return err
	}
	err = persist(ctx, func() error {
		_, err := b.client.do(ctx, http.MethodDelete, b.path, nil, "application/json", body, nil)
		return err
	})
	if err == nil || isStatus(err, http.StatusNotFound) || isStatus(err, http.StatusConflict) {
		return nil
	}
	return b.wrap(http.MethodDelete, err)
}
