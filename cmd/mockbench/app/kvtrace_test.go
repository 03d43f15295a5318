package app

import (
	"bytes"
	"strings"
	"testing"

	"mockbench/cmd/mockbench/logs"
	"mockbench/engine"
	"mockbench/kv"
)

func TestKVTrace(t *testing.T) {
	c := engine.DefaultConfig(engine.VLLM)
	var out bytes.Buffer
	log := logs.New(logs.Options{}, &out)
	value := ""
	lookup := func(name string) (string, bool) { return value, name == kvTraceVariable }
	for _, value = range []string{"", "0", "yes", "TRUE"} {
		if newKVTrace(log, lookup, &c, 1) != nil {
			t.Errorf("%q asks for a trace", value)
		}
	}
	for _, value = range []string{"1", "true"} {
		if newKVTrace(log, lookup, &c, 1) == nil {
			t.Errorf("%q asks for no trace", value)
		}
	}
	k := newKVTrace(log, lookup, &c, 2)
	pass := func(active, inactive int, removed bool) {
		p := engine.Pass{Rank: 1, Load: engine.Load{ActiveBlocks: active, InactiveBlocks: inactive, TotalBlocks: 20}}
		if removed {
			p.Events.List = []kv.Event{{Kind: kv.Removed, Tier: kv.HostPinned}, {Kind: kv.Removed, Tier: kv.Device}}
		}
		k.Pass(&p)
	}
	pass(5, 0, false)
	pass(5, 0, false) // nothing was taken
	pass(0, 5, false) // nor where a request has ended
	pass(15, 5, false)
	pass(16, 4, true)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{
		"event=allocation dp_rank=1 free_blocks=15 active_blocks=5 inactive_blocks=0 total_blocks=20 utilization=0.25",
		"event=allocation dp_rank=1 free_blocks=0 active_blocks=15 inactive_blocks=5 total_blocks=20 utilization=1",
		"event=eviction dp_rank=1 free_blocks=0 active_blocks=16 inactive_blocks=4 total_blocks=20 utilization=1",
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines:\n%s", len(lines), &out)
	}
	for i, line := range lines {
		head, rest, _ := strings.Cut(line, " timestamp_ms=")
		_, rest, _ = strings.Cut(rest, " ")
		_, event, _ := strings.Cut(head, " KV cache trace engine_type=vllm block_size=64 ")
		if event+" "+rest != want[i] || !strings.Contains(line, " INFO "+kvTraceTarget+": ") {
			t.Errorf("got %s, want %s", line, want[i])
		}
	}
	out.Reset()
	for n := range 1000 {
		pass(n%2, 0, true)
	}
	if n := strings.Count(out.String(), "\n"); n != 1000 {
		t.Errorf("%d lines of 1000 passes", n)
	}
}
