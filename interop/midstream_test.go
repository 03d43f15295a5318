package interop

import (
	"context"
	"sync"
	"time"
)

// outcome is what became of a stream.
type outcome struct {
	answer
	err error
}

// complete reports whether the answer has all its n tokens.
func (o *outcome) complete(n int) bool {
	return o.err == nil && o.usage.Completion == n && o.finish == "length" && !o.errored
}

// begin asks for a stream of n tokens and returns when its first content is there; what becomes of it comes later.
func (c *cluster) begin(prompt string, n int) <-chan outcome {
	c.t.Helper()
	running, ended := make(chan struct{}), make(chan outcome, 1)
	go func() {
		var once sync.Once
		a, err := c.ask(context.Background(), "/v1/chat/completions", chat(prompt, n), func() { once.Do(func() { close(running) }) })
		ended <- outcome{a, err}
	}()
	select {
	case <-running:
	case o := <-ended:
		if o.err != nil || o.chunks == 0 {
			c.t.Fatalf("the stream did not begin: %+v", o)
		}
		ended <- o
	case <-time.After(30 * time.Second):
		c.t.Fatal("the stream does not begin")
	}
	return ended
}

// stopMidStream sends SIGTERM to a worker while a client reads n tokens: the client gets all of them, and nothing is left.
func (c *cluster) stopMidStream(p *process, n int) {
	c.t.Helper()
	ended := c.begin("a long story", n)
	took, status := p.stop(60 * time.Second)
	if o := <-ended; !o.complete(n) {
		c.t.Errorf("got %+v", o)
	}
	if status != 0 || len(c.records("*", "")) > 0 {
		c.t.Errorf("exit status %d, records %v", status, c.records("*", ""))
	}
	c.t.Logf("the process ended %.1f s after the signal", took.Seconds())
}
