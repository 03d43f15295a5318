package backend

import (
	"errors"
	"testing"

	"mockbench/engine"
)

// finish runs a group until it is drained and returns the outputs of each request by key.
func finish(t *testing.T, g *engine.Group) map[int][]uint32 {
	t.Helper()
	out := map[int][]uint32{}
	var now engine.Time
	for passes := 0; g.Ready(); passes++ {
		if passes > 10000 {
			t.Fatal("the group never drains")
		}
		_, now = g.Begin(now)
		for _, p := range g.Complete() {
			for _, o := range p.Outputs {
				if o.HasToken {
					out[o.Request.Key] = append(out[o.Request.Key], o.Token)
				}
			}
		}
	}
	return out
}

func TestGroupServesRequests(t *testing.T) {
	g, err := NewGroup(engine.DefaultConfig(engine.VLLM), 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		r := &engine.Request{ID: engine.ID{15: byte(i + 1)}, Key: i, Prompt: make([]uint32, 100), MaxOutput: 10 + i}
		if err := g.Submit(i%2, r, 0); err != nil {
			t.Fatal(err)
		}
	}
	out := finish(t, g)
	for i := range 6 {
		if len(out[i]) != 10+i {
			t.Errorf("request %d: got %d tokens, want %d", i, len(out[i]), 10+i)
		}
	}
	if !g.Drained() {
		t.Error("the group is not drained")
	}
}

func TestWrongSettings(t *testing.T) {
	c := engine.DefaultConfig(engine.VLLM)
	c.BlockSize = 1
	var wrong *engine.SettingError
	if _, err := New(c, Identity{Ranks: 1}); !errors.As(err, &wrong) || wrong.Setting != "engine.block_size" {
		t.Errorf("got %v", err)
	}
	if _, err := NewGroup(engine.DefaultConfig(engine.VLLM), 0, 0); !errors.As(err, &wrong) || wrong.Setting != "dp_size" {
		t.Errorf("got %v", err)
	}
}
