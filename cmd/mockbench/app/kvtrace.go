package app

import (
	"log/slog"
	"time"

	"mockbench/cmd/mockbench/logs"
	"mockbench/engine"
	"mockbench/kv"
)

// kvTraceVariable asks for the trace with "1" or "true".
const kvTraceVariable = "DYN_MOCKER_KV_CACHE_TRACE"

// kvTraceTarget is where filters of the reference's log look for the trace.
const kvTraceTarget = "aisimulate_core::engine::common::kv_cache_trace"

// kvTrace logs how full the cache is after each pass that took blocks: an eviction where cached blocks had to go for
// them, else an allocation. The names are the reference's, which writes a line an allocation.
type kvTrace struct {
	log  *slog.Logger
	used []int // blocks that are not free, by rank
}

// newKVTrace returns nil if nobody asked for the trace.
func newKVTrace(log *logs.Log, lookup func(string) (string, bool), c *engine.Config, ranks int) *kvTrace {
	if v, _ := lookup(kvTraceVariable); v != "1" && v != "true" {
		return nil
	}
	return &kvTrace{used: make([]int, ranks),
		log: log.Every(kvTraceTarget).With("engine_type", string(c.Backend), "block_size", c.BlockSize)}
}

// Pass implements engine.Reader.
func (k *kvTrace) Pass(p *engine.Pass) {
	l := &p.Load
	used := l.ActiveBlocks + l.InactiveBlocks
	event := ""
	if used > k.used[p.Rank] || len(p.Admissions) > 0 {
		event = "allocation"
	}
	for _, e := range p.Events.List {
		if e.Kind == kv.Removed && e.Tier == kv.Device {
			event = "eviction"
		}
	}
	k.used[p.Rank] = used
	if event == "" || l.TotalBlocks == 0 {
		return
	}
	k.log.Info("KV cache trace", "event", event, "timestamp_ms", time.Now().UnixMilli(), "dp_rank", p.Rank,
		"free_blocks", l.TotalBlocks-used, "active_blocks", l.ActiveBlocks, "inactive_blocks", l.InactiveBlocks,
		"total_blocks", l.TotalBlocks, "utilization", float64(used)/float64(l.TotalBlocks))
}
