package discovery

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mockbench/engine/spawn"
)

// keepAlive touches the owned files until the store is closed, and then looks for files of the dead.
func (f *File) keepAlive() {
	defer close(f.stopped)
	ticker := time.NewTicker(touchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-ticker.C:
			f.touchAll()
			f.sweep()
		}
	}
}

// touchAll sets the time of every owned file, a few at once.
func (f *File) touchAll() {
	f.mu.Lock()
	keys := make(chan Key, len(f.owned))
	for key := range f.owned {
		keys <- key
	}
	f.mu.Unlock()
	close(keys)
	var lanes sync.WaitGroup
	for range min(touchLanes, len(keys)) {
		lanes.Add(1)
		spawn.Go("discovery file touch lane", func() {
			defer lanes.Done()
			for key := range keys {
				f.touch(key)
			}
		})
	}
	lanes.Wait()
}

// touch sets the time of one owned file, or writes it again if somebody deleted it.
func (f *File) touch(key Key) {
	now := time.Now()
	err := os.Chtimes(f.path(key), now, now)
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	value, owned := f.owned[key]
	if !owned {
		return
	}
	if errors.Is(err, fs.ErrNotExist) {
		_, gone := os.Stat(f.dir(key.Bucket))
		if err = f.write(key, value); err == nil {
			f.recreated.Add(1)
			f.log("recreated discovery record %s of process %d, which was deleted", key.Path, os.Getpid())
			if gone != nil {
				f.log("recreated discovery folder %s: frontends that watched the old one must be restarted", f.dir(key.Bucket))
			}
			return
		}
	}
	f.log("discovery record %s cannot be kept alive: %v", key.Path, err)
}

// sweep deletes files whose owners have died, as every process with this folder does.
func (f *File) sweep() {
	for _, bucket := range Buckets {
		entries, err := os.ReadDir(f.dir(bucket))
		if err != nil || !hasExpired(entries) {
			continue
		}
		unlock, err := lock(f.dir(bucket))
		if err != nil {
			continue
		}
		for _, e := range entries {
			path := filepath.Join(f.dir(bucket), e.Name())
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && expired(info) {
				os.Remove(path)
			}
		}
		unlock()
	}
}

func expired(info fs.FileInfo) bool { return time.Since(info.ModTime()) > fileTTL }

func hasExpired(entries []fs.DirEntry) bool {
	for _, e := range entries {
		if info, err := e.Info(); err == nil && expired(info) {
			return true
		}
	}
	return false
}
