package sglang

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"mockbench/engine"
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

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func met(l engine.Load) []any {
	return []any{l.ActiveBlocks, l.InactiveBlocks, l.TotalBlocks - l.ActiveBlocks - l.InactiveBlocks, l.Running, l.Waiting,
		l.Preemptions}
}

func life(list []engine.Handoff) (out []any) {
	for _, h := range list {
		step := map[string]any{"handoff": uuid(h.ID)}
		if h.Kind == engine.SourceHeld {
			step["source_held"], step["full_prompt_tokens"] = h.Request.Label, h.Tokens
		} else {
			step["destination_reserved"], step["transferable_prompt_tokens"] = h.Request.Label, h.Tokens
		}
		out = append(out, step)
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
		if diff := difference("", got[i], want); diff != "" {
			g.t.Fatalf("step %d: %s\n got %s\nwant %s", i, diff, text(got[i]), text(want))
		}
	}
	if len(got) > len(g.c.Expect.Steps) {
		g.t.Errorf("%d steps, want %d", len(got), len(g.c.Expect.Steps))
	}
}

// sameError reports whether an own error is of the kind of a recorded message.
func sameError(got, want string) bool {
	for own, recorded := range map[string]string{
		"already active":        "already active",
		"engine.max_model_len":  "max_model_len",
		"engine.num_gpu_blocks": "KV pool capacity",
	} {
		if strings.Contains(got, own) && strings.Contains(want, recorded) {
			return true
		}
	}
	return false
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// difference returns the path of the first difference, or "". Numbers agree within 2e-6 or a part in 10^9.
func difference(path string, got, want any) string {
	switch w := want.(type) {
	case string:
		if g, ok := got.(string); !ok || g != w && !(strings.HasSuffix(path, ".error") && sameError(g, w)) {
			return path
		}
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			return path
		}
		for k := range w {
			if _, ok := m[k]; !ok {
				return path + "." + k + " is missing"
			}
			if d := difference(path+"."+k, m[k], w[k]); d != "" {
				return d
			}
		}
		for k := range m {
			if _, ok := w[k]; !ok {
				return path + "." + k + " is too much"
			}
		}
	case []any:
		l, ok := got.([]any)
		if !ok || len(l) != len(w) {
			return path
		}
		for i := range w {
			if d := difference(fmt.Sprintf("%s[%d]", path, i), l[i], w[i]); d != "" {
				return d
			}
		}
	case float64:
		n, ok := got.(float64)
		if exact := w == math.Trunc(w) && !strings.HasSuffix(path, ".t") && !strings.HasSuffix(path, ".end"); !ok ||
			exact && n != w && math.Abs(n-w) > 1e-9*math.Abs(w) || math.Abs(n-w) > max(2e-6, 1e-9*math.Abs(w)) {
			return path
		}
	default:
		if got != want {
			return path
		}
	}
	return ""
}

func number(n uint64) (id engine.ID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

func uuid(id engine.ID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// prompt expands the segments [seed, start, count] of a recorded prompt.
func prompt(segments [][3]uint64) (tokens []uint32) {
	for _, s := range segments {
		for i := s[1]; i < s[1]+s[2]; i++ {
			z := s[0]*0x9E3779B97F4A7C15 + (i+1)*0xBF58476D1CE4E5B9
			z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
			z = (z ^ z>>27) * 0x94D049BB133111EB
			z ^= z >> 31
			tokens = append(tokens, uint32(z%32000))
		}
	}
	return tokens
}
