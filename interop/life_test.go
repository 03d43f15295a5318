package interop

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRecordsStay looks at the records of many workers after every process has had the time to sweep stale ones.
func TestRecordsStay(t *testing.T) {
	c := newCluster(t)
	c.frontend("--router-mode", "kv")
	c.ours("--num-workers", "8")
	c.serving(8)
	if err := os.Remove(c.records("mdc", "generate")[0]); err != nil {
		t.Fatal(err)
	}
	time.Sleep(14 * time.Second)
	files := c.records("*", "")
	if len(files) != 64 {
		t.Errorf("%d records, want 64", len(files))
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || time.Since(info.ModTime()) > 8*time.Second {
			t.Errorf("%s was not kept alive: %v", f, err)
		}
	}
	for i := range 16 {
		c.mustChat(fmt.Sprintf("request %d", i), 4)
	}
}

// TestWorkersComeAndGo stops and starts one of three workers while clients stream: every request gets an answer.
func TestWorkersComeAndGo(t *testing.T) {
	c := newCluster(t)
	c.frontend()
	c.ours("--num-workers", "2", "--speedup-ratio", "2")
	guest := c.ours("--speedup-ratio", "2")
	c.serving(3)
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var answered, refused atomic.Int64
	for i := range 20 {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				one, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				a, err := c.ask(one, "/v1/chat/completions", chat(fmt.Sprintf("client %d request %d", i, n), 40), nil)
				cancel()
				switch {
				case err != nil:
					t.Errorf("client %d: no proper end: %v", i, err)
				case a.status != 200 || a.errored:
					refused.Add(1)
				case a.usage.Completion != 40:
					t.Errorf("client %d: got %+v", i, a)
				default:
					answered.Add(1)
				}
			}
		})
	}
	for range 4 {
		time.Sleep(time.Second)
		if took, status := guest.stop(30 * time.Second); status != 0 {
			t.Errorf("exit status %d after %v", status, took)
		}
		guest = c.ours("--speedup-ratio", "2")
		c.serving(3)
	}
	stop()
	clients.Wait()
	t.Logf("%d requests answered, %d refused", answered.Load(), refused.Load())
	if answered.Load() == 0 || refused.Load() > answered.Load()/20 {
		t.Errorf("%d requests answered, %d refused", answered.Load(), refused.Load())
	}
}
