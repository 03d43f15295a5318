package bootstrap

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"mockbench/engine"
	"mockbench/engine/live"
)

// join begins both sides of a handoff without a server between the workers.
func (p *pair) join(ctx context.Context, t *testing.T, id uuid.UUID, prompt int) (*session, chan error) {
	t.Helper()
	s := &session{}
	var err error
	tokens := make([]uint32, prompt)
	if s.source, err = p.prefill.Source(live.Request{Prompt: tokens, MaxOutput: 1, Rank: -1}, engine.ID(id)); err != nil {
		t.Fatal(err)
	}
	if s.destination, err = p.decode.Destination(live.Request{Prompt: tokens, MaxOutput: 4, Rank: -1}, engine.ID(id)); err != nil {
		t.Fatal(err)
	}
	joined := make(chan error, 1)
	config := p.prefill.Config()
	go func() { joined <- Join(ctx, &config, id, s.source, s.destination) }()
	return s, joined
}

func slowLink(c engine.Config) engine.Config {
	c.KVTransferBytesPerToken, c.KVTransferBandwidth = 62_500, 0.0005 // 64 tokens: 8 s
	return c
}

func joinConfigs() map[string]engine.Config {
	sglang := engine.DefaultConfig(engine.SGLang)
	sglang.Timing = vllm().Timing
	return map[string]engine.Config{"vllm": vllm(), "sglang": sglang}
}

func TestJoin(t *testing.T) {
	for name, cfg := range joinConfigs() {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, cfg)
			for range 5 {
				s, joined := p.join(t.Context(), t, uuid.New(), 100)
				if err := result(t, joined); err != nil {
					t.Fatal(err)
				}
				if n, end := ends(t, s.destination.Stream); n != 4 || end != live.Finished {
					t.Errorf("%d tokens, end %d", n, end)
				}
			}
			p.clean(t)
		})
	}
}

// A client that leaves during the transfer, or at any other moment, leaves nothing behind.
func TestJoinIsLeft(t *testing.T) {
	for name, cfg := range joinConfigs() {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, slowLink(cfg))
			for i := range 20 {
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				_, joined := p.join(ctx, t, uuid.New(), 64)
				if result(t, joined) == nil {
					t.Error("a transfer of 8 s is over")
				}
				leave()
			}
			p.clean(t)
		})
	}
}

// A request that one of the engines refuses for its size ends at both.
func TestJoinIsRefused(t *testing.T) {
	for name, cfg := range joinConfigs() {
		for _, small := range []engine.Role{engine.PrefillRole, engine.DecodeRole} {
			t.Run(fmt.Sprint(name, " ", small), func(t *testing.T) {
				p := newPair(t, cfg)
				tiny := cfg
				tiny.NumGPUBlocks, tiny.MaxModelLen = 64, 64
				w := startWorker(t, tiny, small)
				if small == engine.PrefillRole {
					p.prefill = w
				} else {
					p.decode = w
				}
				s, joined := p.join(t.Context(), t, uuid.New(), 1000)
				if err := result(t, joined); err == nil {
					t.Error("no error")
				}
				for _, half := range []*live.Stream{s.source.Stream, s.destination.Stream} {
					ends(t, half)
				}
				p.clean(t)
			})
		}
	}
}
