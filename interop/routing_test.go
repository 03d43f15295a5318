package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// prefixTraffic asks for several documents a few times each, one request after the other, and returns the share of
// prompt tokens that were cached.
func prefixTraffic(c *cluster) float64 {
	c.t.Helper()
	prompts, cached := 0, 0
	for turn := range 3 {
		for doc := range 6 {
			text := strings.Repeat(fmt.Sprintf("document %d. ", doc), 60) + fmt.Sprintf("question %d", turn)
			a := c.mustChat(text, 8)
			prompts += a.usage.Prompt
			cached += a.usage.Details.Cached
			time.Sleep(50 * time.Millisecond) // events reach the router
		}
	}
	return float64(cached) / float64(prompts)
}

// TestHitRateEqualsTheReference sends the same prefix traffic to two of our workers and to two real mockers.
func TestHitRateEqualsTheReference(t *testing.T) {
	dir := modelDir(t)
	rate := func(start func(c *cluster)) float64 {
		c := newCluster(t)
		c.frontend("--router-mode", "kv")
		start(c)
		c.serving(2)
		return prefixTraffic(c)
	}
	ours := rate(func(c *cluster) { c.ours("--model-path", dir, "--num-workers", "2", "--speedup-ratio", "10") })
	theirs := rate(func(c *cluster) { c.reference(dir, "--num-workers", "2", "--speedup-ratio", "10") })
	t.Logf("hit rate of two workers under the KV router: ours %.4f, reference %.4f", ours, theirs)
	if ours != theirs || ours < 0.5 {
		t.Errorf("hit rates differ or are low: ours %.4f, reference %.4f", ours, theirs)
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
