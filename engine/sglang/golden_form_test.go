package sglang

import (
	"encoding/json"
	"fmt"
	"slices"

	"mockbench/engine/goldentest"
	"mockbench/kv"
	"mockbench/kv/radix"
)

func labels(list []*sequence) []any {
	out := []any{}
	for _, q := range list {
		out = append(out, q.req.Label)
	}
	return out
}

// events names blocks by the labels of the recording, and by their hash where the recording knows no such block.
func (g *goldenRun) events(e *kv.Events) (out []any) {
	name := func(h uint64) any {
		if l, ok := g.labels[h]; ok {
			return l
		}
		return fmt.Sprintf("%x", h)
	}
	tokens := e.Tokens
	for _, ev := range e.List {
		sequence, local := e.Blocks(ev)
		var blocks []any
		for i, h := range sequence {
			blocks = append(blocks, name(h))
			if recorded := g.c.Expect.Hashes[fmt.Sprint(name(h))][1]; ev.Kind == kv.Stored && (recorded == nil || fmt.Sprintf("%016x", local[i]) != *recorded) {
				g.t.Errorf("block %v has the local hash %016x", name(h), local[i])
			}
		}
		step := map[string]any{"n": ev.ID}
		if ev.Kind == kv.Removed {
			step["removed"] = blocks
		} else {
			step["stored"], step["parent"] = blocks, nil
			if ev.HasParent {
				step["parent"] = name(ev.Parent)
			}
			if len(tokens) > 0 {
				var ids []any
				for range blocks {
					ids = append(ids, slices.Clone(tokens[:g.ranks[0].page]))
					tokens = tokens[g.ranks[0].page:]
				}
				step["token_ids"] = ids
			}
		}
		out = append(out, step)
	}
	return out
}

func tree(s *Scheduler) map[string]any {
	index := map[*radix.Node]int{s.pool.Root(): -1}
	nodes, oldest := []any{}, []any{}
	s.pool.Walk(func(n *radix.Node, _ int) {
		index[n] = len(nodes)
		nodes = append(nodes, []any{index[n.Parent()], len(n.Pages()), n.Locks()})
	})
	for _, n := range s.pool.Oldest() {
		oldest = append(oldest, index[n])
	}
	return map[string]any{"nodes": nodes, "lru": oldest}
}

// compare walks recorded and own steps side by side and stops at the first step that differs.
func (g *goldenRun) compare() {
	raw, err := json.Marshal(g.steps)
	if err != nil {
		g.t.Fatal(err)
	}
	var got []any
	if err := json.Unmarshal(raw, &got); err != nil {
		g.t.Fatal(err)
	}
	for i, want := range g.c.Expect.Steps {
		if i == len(got) {
			g.t.Fatalf("%d steps, want %d", len(got), len(g.c.Expect.Steps))
		}
		if diff := goldentest.Difference(got[i], want, g.c.Input.Detail == "full"); diff != "" {
			g.t.Fatalf("step %d: %s\n got %s\nwant %s", i, diff, text(got[i]), text(want))
		}
	}
	if len(got) > len(g.c.Expect.Steps) {
		g.t.Errorf("%d steps, want %d", len(got), len(g.c.Expect.Steps))
	}
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
