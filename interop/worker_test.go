package interop

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestServesChatAndCompletions(t *testing.T) {
	c := newCluster(t)
	c.frontend("--router-mode", "kv")
	soonest := time.Hour
	for round := range 3 {
		begin := time.Now()
		p := c.ours()
		c.eventually(30*time.Second, "the model is listed", c.listed)
		soonest = min(soonest, time.Since(begin))
		if round < 2 {
			p.stop(10 * time.Second)
			c.eventually(5*time.Second, "the model is unlisted", func() bool { return !c.listed() })
		}
	}
	t.Logf("listed %.3f s after the start, the soonest of three", soonest.Seconds())
	if soonest > time.Second {
		t.Errorf("listed after %v, want at most 1 s", soonest)
	}
	for _, stream := range []bool{true, false} {
		for path, body := range map[string]map[string]any{
			"/v1/chat/completions": chat("Tell me about rivers.", 24),
			"/v1/completions":      {"prompt": "Once upon a time", "max_tokens": 24, "ignore_eos": true},
		} {
			body["stream"] = stream
			a, err := c.ask(t.Context(), path, body, nil)
			if err != nil || a.status != 200 || a.finish != "length" || a.usage.Completion != 24 {
				t.Errorf("%s, stream %v: got %+v, %v", path, stream, a, err)
			}
			if words := strings.Fields(a.text); len(words) != 24 {
				t.Errorf("%s, stream %v: %d words in %q", path, stream, len(words), a.text)
			}
		}
	}
}

func TestManyStreams(t *testing.T) {
	c := newCluster(t)
	c.frontend()
	c.ours("--speedup-ratio", "10")
	c.serving(1)
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			a, err := c.ask(t.Context(), "/v1/chat/completions", chat(fmt.Sprintf("stream %d", i), 64), nil)
			if err != nil || a.usage.Completion != 64 || a.finish != "length" || a.errored {
				t.Errorf("stream %d: got %+v, %v", i, a, err)
			}
		})
	}
	group.Wait()
}

// TestGoneClientFreesItsBlocks lets a second request wait for the only slot, and takes the first one's client away.
func TestGoneClientFreesItsBlocks(t *testing.T) {
	c := newCluster(t)
	c.frontend()
	c.ours("--max-num-seqs", "1")
	c.serving(1)
	soonest := time.Hour
	for round := range 3 {
		ctx, leave := context.WithCancel(t.Context())
		running := make(chan struct{})
		var once sync.Once
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = c.ask(ctx, "/v1/chat/completions", chat(fmt.Sprintf("long %d", round), 100000), func() { once.Do(func() { close(running) }) })
		}()
		select {
		case <-running:
		case <-gone:
			t.Fatal("the long stream ended by itself")
		}
		second := make(chan time.Time, 1)
		go func() {
			a, err := c.ask(t.Context(), "/v1/chat/completions", chat(fmt.Sprintf("short %d", round), 2), nil)
			if err != nil || a.usage.Completion != 2 {
				t.Errorf("the waiting request got %+v, %v", a, err)
			}
			second <- time.Now()
		}()
		select {
		case <-second:
			t.Fatal("the second request did not wait")
		case <-time.After(300 * time.Millisecond):
		}
		left := time.Now()
		leave()
		select {
		case at := <-second:
			t.Logf("round %d: the waiting request was answered %d ms after the client left", round, at.Sub(left).Milliseconds())
			soonest = min(soonest, at.Sub(left))
		case <-time.After(20 * time.Second):
			t.Fatal("the slot was never freed")
		}
		<-gone
	}
	if soonest > 100*time.Millisecond {
		t.Errorf("the blocks were free after %v, want at most 100 ms", soonest)
	}
}

// TestRefusedPrompts sends prompts beyond the model's length and beyond the pool: the client gets a 4xx at once, and
// the worker serves the next request.
func TestRefusedPrompts(t *testing.T) {
	for name, args := range map[string][]string{
		"model length": {"--max-model-len", "256"},
		"pool":         {"--num-gpu-blocks-override", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.frontend()
			c.ours(args...)
			c.serving(1)
			for _, stream := range []bool{false, true} {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				body := chat(strings.Repeat("x", 600), 4)
				body["stream"] = stream
				a, err := c.ask(ctx, "/v1/chat/completions", body, nil)
				cancel()
				refused := a.status >= 400 && a.status <= 499 || stream && a.errored
				if err != nil || !refused {
					t.Errorf("stream %v: got %+v, %v, want a 4xx", stream, a, err)
				}
			}
			c.mustChat("a short one is served right after", 4)
		})
	}
}

func TestKilledWorkerDisappears(t *testing.T) {
	c := newCluster(t)
	c.frontend()
	p := c.ours()
	c.serving(1)
	p.kill()
	took := c.eventually(30*time.Second, "the killed worker is gone", func() bool { return !c.listed() })
	t.Logf("unlisted %.1f s after kill -9", took.Seconds())
	type ending struct {
		Input  struct{ Backend, End string }
		Expect struct {
			Gone [2]float64 `json:"gone_after_s"`
		}
	}
	for _, c := range recorded[ending](t, "lifecycle.json") {
		if bounds := c.Expect.Gone; c.Input.Backend == "file" && c.Input.End == "SIGKILL" && (took.Seconds() < bounds[0] || took.Seconds() > bounds[1]) {
			t.Errorf("unlisted %.1f s after kill -9, want %v", took.Seconds(), bounds)
		}
	}
}

func TestCleanStop(t *testing.T) {
	c := newCluster(t)
	c.frontend()
	p := c.ours("--num-workers", "8")
	c.serving(8)
	if n := len(c.records("*", "")); n != 64 {
		t.Errorf("8 workers have %d discovery records, want 64", n)
	}
	took, status := p.stop(10 * time.Second)
	if status != 0 || took > time.Second {
		t.Errorf("exit status %d after %v, want 0 within 1 s", status, took)
	}
	if left := c.records("*", ""); len(left) > 0 {
		t.Errorf("records are left: %v", left)
	}
	unlisted := c.eventually(5*time.Second, "the model is unlisted", func() bool { return !c.listed() })
	t.Logf("stopped after %d ms, unlisted %d ms later", took.Milliseconds(), unlisted.Milliseconds())
}

// TestStopInTheMiddleOfAStream sends SIGTERM while a client reads: the client gets every token.
func TestStopInTheMiddleOfAStream(t *testing.T) {
	c := newCluster(t)
	c.frontend()
	p := c.ours("--num-workers", "2", "--speedup-ratio", "0.5")
	c.serving(2)
	c.stopMidStream(p, 400)
}
