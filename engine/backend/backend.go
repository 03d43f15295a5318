// Package backend builds the scheduler that a configuration asks for.
package backend

import (
	"fmt"

	"mockbench/engine"
	"mockbench/engine/sglang"
	"mockbench/engine/spec"
	"mockbench/engine/timing"
	"mockbench/engine/trtllm"
	"mockbench/engine/vllm"
	"mockbench/kv/hostcache"
)

// Identity says which rank of which worker a scheduler is. Seeds derive from it.
type Identity struct {
	Worker      uint64
	Rank, Ranks int

	// Host is the pool of a cluster-shared host tier, nil if there is none.
	Host *hostcache.Pool
}

// New returns an idle rank. The error is a *engine.SettingError.
func New(cfg engine.Config, o Identity) (engine.Scheduler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	model, err := timing.NewModel(cfg.Timing)
	if err != nil {
		return nil, err
	}
	rates, err := cfg.AcceptRates()
	if err != nil {
		return nil, err
	}
	var sampler *spec.Sampler
	if rates != nil {
		sampler = spec.NewSampler(rates, cfg.MTPSeed+o.Worker*uint64(o.Ranks)+uint64(o.Rank))
	}
	host, err := hostTier(cfg, o.Host)
	if err != nil {
		return nil, err
	}
	options := vllm.Options{Rank: o.Rank, Ranks: o.Ranks, Timing: model, Sampler: sampler, Host: host}
	switch cfg.Backend {
	case engine.SGLang:
		return sglang.New(cfg, o.Rank, o.Ranks, timing.NewTimer(model, cfg), sampler)
	case engine.TRTLLM:
		return trtllm.New(cfg, options), nil
	}
	return vllm.New(cfg, options), nil
}

// NewGroup returns the idle ranks of one worker behind their barrier.
func NewGroup(cfg engine.Config, worker uint64, ranks int) (*engine.Group, error) {
	return NewSharingGroup(cfg, worker, ranks, nil)
}

// NewSharingGroup is NewGroup for ranks that use the shared pool of a host tier.
func NewSharingGroup(cfg engine.Config, worker uint64, ranks int, host *hostcache.Pool) (*engine.Group, error) {
	if ranks < 1 {
		return nil, &engine.SettingError{Setting: "dp_size", Kind: engine.KindRange, Given: fmt.Sprint(ranks), Allowed: "must be positive"}
	}
	schedulers := make([]engine.Scheduler, ranks)
	for i := range schedulers {
		s, err := New(cfg, Identity{Worker: worker, Rank: i, Ranks: ranks, Host: host})
		if err != nil {
			return nil, err
		}
		schedulers[i] = s
	}
	return engine.NewGroup(schedulers), nil
}
