package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	touchLanes   = 16 // files touched at the same time, so that a slow file system cannot starve the last one
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
// is how other processes know that their owner lives, and writes files again that somebody deleted. Another one deletes
// the files of owners that died.
type File struct {
	root      string
	log       func(format string, args ...any)
	recreated atomic.Uint64
	folders   map[string]*os.File // by bucket, as they were opened; held open so that another folder cannot pass for one

	changing sync.Mutex // held while files change: a deleted record must not be written again
	mu       sync.Mutex // guards what follows; never held during IO, on which keeping alive would wait
	owned    map[Key][]byte
	closed   bool

	stop    chan struct{}
	running sync.WaitGroup
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
	f := &File{root: o.Root, log: o.Log, owned: map[Key][]byte{}, folders: map[string]*os.File{}, stop: make(chan struct{})}
	if f.log == nil {
		f.log = func(string, ...any) {}
	}
	for _, bucket := range Buckets {
		if err := f.open(bucket); err != nil {
			f.closeFolders()
			return nil, &engine.SettingError{Setting: "DYN_FILE_KV", Kind: engine.KindRange, Given: f.root,
				Allowed: "must be a folder in which records can be written: " + reason(err)}
		}
	}
	f.running.Add(2)
	spawn.Go("discovery file touch", func() { defer f.running.Done(); f.keepAlive() })
	spawn.Go("discovery file sweep", func() { defer f.running.Done(); f.keepClean() })
	return f, nil
}

// open makes a bucket's folder and tries it with a file that is gone again at once.
func (f *File) open(bucket string) error {
	dir := f.dir(bucket)
	if err := os.MkdirAll(dir, folderAccess); err != nil {
		return err
	}
	scrap, err := writeScrap(dir, nil)
	if err != nil {
		return err
	}
	if err := os.Remove(scrap); err != nil {
		return err
	}
	f.folders[bucket], err = os.Open(dir)
	return err
}

func (f *File) closeFolders() {
	for _, d := range f.folders {
		d.Close()
	}
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

// Restored implements Backend: it returns how many records had to be written again.
func (f *File) Restored() uint64 { return f.recreated.Load() }

// String implements Store.
func (f *File) String() string { return "file " + f.root }

// Put implements Store.
func (f *File) Put(_ context.Context, key Key, value []byte) error {
	f.changing.Lock()
	defer f.changing.Unlock()
	if f.isClosed() {
		return ErrClosed
	}
	if err := f.write(key, value); err != nil {
		return fmt.Errorf("discovery: publishing %s in %s: %w", key.Path, f.root, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owned[key] = append([]byte(nil), value...)
	return nil
}

func (f *File) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// disown takes a record off the list, so that nothing brings its file back.
func (f *File) disown(key Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.owned, key)
}

// record returns the value of an owned record.
func (f *File) record(key Key) (value []byte, owned bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	value, owned = f.owned[key]
	return value, owned
}

// keys returns the keys of all owned records.
func (f *File) keys() []Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.owned))
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

// lock takes the lock that all processes with this folder share. It gives up after a second.
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
	f.changing.Lock()
	defer f.changing.Unlock()
	f.disown(key)
	return f.remove(key.Bucket, key)
}

// remove deletes files of one bucket. A lock that somebody else never lets go is passed over: deleting is one step.
func (f *File) remove(bucket string, keys ...Key) error {
	if unlock, err := lock(f.dir(bucket)); err == nil {
		defer unlock()
	}
	var errs []error
	for _, key := range keys {
		if err := os.Remove(f.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("discovery: deleting %s: %w", key.Path, err))
		}
	}
	return errors.Join(errs...)
}

// List implements Store. Records whose owners have died are left out.
func (f *File) List(_ context.Context, bucket string) (map[string][]byte, error) {
	list := map[string][]byte{}
	err := f.each(bucket, func(path string, info fs.FileInfo) {
		if value, err := os.ReadFile(filepath.Join(f.dir(bucket), info.Name())); err == nil && !expired(info) {
			list[path] = value
		}
	})
	return list, err
}

// Ages returns how long ago the owner of each record of a bucket last gave a sign of life, by key path.
func (f *File) Ages(bucket string) (map[string]time.Duration, error) {
	ages, now := map[string]time.Duration{}, time.Now()
	err := f.each(bucket, func(path string, info fs.FileInfo) { ages[path] = now.Sub(info.ModTime()) })
	return ages, err
}

// each calls do for every record of a bucket, of any process.
func (f *File) each(bucket string, do func(path string, info fs.FileInfo)) error {
	entries, err := os.ReadDir(f.dir(bucket))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("discovery: listing %s: %w", bucket, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), scrapPrefix) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			do(keyPath(e.Name()), info)
		}
	}
	return nil
}

// Close implements Store. Instances go first, so that nothing is routed to a worker that is half gone.
func (f *File) Close(context.Context) error {
	f.mu.Lock()
	again := f.closed
	f.closed = true
	f.mu.Unlock()
	if again {
		return nil
	}
	close(f.stop)
	err := f.removeAll()
	f.running.Wait()
	f.closeFolders()
	return err
}

func (f *File) removeAll() error {
	f.changing.Lock()
	defer f.changing.Unlock()
	buckets := map[string][]Key{}
	for _, key := range f.keys() {
		f.disown(key)
		buckets[key.Bucket] = append(buckets[key.Bucket], key)
	}
	var errs []error
	for _, bucket := range Buckets {
		if keys := buckets[bucket]; len(keys) > 0 {
			errs = append(errs, f.remove(bucket, keys...))
		}
	}
	return errors.Join(errs...)
}
