package interop

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// recordTTL is how old a record may get before others take its owner for dead.
const recordTTL = 10 * time.Second

// oldest returns the age of the record that was not touched for longest.
func (c *cluster) oldest() (age time.Duration) {
	for _, path := range c.records("*", "") {
		if info, err := os.Stat(path); err == nil {
			age = max(age, time.Since(info.ModTime()))
		}
	}
	return age
}

// TestManyWorkersStayRegistered starts two processes with eight workers each at the same moment: half a minute later
// every record is still there, and every worker has served.
func TestManyWorkersStayRegistered(t *testing.T) {
	c := newCluster(t)
	c.frontend("--router-mode", "round-robin")
	processes := []*process{c.ours("--num-workers", "8", "--speedup-ratio", "100"), c.ours("--num-workers", "8", "--speedup-ratio", "100")}
	c.serving(16)
	check := func() {
		t.Helper()
		for bucket, want := range map[string]int{"instances": 32, "mdc": 16, "event_channels": 64, "event_sources": 16} {
			if n := len(c.records(bucket, "")); n != want {
				t.Errorf("%d records in %s, want %d", n, bucket, want)
			}
		}
	}
	check()
	seen := map[uint64]int{}
	var oldest time.Duration
	for begin := time.Now(); time.Since(begin) < 28*time.Second; {
		a, err := c.ask(t.Context(), "/v1/chat/completions", explained("who serves?", 2), nil)
		if err != nil || a.status != 200 {
			t.Fatalf("got %+v, %v", a, err)
		}
		seen[a.worker]++
		oldest = max(oldest, c.oldest())
		time.Sleep(100 * time.Millisecond)
	}
	check()
	t.Logf("%d workers have served; the oldest record was %.1f s old", len(seen), oldest.Seconds())
	if len(seen) != 16 || oldest >= recordTTL || !c.listed() {
		t.Errorf("%d of 16 workers have served, oldest record %v, listed %v", len(seen), oldest, c.listed())
	}
	for _, p := range processes {
		if _, status := p.stop(20 * time.Second); status != 0 {
			t.Errorf("exit status %d", status)
		}
	}
	if left := c.records("*", ""); len(left) > 0 {
		t.Errorf("records are left: %v", left)
	}
}

// TestRanksHaveChannelsOfTheirOwn counts the records of a worker with two ranks.
func TestRanksHaveChannelsOfTheirOwn(t *testing.T) {
	c := newCluster(t)
	c.frontend("--router-mode", "kv")
	c.ours("--data-parallel-size", "2")
	c.serving(1)
	for bucket, want := range map[string]int{"instances": 3, "mdc": 1, "event_channels": 5, "event_sources": 2} {
		if n := len(c.records(bucket, "")); n != want {
			t.Errorf("%d records in %s, want %d", n, bucket, want)
		}
	}
	c.mustChat("hello to both ranks", 4)
}

// TestDeletedRecordComesBack deletes the instance by hand: the model goes, and is back when the owner has noticed.
func TestDeletedRecordComesBack(t *testing.T) {
	c := newCluster(t)
	c.frontend()
	p := c.ours()
	c.serving(1)
	before := c.records("instances", "generate")
	if err := os.Remove(before[0]); err != nil {
		t.Fatal(err)
	}
	c.eventually(5*time.Second, "the model is unlisted", func() bool { return !c.listed() })
	took := c.eventually(20*time.Second, "the model is listed again", c.listed)
	if after := c.records("instances", "generate"); len(after) != 1 || after[0] != before[0] {
		t.Errorf("records %v, want %v", after, before)
	}
	c.mustChat("served again", 4)
	if !strings.Contains(p.log.String(), "recreated") {
		t.Error("the log does not say that the record was recreated")
	}
	t.Logf("listed again after %.1f s", took.Seconds())
}

// TestSleepingProcessComesBack stops the process for longer than its records live, as a laptop that sleeps does.
func TestSleepingProcessComesBack(t *testing.T) {
	c := newCluster(t)
	c.frontend()
	p := c.ours()
	c.serving(1)
	before := c.records("instances", "generate")
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := p.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if signal == syscall.SIGSTOP {
			c.eventually(30*time.Second, "the model is unlisted", func() bool { return !c.listed() })
			c.eventually(30*time.Second, "the record has expired", func() bool { return len(c.records("instances", "generate")) == 0 })
		}
	}
	took := c.eventually(20*time.Second, "the model is listed again", c.listed)
	c.eventually(20*time.Second, "all records are back", func() bool { return len(c.records("*", "")) == 8 })
	if after := c.records("instances", "generate"); len(after) != 1 || after[0] != before[0] {
		t.Errorf("records %v, want %v", after, before)
	}
	c.mustChat("awake again", 4)
	t.Logf("listed again %.1f s after it went on", took.Seconds())
}

