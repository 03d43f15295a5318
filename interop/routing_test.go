package interop

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// explained is a chat completion whose answer says where it was served and what the router knew.
func explained(prompt string, n int) map[string]any {
	body := chat(prompt, n)
	body["stream"] = false
	body["nvext"] = map[string]any{"extra_fields": []string{"worker_id", "timing"}}
	return body
}

// mustExplain asks and fails the test if the answer is not complete.
func (c *cluster) mustExplain(body map[string]any) answer {
	c.t.Helper()
	a, err := c.ask(c.t.Context(), "/v1/chat/completions", body, nil)
	if err != nil || a.status != 200 || a.worker == 0 {
		c.t.Fatalf("got %+v, %v", a, err)
	}
	time.Sleep(60 * time.Millisecond) // events reach the router
	return a
}

// prefixTraffic asks for several documents a few times each, one request after the other. It returns the share of
// prompt tokens that workers found cached, and the mean share that the router expected.
func prefixTraffic(c *cluster, documents, length int) (cached, expected float64) {
	c.t.Helper()
	var prompts, hits, answers int
	for turn := range 3 {
		for doc := range documents {
			text := strings.Repeat(fmt.Sprintf("document %d. ", doc), length) + fmt.Sprintf("question %d", turn)
			a := c.mustExplain(explained(text, 8))
			prompts += a.usage.Prompt
			hits += a.usage.Details.Cached
			expected += a.hitRate
			answers++
		}
	}
	return float64(hits) / float64(prompts), expected / float64(answers)
}

// TestHitRatesEqualTheReference sends the same prefix traffic to our workers and to real mockers of each engine. SGLang
// workers do not tell what they found cached; there the router's view alone counts.
func TestHitRatesEqualTheReference(t *testing.T) {
	dir := modelDir(t)
	for _, e := range []struct {
		name              string
		workers           int
		documents, length int
		args              []string
		least             float64 // of what the router must expect
	}{
		{"vllm", 2, 6, 60, nil, 0.5},
		{"sglang", 2, 6, 60, []string{"--engine-type", "sglang", "--block-size", "16"}, 0.5},
		{"trtllm", 2, 6, 60, []string{"--engine-type", "trtllm"}, 0.5},
		{"vllm tight", 1, 4, 60, []string{"--block-size", "16", "--num-gpu-blocks-override", "120"}, 0},
		{"vllm host tier", 1, 4, 60, []string{"--block-size", "16", "--num-gpu-blocks-override", "120", "--num-host-blocks", "4096",
			"--kv-bytes-per-token", "1000"}, 0.3},
	} {
		t.Run(e.name, func(t *testing.T) {
			run := func(start func(c *cluster, args []string)) (cached, expected float64) {
				c := newCluster(t)
				c.frontend("--router-mode", "kv")
				start(c, append([]string{"--num-workers", fmt.Sprint(e.workers), "--speedup-ratio", "10"}, e.args...))
				c.serving(e.workers)
				return prefixTraffic(c, e.documents, e.length)
			}
			cached, expected := run(func(c *cluster, args []string) { c.ours(append(args, "--model-path", dir)...) })
			refCached, refExpected := run(func(c *cluster, args []string) { c.reference(dir, args...) })
			t.Logf("cached: ours %.4f, reference %.4f; expected by the router: ours %.4f, reference %.4f", cached, refCached,
				expected, refExpected)
			if cached != refCached || math.Abs(expected-refExpected) > 1e-9 || expected < e.least {
				t.Error("the hit rates differ or are low")
			}
		})
	}
}

// TestHostCopyWinsRouting pushes a document out of one worker's device pool: its copy in the host tier still draws the
// next request for it there, although the other worker is empty.
func TestHostCopyWinsRouting(t *testing.T) {
	c := newCluster(t)
	c.frontend("--router-mode", "kv")
	c.ours("--num-workers", "2", "--block-size", "16", "--num-gpu-blocks-override", "64", "--num-host-blocks", "1024",
		"--kv-bytes-per-token", "1000", "--speedup-ratio", "10")
	c.serving(2)
	document := func(i int) string { return strings.Repeat(fmt.Sprintf("chapter %d. ", i), 40) }
	holder := c.mustExplain(explained(document(0), 4))
	for i := 1; i <= 4; i++ {
		body := explained(document(i), 4)
		body["nvext"].(map[string]any)["backend_instance_id"] = holder.worker
		if a := c.mustExplain(body); a.worker != holder.worker {
			t.Fatalf("a request for worker %d went to %d", holder.worker, a.worker)
		}
	}
	again := c.mustExplain(explained(document(0)+"and on", 4))
	t.Logf("the router expected %.3f of the prompt at the worker with the host copy; %d of %d tokens were reused", again.hitRate,
		again.usage.Details.Cached, again.usage.Prompt)
	if again.worker != holder.worker || again.usage.Details.Cached == 0 || again.hitRate <= 0 || again.hitRate >= 0.9 {
		t.Errorf("got %+v, want worker %d and a discounted hit", again, holder.worker)
	}
}

// TestFrontendRestart shows that a new frontend learns what our workers hold: every document is found where it is.
func TestFrontendRestart(t *testing.T) {
	c := newCluster(t)
	first := c.frontend("--router-mode", "kv")
	c.ours("--num-workers", "2", "--speedup-ratio", "10")
	c.serving(2)
	document := func(i int) string { return strings.Repeat(fmt.Sprintf("chapter %d. ", i), 80) }
	for i := range 8 {
		c.mustChat(document(i), 4)
		time.Sleep(50 * time.Millisecond)
	}
	first.kill()
	c.frontend("--router-mode", "kv")
	c.serving(2)
	time.Sleep(time.Second) // recovery queries
	for i := range 8 {
		if a := c.mustChat(document(i), 4); a.usage.Details.Cached < a.usage.Prompt*8/10 {
			t.Errorf("document %d: %d of %d prompt tokens cached", i, a.usage.Details.Cached, a.usage.Prompt)
		}
	}
}

// TestMixedFleet puts one of our workers and one real mocker behind one frontend.
func TestMixedFleet(t *testing.T) {
	dir := modelDir(t)
	c := newCluster(t)
	c.frontend("--router-mode", "round-robin")
	ours := c.ours("--model-path", dir, "--speedup-ratio", "10")
	c.reference(dir, "--speedup-ratio", "10")
	c.serving(2)
	for i := range 12 {
		c.mustChat(fmt.Sprintf("request %d", i), 16)
	}
	if took, status := ours.stop(10 * time.Second); status != 0 {
		t.Errorf("exit status %d after %v", status, took)
	}
	c.eventually(5*time.Second, "one worker is left", func() bool { return len(c.records("instances", "generate")) == 1 })
	for i := range 4 {
		c.mustChat(fmt.Sprintf("request %d to the one that is left", i), 16)
	}
}
