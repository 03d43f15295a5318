package interop

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/interop.md from this run")

// results are the outcomes of cells by name.
type results struct {
	mu     sync.Mutex
	failed map[string]bool
}

// cell runs one combination, several at a time, and notes how it ends.
func (r *results) cell(t *testing.T, name string, run func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		r.mu.Lock()
		r.failed[name] = true // until it has come to its end
		r.mu.Unlock()
		run(t)
		r.mu.Lock()
		r.failed[name] = t.Failed()
		r.mu.Unlock()
	})
}

// of returns the outcome of a cell. One that was not run has none.
func (r *results) of(name string) string {
	switch failed, run := r.failed[name]; {
	case !run:
		return "not run"
	case failed:
		return "failed"
	}
	return "passed"
}

// planes is a combination of transports.
type planes struct{ discovery, requests, events, answers string }

func (p planes) String() string {
	return strings.Join([]string{p.discovery, p.requests, p.events, p.answers}, " ")
}

func allPlanes() (list []planes) {
	for _, discovery := range []string{"file", "etcd", "kubernetes"} {
		for _, p := range []planes{{requests: "tcp", events: "zmq", answers: "tcp"}, {requests: "tcp", events: "nats", answers: "tcp"},
			{requests: "nats", events: "zmq", answers: "tcp"}, {requests: "nats", events: "nats", answers: "tcp"},
			{requests: "tcp", events: "zmq", answers: "quic"}, {requests: "nats", events: "nats", answers: "quic"}} {
			p.discovery = discovery
			list = append(list, p)
		}
	}
	return list
}

// service is how workers of a role serve.
type service struct {
	engine string
	joined bool
}

func (s service) String() string {
	if s.joined {
		return s.engine + ", bootstrap"
	}
	return s.engine + ", sequential"
}

var services = []service{{"vllm", true}, {"vllm", false}, {"sglang", true}, {"sglang", false}}

const aggregated = "aggregated workers"

// TestMatrix serves the real frontend over every combination of discovery, request plane, event plane and response
// plane, and with every mix of roles. The tables in docs/interop.md are what it writes, and must be current.
func TestMatrix(t *testing.T) {
	r := &results{failed: map[string]bool{}}
	t.Run("planes", func(t *testing.T) {
		for _, p := range allPlanes() {
			r.cell(t, p.String(), func(t *testing.T) { planesCell(t, p) })
		}
	})
	t.Run("roles", func(t *testing.T) {
		for _, s := range services {
			for _, mix := range allRoles {
				r.cell(t, mix.name+"/"+s.String(), func(t *testing.T) { startDisagg(t, s.engine, s.joined, mix).check() })
			}
			if s.joined {
				r.cell(t, aggregated+"/"+s.engine, func(t *testing.T) { aggregatedCell(t, s.engine) })
			}
		}
	})
	file := filepath.Join("..", "docs", "interop.md")
	if *update {
		if err := os.WriteFile(file, []byte(r.document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if on, err := os.ReadFile(file); err != nil || string(on) != r.document() {
		t.Errorf("%s is not what this run gives (%v); write it with -update", file, err)
	}
}

// document returns the text of docs/interop.md.
func (r *results) document() string {
	var b strings.Builder
	b.WriteString(`# Beside the real Dynamo 1.6.1

Written by ` + "`go test ./interop -run TestMatrix -update`" + `. Mixed fleets, failures and encryption have tests of their own in
` + "`interop/`" + `.

## Transports

In each row the real frontend (` + "`--router-mode kv`" + `) lists two workers, streams from them, finds a repeated prompt where the
router expects it, and drops them when they stop. Kubernetes is a fake API server; its workers are processes of their own.

| discovery | requests | events | answers | result |
|---|---|---|---|---|
`)
	for _, p := range allPlanes() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.discovery, p.requests, p.events, p.answers, r.of(p.String()))
	}
	b.WriteString(`
## Roles

In each cell the real frontend gets 40 complete answers, each with one handoff where there is a bootstrap port; then 80 clients
leave, at any moment; then 40 more answers are complete in pools that hold about 40 prompts, and our workers have nothing left.

| our part | vLLM, bootstrap | vLLM, sequential | SGLang, bootstrap | SGLang, sequential |
|---|---|---|---|---|
`)
	fmt.Fprintf(&b, "| %s | %s | | %s | |\n", aggregated, r.of(aggregated+"/vllm"), r.of(aggregated+"/sglang"))
	for _, mix := range allRoles {
		fmt.Fprintf(&b, "| %s |", mix.name)
		for _, s := range services {
			fmt.Fprintf(&b, " %s |", r.of(mix.name+"/"+s.String()))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// planesCell runs one combination of transports.
func planesCell(t *testing.T, p planes) {
	var c *cluster
	workers := []string{"--num-workers", "2"}
	asPods := [][]string{nil}
	switch p.discovery {
	case "file":
		c = newCluster(t)
	case "etcd":
		c = etcdCluster(t).cluster
	case "kubernetes":
		k := newKubeCluster(t)
		c, workers = k.cluster, nil
		asPods = [][]string{k.as("worker-0"), k.as("worker-1")}
	}
	c.env = append(c.env, "DYN_REQUEST_PLANE="+p.requests, "DYN_EVENT_PLANE="+p.events, "DYN_RESPONSE_PLANE="+p.answers,
		"NATS_SERVER="+broker(t, 0).URL())
	c.frontend("--router-mode", "kv")
	var running []*process
	for _, env := range asPods {
		running = append(running, c.oursIn(env, append(workers, "--speedup-ratio", "10")...))
	}
	c.eventually(60*time.Second, "the model is listed", c.listed)
	time.Sleep(time.Second) // the second worker, and the frontend's event subscriptions
	for i := range 3 {
		if cached := c.repeats(fmt.Sprint("lake ", i)); cached == 0 {
			t.Errorf("prompt %d: nothing of it is found in the cache the second time", i)
		}
	}
	for _, p := range running {
		if took, status := p.stop(20 * time.Second); status != 0 {
			t.Errorf("exit status %d after %v", status, took)
		}
	}
	c.eventually(20*time.Second, "the model is unlisted", func() bool { return !c.listed() })
}

// aggregatedCell does with a worker of both roles in one what the other cells do with two.
func aggregatedCell(t *testing.T, engine string) {
	d := &disagg{cluster: newCluster(t)}
	d.frontend("--router-mode", "kv")
	d.prefill = d.begin(true, "", engineFlags(engine))
	d.decode = d.prefill
	d.serving(1)
	d.check()
}