// TestKilledInTheMiddleOfAStream kills the only worker while a client reads: the client is told.
func TestKilledInTheMiddleOfAStream(t *testing.T) {
	c := newCluster(t)
	c.frontend()
	p := c.ours()
	c.serving(1)
	ended := c.begin("a story without end", 100000)
	p.kill()
	begin := time.Now()
	select {
	case a := <-ended:
		t.Logf("the client was told after %.2f s: %s", time.Since(begin).Seconds(), a.body)
		if !a.errored {
			t.Errorf("got %+v, want an error event", a)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the client still waits")
	}
}

// TestModelFilesOverHTTP gives the frontend an empty cache and cards that name the status server: all files come from
// there, and readiness ends with the drain, not with the server.
func TestModelFilesOverHTTP(t *testing.T) {
	c := newCluster(t)
	c.frontend()
	port := freePort(t)
	p := c.oursIn([]string{fmt.Sprintf("DYN_SYSTEM_PORT=%d", port), "DYN_SYSTEM_HOST=127.0.0.1"}, "--speedup-ratio", "0.5")
	c.serving(1)
	card, err := os.ReadFile(c.records("mdc", "")[0])
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	if err != nil || !strings.Contains(string(card), url+"/v1/metadata/dynamo/backend/generate/mock/_base/tokenizer.json") {
		t.Errorf("the card does not name the status server: %s, %v", card, err)
	}
	health := func() int {
		r, err := http.Get(url + "/health")
		if err != nil {
			return 0
		}
		defer r.Body.Close()
		return r.StatusCode
	}
	if got := health(); got != http.StatusOK {
		t.Errorf("health of a worker that serves: %d", got)
	}
	ended := c.begin("while it drains", 150)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.eventually(5*time.Second, "the records are gone", func() bool { return len(c.records("*", "")) == 0 })
	if got := health(); got != http.StatusServiceUnavailable {
		t.Errorf("health during the drain: %d, want the server to answer that it is not ready", got)
	}
	if o := <-ended; !o.complete(150) {
		t.Errorf("got %+v", o)
	}
	<-p.done
}

// TestIncompatibleWorkerIsRefused adds a worker with another block size: it gets no traffic until the first one leaves.
func TestIncompatibleWorkerIsRefused(t *testing.T) {
	c := newCluster(t)
	c.frontend("--router-mode", "round-robin")
	first := c.ours("--speedup-ratio", "100")
	c.serving(1)
	incumbent := c.mustExplain(explained("who is there?", 2)).worker
	c.ours("--speedup-ratio", "100", "--block-size", "32")
	c.serving(2)
	for i := range 8 {
		if a := c.mustExplain(explained(fmt.Sprintf("request %d", i), 2)); a.worker != incumbent {
			t.Fatalf("the worker with another block size served a request")
		}
	}
	if _, status := first.stop(10 * time.Second); status != 0 {
		t.Errorf("exit status %d", status)
	}
	c.eventually(10*time.Second, "the other worker takes over", func() bool {
		a, err := c.ask(t.Context(), "/v1/chat/completions", explained("who is left?", 2), nil)
		return err == nil && a.status == 200 && a.worker != incumbent && a.worker != 0
	})
}

// TestChurn lets workers come and go every two seconds under steady load: every request gets an answer to its end.
func TestChurn(t *testing.T) {
	c := newCluster(t)
	c.frontend("--router-mode", "round-robin")
	var fleet []*process
	for range 4 {
		fleet = append(fleet, c.ours("--speedup-ratio", "10"))
	}
	c.serving(4)
	ctx, stop := context.WithCancel(t.Context())
	var asked, refused atomic.Int64
	var clients sync.WaitGroup
	for client := range 50 {
		clients.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				patience, cancel := context.WithTimeout(t.Context(), 60*time.Second)
				a, err := c.ask(patience, "/v1/chat/completions", chat(fmt.Sprintf("client %d, request %d", client, i), 100), nil)
				late := patience.Err() != nil
				cancel()
				asked.Add(1)
				switch {
				case late:
					t.Errorf("client %d, request %d was never answered", client, i)
				case a.status == http.StatusOK && a.usage.Completion == 100 && !a.errored && err == nil:
				case a.status >= 500 || a.errored: // told to try again
					if refused.Add(1) <= 3 {
						t.Logf("refused: %d %s", a.status, a.body)
					}
				default:
					t.Errorf("client %d, request %d: got %+v, %v", client, i, a, err)
				}
			}
		})
	}
	for round := range 8 {
		time.Sleep(2 * time.Second)
		leaving := fleet[round%4]
		if err := leaving.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		fleet[round%4] = c.ours("--speedup-ratio", "10")
		select {
		case <-leaving.done:
			if status := leaving.cmd.ProcessState.ExitCode(); status != 0 {
				t.Errorf("exit status %d", status)
			}
		case <-time.After(30 * time.Second):
			t.Error("a worker that was told to leave still drains")
		}
	}
	stop()
	clients.Wait()
	t.Logf("%d requests, %d of them were refused while workers came and went", asked.Load(), refused.Load())
	if asked.Load() < 100 || refused.Load()*10 > asked.Load() {
		t.Errorf("%d requests, %d refused", asked.Load(), refused.Load())
	}
}

// TestFolderThatCannotBeMade gives the program a discovery folder that cannot be made: one error that names it.
func TestFolderThatCannotBeMade(t *testing.T) {
	c := newCluster(t)
	file := filepath.Join(c.root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := c.oursIn([]string{"DYN_FILE_KV=" + filepath.Join(file, "below")})
	<-p.done
	if text := p.log.String(); p.cmd.ProcessState.ExitCode() != 1 || strings.Count(text, "error: ") != 1 || !strings.Contains(text, "DYN_FILE_KV") {
		t.Errorf("exit status %d:\n%s", p.cmd.ProcessState.ExitCode(), text)
	}
}
