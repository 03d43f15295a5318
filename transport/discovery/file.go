package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"mockbench/engine"
	"mockbench/engine/spawn"
)

const (
	fileTTL      = 10 * time.Second // a record not touched for so long belongs to a dead process
	touchEvery   = fileTTL / 3
	lockTries    = 100
	lockWait     = 10 * time.Millisecond
	touchLanes   = 8 // files touched at the same time, so that a slow file system cannot starve the last one
	scrapPrefix  = ".tmp_"
	folderAccess = 0o777
	fileAccess   = 0o666
)

// FileOptions configure a File store.
type FileOptions struct {
	Root string // folder of the store, made on demand
	Log  func(format string, args ...any)
}

// File keeps each record in a file of its own. A goroutine of its own sets the files' times every few seconds, which
// is how other processes know that their owner lives; it writes files again that somebody deleted, and deletes those of
// owners that died.
type File struct {
	root      string
	log       func(format string, args ...any)
	recreated atomic.Uint64

	mu     sync.Mutex // guards owned, and the order of changes to one file
	owned  map[Key][]byte
	opened map[string]bool // buckets this store has used
	closed bool

	stop    chan struct{}
	stopped chan struct{}
}

// FileRoot returns the folder that DYN_FILE_KV names, else the default one. Empty is unset.
func FileRoot(getenv func(string) string) string {
	if root := getenv("DYN_FILE_KV"); root != "" {
		return root
	}
	return filepath.Join(os.TempDir(), "dynamo_store_kv")
}

// OpenFile opens the store in a folder and checks that records can be written there.
func OpenFile(o FileOptions) (*File, error) {
	f := &File{root: o.Root, log: o.Log, owned: map[Key][]byte{}, opened: map[string]bool{},
		stop: make(chan struct{}), stopped: make(chan struct{})}
	if f.log == nil {
		f.log = func(string, ...any) {}
	}
	for _, bucket := range Buckets {
		if err := f.open(bucket); err != nil {
			return nil, err
		}
	}
	spawn.Go("discovery file touch", f.keepAlive)
	return f, nil
}

// open makes a bucket's folder and tries it with a file that is gone again at once.
func (f *File) open(bucket string) error {
	dir := f.dir(bucket)
	err := os.MkdirAll(dir, folderAccess)
	if err == nil {
		var scrap string
		if scrap, err = writeScrap(dir, nil); err == nil {
			err = os.Remove(scrap)
		}
	}
	if err != nil {
		return &engine.SettingError{Setting: "DYN_FILE_KV", Kind: engine.KindRange, Given: f.root,
			Allowed: "must be a folder in which records can be written: " + reason(err)}
	}
	f.opened[bucket] = true
	return nil
}

// reason strips the path from an error that names it again.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Path + ": " + p.Err.Error()
	}
	return err.Error()
}

func (f *File) dir(bucket string) string { return filepath.Join(f.root, filepath.FromSlash(bucket)) }

func (f *File) path(key Key) string { return filepath.Join(f.dir(key.Bucket), FileName(key.Path)) }

// NewID implements Store.
func (f *File) NewID() uint64 { return rand.Uint64() }

// Recreated returns how many records had to be written again.
func (f *File) Recreated() uint64 { return f.recreated.Load() }

// String implements Store.
func (f *File) String() string { return "file " + f.root }

// Put implements Store.
func (f *File) Put(_ context.Context, key Key, value []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if err := f.write(key, value); err != nil {
		return fmt.Errorf("discovery: publishing %s in %s: %w", key.Path, f.root, err)
	}
	f.owned[key] = append([]byte(nil), value...)
	return nil
}

// write publishes a file whole: readers look at it at the moment it gets its name.
func (f *File) write(key Key, value []byte) error {
	dir := f.dir(key.Bucket)
	if err := os.MkdirAll(dir, folderAccess); err != nil {
		return err
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	scrap, err := writeScrap(dir, value)
	if err != nil {
		return err
	}
	if err := os.Rename(scrap, f.path(key)); err != nil {
		os.Remove(scrap)
		return err
	}
	return nil
}

// writeScrap writes a file that readers ignore.
func writeScrap(dir string, value []byte) (path string, err error) {
	path = filepath.Join(dir, fmt.Sprintf("%s%016x", scrapPrefix, rand.Uint64()))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileAccess)
	if err != nil {
		return "", err
	}
	_, err = file.Write(value)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(path)
	}
	return path, err
}

// lock takes the lock that all processes with this folder share. A holder that never lets go is passed over.
func lock(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for range lockTries {
		if err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			break
		}
		time.Sleep(lockWait)
	}
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return func() { d.Close() }, nil
}

// Delete implements Store.
func (f *File) Delete(_ context.Context, key Key) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.owned, key)
	return f.remove(key)
}

// remove deletes a file. Nothing brings it back: it is off the list of owned records already.
func (f *File) remove(key Key) error {
	unlock, err := lock(f.dir(key.Bucket))
	if err == nil {
		defer unlock()
	}
	if err := os.Remove(f.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("discovery: deleting %s: %w", key.Path, err)
	}
	return nil
}

// List implements Store.
func (f *File) List(_ context.Context, bucket string) (map[string][]byte, error) {
	entries, err := os.ReadDir(f.dir(bucket))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("discovery: listing %s: %w", bucket, err)
	}
	list := map[string][]byte{}
	for _, e := range entries {
		path, err := keyPath(e.Name())
		if err != nil || strings.HasPrefix(e.Name(), scrapPrefix) {
			continue
		}
		if value, err := os.ReadFile(filepath.Join(f.dir(bucket), e.Name())); err == nil {
			list[path] = value
		}
	}
	return list, nil
}

// Close implements Store. Instances go first, so that nothing is routed to a worker that is half gone.
func (f *File) Close(context.Context) error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	var errs []error
	for _, bucket := range Buckets {
		for key := range f.owned {
			if key.Bucket == bucket {
				errs = append(errs, f.remove(key))
				delete(f.owned, key)
			}
		}
	}
	f.mu.Unlock()
	close(f.stop)
	<-f.stopped
	return errors.Join(errs...)
}
