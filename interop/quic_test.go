package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// quicCluster is a cluster whose answers travel over QUIC.
func quicCluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.env = []string{"DYN_RESPONSE_PLANE=quic"}
	return c
}

// TestQUICResponsePlane has many answers at once, written as they come and in batches.
func TestQUICResponsePlane(t *testing.T) {
	for _, batch := range []string{"0", "5000"} {
		t.Run("batch "+batch, func(t *testing.T) {
			c := quicCluster(t)
			c.env = append(c.env, "DYN_QUIC_RESPONSE_BATCH_INTERVAL_US="+batch)
			c.frontend("--router-mode", "kv")
			c.ours("--num-workers", "2", "--speedup-ratio", "10")
			c.serving(2)
			var group sync.WaitGroup
			for i := range 100 {
				group.Go(func() {
					body := chat(fmt.Sprintf("stream %d", i), 64)
					body["stream"] = i%2 == 0
					a, err := c.ask(t.Context(), "/v1/chat/completions", body, nil)
					if err != nil || a.usage.Completion != 64 || a.finish != "length" || a.errored {
						t.Errorf("stream %d: got %+v, %v", i, a, err)
					}
				})
			}
			group.Wait()
			if c.repeats("quick") == 0 {
				t.Error("nothing of a repeated prompt is found in the cache")
			}
		})
	}
}

// TestQUICClientsLeave lets clients go in the middle of streams and expects every slot to be free afterwards and the
// connections to be of use still.
func TestQUICClientsLeave(t *testing.T) {
	c := quicCluster(t)
	c.frontend()
	port := freePort(t)
	p := c.oursIn([]string{fmt.Sprint("DYN_SYSTEM_PORT=", port)})
	c.serving(1)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			chunks := 0
			_, _ = c.ask(ctx, "/v1/chat/completions", chat(fmt.Sprint("leaving ", i), 100000), func() {
				if chunks++; chunks > i {
					leave()
				}
			})
		})
	}
	group.Wait()
	metrics := fmt.Sprintf("http://127.0.0.1:%d/metrics", port)
	c.eventually(20*time.Second, "nothing runs any more", func() bool {
		text := fetch(t, metrics)
		return sum(text, "vllm:num_requests_running{") == 0 && sum(text, "dynamo_component_inflight_requests{") == 0
	})
	if n := sum(fetch(t, metrics), "dynamo_component_cancellation_total{"); n != 20 {
		t.Errorf("%v requests were cancelled, want 20", n)
	}
	c.mustChat("somebody stays", 20)
	if _, status := p.stop(10 * time.Second); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestQUICRefusals lets the worker say no in the ways it can: the client gets its error, the next request its answer.
func TestQUICRefusals(t *testing.T) {
	c := quicCluster(t)
	c.frontend()
	c.ours("--max-model-len", "256")
	c.serving(1)
	for _, stream := range []bool{false, true} {
		body := chat(fmt.Sprintf("%600d", 1), 4)
		body["stream"] = stream
		a, err := c.ask(t.Context(), "/v1/chat/completions", body, nil)
		if refused := a.status >= 400 && a.status <= 499 || stream && a.errored; err != nil || !refused {
			t.Errorf("stream %v: got %+v, %v, want a 4xx", stream, a, err)
		}
		c.mustChat("a short one is served right after", 4)
	}
}

// TestResponsePlanesDiffer lets a worker and a frontend disagree on how answers travel: clients get an error at once.
func TestResponsePlanesDiffer(t *testing.T) {
	for _, planes := range [][2]string{{"tcp", "quic"}, {"quic", "tcp"}} {
		t.Run("frontend "+planes[0], func(t *testing.T) {
			c := newCluster(t)
			c.frontend("--response-plane", planes[0])
			c.ours("--response-plane", planes[1])
			c.serving(1)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			body := chat("which way?", 4)
			body["stream"] = false
			a, err := c.ask(ctx, "/v1/chat/completions", body, nil)
			if err != nil || a.status != 503 {
				t.Errorf("got %+v, %v, want status 503", a, err)
			}
		})
	}
}

// TestQUICFrontendRestarts replaces the frontend: answers go to the new one.
func TestQUICFrontendRestarts(t *testing.T) {
	c := quicCluster(t)
	first := c.frontend()
	c.ours()
	c.serving(1)
	c.mustChat("to the first", 4)
	first.kill()
	c.frontend()
	c.serving(1)
	c.mustChat("to the second", 4)
}
