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

// keepAlive touches the owned files until the store is closed.
func (f *File) keepAlive() {
	f.everyTick(func(gap time.Duration) {
		if gap > fileTTL {
			f.log("this process stood still for %v, longer than the %v that discovery records live without it; renewing them",
				gap.Round(time.Millisecond), fileTTL)
		}
		f.touchAll()
		f.checkFolders()
	})
}

// keepClean deletes the files of dead owners until the store is closed. It shares nothing with keepAlive, which must
// never wait for it.
func (f *File) keepClean() {
	f.everyTick(func(gap time.Duration) {
		if gap < fileTTL { // else others may have slept too, and get the time to touch their files
			f.sweep()
		}
	})
}

// everyTick calls do every few seconds with the wall time since the last call, until the store is closed.
func (f *File) everyTick(do func(gap time.Duration)) {
	ticker := time.NewTicker(touchEvery)
	defer ticker.Stop()
	last := wallTime()
	for {
		select {
		case <-f.stop:
			return
		case <-ticker.C:
			now := wallTime()
			do(now.Sub(last))
			last = now
		}
	}
}

// wallTime is the time that goes on while the machine sleeps.
func wallTime() time.Time { return time.Now().Round(0) }

// touchAll sets the time of every owned file, some at once.
func (f *File) touchAll() {
	owned := f.keys()
	keys := make(chan Key, len(owned))
	for _, key := range owned {
		keys <- key
	}
	close(keys)
	var lanes sync.WaitGroup
	for range min(touchLanes, len(owned)) {
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
	f.changing.Lock()
	defer f.changing.Unlock()
	value, owned := f.record(key)
	if !owned {
		return
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.write(key, value); err == nil {
			f.recreated.Add(1)
			f.log("recreated discovery record %s of process %d, which was deleted", key.Path, os.Getpid())
			return
		}
	}
	f.log("discovery record %s cannot be kept alive: %v", key.Path, err)
}

// checkFolders tells of each folder that was replaced, by this process or another one: whoever watched the old one
// sees nothing any more.
func (f *File) checkFolders() {
	for bucket, opened := range f.folders {
		was, err := opened.Stat()
		if err != nil {
			continue
		}
		is, err := os.Stat(f.dir(bucket))
		if err != nil || os.SameFile(was, is) {
			continue
		}
		f.log("recreated discovery folder %s: frontends that watched the old one must be restarted", f.dir(bucket))
		if now, err := os.Open(f.dir(bucket)); err == nil {
			f.folders[bucket] = now
			opened.Close()
		}
	}
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
			if _, own := f.record(Key{bucket, keyPath(e.Name())}); own {
				continue
			}
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
