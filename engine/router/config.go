package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"mockbench/engine"
)

// Config is the settings of a Dispatcher. JSON names are those of the reference's router configuration.
type Config struct {
	Model
	TrackBlocks    bool        `json:"router_track_active_blocks"` // count the blocks of active requests
	AssumeReuse    bool        `json:"router_assume_kv_reuse"`     // equal prompt blocks of active requests are one block
	QueueThreshold *float64    `json:"router_queue_threshold"`     // share of the token budget above which a rank is busy; nil: no queue
	QueuePolicy    QueuePolicy `json:"router_queue_policy"`
}

// QueuePolicy is the order in which waiting requests are placed.
type QueuePolicy string

// Queue policies. Priorities come before all of them.
const (
	FCFS QueuePolicy = "fcfs" // first come, first served
	LCFS QueuePolicy = "lcfs" // last come, first served
	WSPT QueuePolicy = "wspt" // fewest uncached prompt tokens first, weighted by priority
)

// DefaultConfig returns the reference's defaults.
func DefaultConfig() Config {
	return Config{Model: DefaultModel(), TrackBlocks: true, AssumeReuse: true, QueuePolicy: FCFS}
}

// foreign are keys of the reference's configuration that have no effect on placement in a replay, with the values that
// are accepted; nil accepts all.
var foreign = map[string]func(v any) bool{
	"use_kv_events": nil, "router_replica_sync": nil, "router_track_output_blocks": nil,
	"router_tracking_hash": isDefault("public-xxh3-v1"), "router_tracking_key_file": isDefault(nil), "router_tracking_key_id": isDefault(nil),
	"router_prefill_load_model": isDefault("none"), "router_ttl_secs": atLeast(0), "router_policy_config": isDefault(nil),
	"router_event_threads": atLeast(1), "skip_initial_worker_wait": nil, "use_remote_indexer": nil, "serve_indexer": nil,
	"enable_session_prefix_index": nil, "shared_cache_multiplier": share, "shared_cache_type": nil,
	"router_predicted_ttl_secs": atLeast(0), "conditional_disagg_enabled": nil, "conditional_disagg_policy": nil,
	"conditional_disagg_eff_isl_threshold": atLeast(0), "conditional_disagg_eff_isl_ratio_threshold": share,
	"conditional_disagg_prefill_busy_threshold": atLeast(0), "conditional_disagg_decode_busy_threshold": atLeast(0),
	"durable_kv_events": isDefault(false), "router_snapshot_threshold": nil, "router_reset_states": nil,
	"overlap_score_weight": atLeast(0),
}

func isDefault(want any) func(any) bool { return func(v any) bool { return v == want || v == nil } }

func atLeast(low float64) func(any) bool {
	return func(v any) bool { n, ok := v.(float64); return v == nil || ok && n >= low }
}

func share(v any) bool { n, ok := v.(float64); return v == nil || ok && n >= 0 && n <= 1 }

// own are the keys that Config and Model read.
var own = map[string]bool{"overlap_score_credit": true, "overlap_score_credit_decay": true, "prefill_load_scale": true,
	"decode_active_request_weight": true, "host_cache_hit_weight": true, "disk_cache_hit_weight": true, "router_temperature": true,
	"router_track_prefill_tokens": true, "router_track_active_blocks": true, "router_assume_kv_reuse": true,
	"router_queue_threshold": true, "router_queue_policy": true}

// ParseConfig reads a router configuration in the reference's JSON form over the defaults. Unknown keys are an error, and
// so are settings that would change placements in a way that a Dispatcher does not offer.
func ParseConfig(data []byte) (Config, error) {
	c := DefaultConfig()
	var keys map[string]any
	if err := json.Unmarshal(data, &keys); err != nil {
		return c, fmt.Errorf("router_config: %w", err)
	}
	for key, value := range keys {
		accepts, known := foreign[key]
		switch {
		case own[key]:
		case !known:
			return c, &engine.SettingError{Setting: "router_config." + key, Kind: engine.KindUnknown, Allowed: "there is no such setting"}
		case accepts != nil && !accepts(value):
			return c, &engine.SettingError{Setting: "router_config." + key, Kind: engine.KindUnsupported, Given: fmt.Sprint(value),
				Allowed: "not supported in a replay, or out of range"}
		}
	}
	if keys["router_track_output_blocks"] == true && keys["router_track_active_blocks"] == false {
		return c, &engine.SettingError{Setting: "router_config.router_track_output_blocks", Kind: engine.KindMissing,
			Allowed: "needs router_track_active_blocks"}
	}
	model, err := ParseModel(data)
	if err != nil {
		return c, err
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&c); err != nil {
		return c, fmt.Errorf("router_config: %w", err)
	}
	c.Model = model
	return c, c.Validate()
}

// Validate returns a *engine.SettingError for the first setting that is out of range.
func (c Config) Validate() error {
	if err := c.Model.Validate(); err != nil {
		return err
	}
	if t := c.QueueThreshold; t != nil && !(*t >= 0 && *t <= math.MaxFloat64) {
		return &engine.SettingError{Setting: "router.router_queue_threshold", Kind: engine.KindRange, Given: fmt.Sprint(*t),
			Allowed: "must be finite and not negative"}
	}
	switch c.QueuePolicy {
	case FCFS, LCFS, WSPT:
		return nil
	}
	return &engine.SettingError{Setting: "router.router_queue_policy", Kind: engine.KindUnknown, Given: string(c.QueuePolicy),
		Allowed: "allowed: fcfs, lcfs, wspt"}
}

// ForPrefill returns the settings for the prefill workers of a disaggregated fleet, which hold no active blocks.
func (c Config) ForPrefill() Config {
	c.TrackBlocks = false
	return c
}

// ForDecode returns the settings for the decode workers of a disaggregated fleet: only load counts.
func (c Config) ForDecode() Config {
	c.OverlapCredit, c.AssumeReuse, c.TrackPrefill = 0, false, false
	return c
}
