package backend

import (
	"fmt"

	"mockbench/engine"
	"mockbench/engine/vllm"
	"mockbench/kv/hostcache"
)

// NewSharedHost returns the empty host tier that the ranks of a cluster share, of the configuration's size. The
// configuration has been validated.
func NewSharedHost(cfg engine.Config, tensorParallel int) *hostcache.Pool {
	return hostcache.NewShared(layout(cfg, tensorParallel))
}

func layout(cfg engine.Config, tensorParallel int) hostcache.Layout {
	h := cfg.HostOffload
	return hostcache.Layout{ID: h.KVLayoutID, TensorParallel: tensorParallel, BlockSize: cfg.BlockSize,
		BlockBytes: cfg.BlockSize * cfg.KVCacheBytesPerToken, Capacity: h.NumHostBlocks,
		D2H: h.SharedD2HBandwidthGBps, H2D: h.SharedH2DBandwidthGBps}
}

// hostTier connects a rank to a host cache of its own or to the shared one.
func hostTier(cfg engine.Config, shared *hostcache.Pool) (*vllm.HostTier, error) {
	h := cfg.HostOffload
	if h == nil {
		return nil, nil
	}
	pool, l := shared, layout(cfg, 1)
	switch {
	case h.Scope != engine.ScopeShared:
		pool = hostcache.NewPrivate(l)
	case pool == nil:
		return nil, &engine.SettingError{Setting: "engine.native_host_offload.scope", Kind: engine.KindMissing, Given: h.Scope,
			Allowed: fmt.Sprintf("needs a pool that ranks share, which only an offline replay has; use %s", engine.ScopeRank)}
	default:
		l.TensorParallel = pool.Layout().TensorParallel
	}
	port, err := pool.Join(l, hostcache.Link{D2H: h.D2HBandwidthGBps, H2D: h.H2DBandwidthGBps, Latency: h.LatencyMS, Emits: cfg.EmitKVEvents})
	if err != nil {
		return nil, &engine.SettingError{Setting: "engine.native_host_offload", Kind: engine.KindConflict, Given: h.KVLayoutID, Allowed: err.Error()}
	}
	return &vllm.HostTier{Pool: pool, Port: port}, nil
}
