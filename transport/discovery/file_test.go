package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mockbench/engine"
)

// generate is the endpoint of most tests.
var generate = Endpoint{"dynamo", "backend", "generate"}

// journal collects what a store logs.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) log(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(&j.text, format+"\n", args...)
}

func (j *journal) contains(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), text)
}

func open(t *testing.T, root string) (*File, *journal) {
	t.Helper()
	j := new(journal)
	f, err := OpenFile(FileOptions{Root: root, Log: j.log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(context.Background()) })
	return f, j
}

func files(t *testing.T, root string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "v1", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func publish(t *testing.T, s Store, records ...Record) {
	t.Helper()
	for _, r := range records {
		if err := Publish(t.Context(), s, r); err != nil {
			t.Fatal(err)
		}
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// workerRecords are the eight records of a worker with one rank.
func workerRecords(id, publisher uint64) []Record {
	query := Instance{Endpoint: Endpoint{"dynamo", "backend", fmt.Sprintf("worker_kv_query_source_%x", publisher)}, ID: id}
	records := []Record{Model{Endpoint: generate, ID: id, Card: json.RawMessage("{}")}, Instance{Endpoint: generate, ID: id},
		query, EventSource{Endpoint: generate, Topic: "kv-events", Publisher: publisher, Worker: id, Recovery: &query}}
	for i, topic := range []string{"kv-events", "kv_metrics", "forward-pass-metrics", "active_sequences_events"} {
		records = append(records, EventChannel{generate, topic, publisher + uint64(i), EventTransport{ZMQ: "tcp://127.0.0.1:1"}})
	}
	return records
}

// TestManyAtOnce registers many workers through two stores at the same moment, while other goroutines keep both
// processors busy: every record is there and kept alive, and none is left behind.
func TestManyAtOnce(t *testing.T) {
	for _, workers := range []int{8, 64} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			var stores [2]*File
			for i := range stores {
				stores[i], _ = open(t, root)
			}
			var group sync.WaitGroup
			for w := range workers {
				group.Go(func() {
					s := stores[w%2]
					for _, r := range workerRecords(s.NewID(), s.NewID()&PublisherMask) {
						if err := Publish(t.Context(), s, r); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			all := files(t, root)
			if len(all) != 8*workers {
				t.Fatalf("%d files, want %d", len(all), 8*workers)
			}
			ctx, idle := context.WithCancel(t.Context())
			for range 4 {
				group.Go(func() {
					for ctx.Err() == nil {
						_, _ = stores[0].List(ctx, Models)
					}
				})
			}
			published := time.Now()
			eventually(t, "every record is touched", func() bool {
				for _, bucket := range Buckets {
					ages, err := stores[1].Ages(bucket)
					if err != nil {
						t.Fatal(err)
					}
					for path, age := range ages {
						if age >= fileTTL {
							t.Fatalf("%s is %v old", path, age)
						}
						if age >= time.Since(published) {
							return false
						}
					}
				}
				return true
			})
			if n := len(files(t, root)); n != len(all) {
				t.Errorf("%d files after a round of touching, want %d", n, len(all))
			}
			idle()
			group.Wait()
			for _, s := range stores {
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if left := files(t, root); len(left) > 0 {
				t.Errorf("%d files are left", len(left))
			}
		})
	}
}

// TestLostRecordsComeBack deletes one record, then all folders, behind the store's back. A record that was taken back
// stays away.
func TestLostRecordsComeBack(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f, j := open(t, root)
	kept, dropped := Instance{Endpoint: generate, ID: 1}, Instance{Endpoint: generate, ID: 2}
	publish(t, f, kept, dropped)
	before, err := os.ReadFile(f.path(kept.Key()))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), dropped.Key()); err != nil {
		t.Fatal(err)
	}
	for i, loss := range []func() error{
		func() error { return os.Remove(f.path(kept.Key())) },
		func() error { return os.RemoveAll(filepath.Join(root, "v1")) },
	} {
		if err := loss(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the record is written again", func() bool { return f.Restored() == uint64(i+1) })
		after, err := os.ReadFile(f.path(kept.Key()))
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("got %q, %v, want %q", after, err, before)
		}
		if left := files(t, root); len(left) != 1 {
			t.Errorf("files %v, want the one", left)
		}
	}
	eventually(t, "the log tells of the folder", func() bool { return j.contains("recreated discovery folder") })
	if !j.contains("recreated discovery record dynamo/backend/generate/1") {
		t.Error("the log does not tell of the record")
	}
}

// TestSleeperComesBack lets another process sweep the record of one that stood still too long.
func TestSleeperComesBack(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	sleeper, _ := open(t, root)
	other, _ := open(t, root)
	r := Instance{Endpoint: generate, ID: 1}
	publish(t, sleeper, r)
	old := time.Now().Add(-2 * fileTTL)
	if err := os.Chtimes(sleeper.path(r.Key()), old, old); err != nil {
		t.Fatal(err)
	}
	sleeper.sweep()
	if list, err := other.List(t.Context(), Instances); err != nil || len(list) != 0 {
		t.Errorf("a record of the dead is listed: %v, %v", list, err)
	}
	if _, err := os.Stat(sleeper.path(r.Key())); err != nil {
		t.Errorf("a store swept its own record: %v", err)
	}
	other.sweep()
	eventually(t, "the record is listed again", func() bool {
		list, err := other.List(t.Context(), Instances)
		return err == nil && list["dynamo/backend/generate/1"] != nil
	})
}

func TestSweepDeletesTheDead(t *testing.T) {
	root := t.TempDir()
	f, _ := open(t, root)
	publish(t, f, Instance{Endpoint: generate, ID: 1})
	old := time.Now().Add(-2 * fileTTL)
	for _, name := range []string{"dead", scrapPrefix + "0123456789abcdef"} {
		path := filepath.Join(f.dir(Instances), name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	f.sweep()
	if left := files(t, root); len(left) != 1 {
		t.Errorf("files %v, want the living one", left)
	}
	list, err := f.List(t.Context(), Instances)
	if err != nil || len(list) != 1 || list["dynamo/backend/generate/1"] == nil {
		t.Errorf("got %v, %v", list, err)
	}
}

// TestBusyFolderDoesNotStopTouching holds the lock that changes wait for: records are kept alive all the same.
func TestBusyFolderDoesNotStopTouching(t *testing.T) {
	t.Parallel()
	f, _ := open(t, t.TempDir())
	r := Instance{Endpoint: generate, ID: 1}
	publish(t, f, r)
	unlock, err := lock(f.dir(Instances))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := Publish(t.Context(), f, Instance{Endpoint: generate, ID: 2}); err == nil {
		t.Error("a record was published without the lock")
	}
	f.changing.Lock()
	release := sync.OnceFunc(f.changing.Unlock)
	defer release()
	old := time.Now().Add(-fileTTL / 2)
	if err := os.Chtimes(f.path(r.Key()), old, old); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the record is touched", func() bool {
		ages, err := f.Ages(Instances)
		return err == nil && ages["dynamo/backend/generate/1"] < fileTTL/2
	})
	release()
	if err := f.Delete(t.Context(), r.Key()); err != nil {
		t.Errorf("a record cannot be taken back while others hold the lock: %v", err)
	}
}

func TestClosedStoreTakesNothing(t *testing.T) {
	root := t.TempDir()
	f, _ := open(t, root)
	publish(t, f, workerRecords(1, 2)...)
	for range 2 {
		if err := f.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := Publish(t.Context(), f, Instance{Endpoint: generate, ID: 3}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if left := files(t, root); len(left) > 0 {
		t.Errorf("files %v are left", left)
	}
}

func TestFolderNotWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenFile(FileOptions{Root: filepath.Join(file, "below")})
	var wrong *engine.SettingError
	if !errors.As(err, &wrong) || wrong.Setting != "DYN_FILE_KV" || !strings.Contains(wrong.Given, file) {
		t.Fatalf("got %v", err)
	}
}
