package interop

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/interop.md from this run")

// TestMatrix serves the real frontend over every combination of discovery, request plane, event plane and response
// plane. The table in docs/interop.md is what it writes, and must be current.
func TestMatrix(t *testing.T) {
	var table strings.Builder
	table.WriteString(`# Beside the real Dynamo 1.6.1

Written by ` + "`go test ./interop -run TestMatrix -update`" + `. In each row the real frontend (` + "`--router-mode kv`" + `) lists two workers,
streams from them, finds a repeated prompt where the router expects it, and drops them when they stop. Kubernetes is a fake
API server; its workers are processes of their own. Roles, mixed fleets and failures have tests of their own in
` + "`interop/`" + `.

| discovery | requests | events | answers | result |
|---|---|---|---|---|
`)
	for _, discovery := range []string{"file", "etcd", "kubernetes"} {
		for _, plane := range []struct{ requests, events, answers string }{
			{"tcp", "zmq", "tcp"}, {"tcp", "nats", "tcp"}, {"nats", "zmq", "tcp"}, {"nats", "nats", "tcp"}, {"tcp", "zmq", "quic"},
		} {
			name := strings.Join([]string{discovery, plane.requests, plane.events, plane.answers}, " ")
			result := "passed"
			if !t.Run(name, func(t *testing.T) { matrixCell(t, discovery, plane.requests, plane.events, plane.answers) }) {
				result = "failed"
			}
			fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", discovery, plane.requests, plane.events, plane.answers, result)
		}
	}
	file := filepath.Join("..", "docs", "interop.md")
	if *update {
		if err := os.WriteFile(file, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if on, err := os.ReadFile(file); err != nil || string(on) != table.String() {
		t.Errorf("%s is not what this run gives (%v); write it with -update", file, err)
	}
}

// matrixCell runs one combination.
func matrixCell(t *testing.T, discovery, requests, events, answers string) {
	var c *cluster
	workers := []string{"--num-workers", "2"}
	asPods := [][]string{nil}
	switch discovery {
	case "file":
		c = newCluster(t)
	case "etcd":
		c = etcdCluster(t).cluster
	case "kubernetes":
		k := newKubeCluster(t)
		c, workers = k.cluster, nil
		asPods = [][]string{k.as("worker-0"), k.as("worker-1")}
	}
	c.env = append(c.env, "DYN_REQUEST_PLANE="+requests, "DYN_EVENT_PLANE="+events, "DYN_RESPONSE_PLANE="+answers,
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
