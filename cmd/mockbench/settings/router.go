package settings

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"mockbench/cmd/mockbench/flags"
	"mockbench/profiles"
)

// Router is the routing that a model card asks for.
type Router struct {
	Mode     string           // flag word
	Common   *profiles.Object // settings of every mode
	KV       *profiles.Object // settings of mode kv under their policy names, nil for other modes
	defaults *profiles.Object // of mode kv
}

// routerSetting is one setting of the KV-aware router.
type routerSetting struct {
	name      string // in a policy file and in the card
	flag      string // empty if only a policy file sets it
	low, high float64
	wire      wireRule
}

// wireRule says when a setting appears in the card.
type wireRule uint8

const (
	always wireRule = iota
	changed
	never
)

var inf = math.Inf(1)

// routerSettings are in the order of the card.
var routerSettings = []routerSetting{
	{"overlap_score_weight", "--router-kv-overlap-score-weight", 0, inf, never},
	{"overlap_score_credit", "--router-kv-overlap-score-credit", 0, inf, always},
	{"overlap_score_credit_decay", "--router-kv-overlap-score-credit-decay", 0, inf, always},
	{"prefill_load_scale", "--router-prefill-load-scale", 0, inf, always},
	{"decode_active_request_weight", "--router-decode-active-request-weight", 0, inf, changed},
	{"host_cache_hit_weight", "--router-host-cache-hit-weight", 0, 1, always},
	{"disk_cache_hit_weight", "--router-disk-cache-hit-weight", 0, 1, always},
	{"router_temperature", "--router-temperature", 0, inf, always},
	{"use_kv_events", "--router-kv-events", 0, 0, always},
	{"router_replica_sync", "--router-replica-sync", 0, 0, always},
	{"router_track_active_blocks", "--router-track-active-blocks", 0, 0, always},
	{"router_track_output_blocks", "--router-track-output-blocks", 0, 0, always},
	{"router_assume_kv_reuse", "--router-assume-kv-reuse", 0, 0, always},
	{"router_track_prefill_tokens", "--router-track-prefill-tokens", 0, 0, always},
	{"router_tracking_hash", "--router-tracking-hash", 0, 0, changed},
	{"router_tracking_key_file", "--router-tracking-key-file", 0, 0, changed},
	{"router_tracking_key_id", "--router-tracking-key-id", 0, 0, changed},
	{"router_prefill_load_model", "--router-prefill-load-model", 0, 0, always},
	{"router_ttl_secs", "--router-ttl-secs", 0, inf, always},
	{"router_approximate_cache_policy", "--router-approximate-cache-policy", 0, 0, never},
	{"router_queue_threshold", "--router-queue-threshold", 0, inf, always},
	{"router_policy_config", "--router-policy-config", 0, 0, always},
	{"router_event_threads", "--router-event-threads", 1, inf, always},
	{"skip_initial_worker_wait", "", 0, 0, always},
	{"router_queue_policy", "--router-queue-policy", 0, 0, always},
	{"use_remote_indexer", "--use-remote-indexer", 0, 0, always},
	{"serve_indexer", "", 0, 0, always},
	{"enable_session_prefix_index", "--enable-session-prefix-index", 0, 0, changed},
	{"shared_cache_multiplier", "--shared-cache-multiplier", 0, 1, changed},
	{"shared_cache_type", "--shared-cache-type", 0, 0, always},
	{"router_predicted_ttl_secs", "--router-predicted-ttl-secs", 0, inf, always},
	{"router_prefill_policy", "--router-prefill-policy", 0, 0, never},
	{"router_decode_policy", "--router-decode-policy", 0, 0, never},
	{"conditional_disagg_enabled", "--router-conditional-disagg", 0, 0, changed},
	{"conditional_disagg_policy", "", 0, 0, changed},
	{"conditional_disagg_eff_isl_threshold", "", 0, inf, changed},
	{"conditional_disagg_eff_isl_ratio_threshold", "", 0, inf, changed},
	{"conditional_disagg_prefill_busy_threshold", "", 0, inf, changed},
	{"conditional_disagg_decode_busy_threshold", "", 0, inf, changed},
}

// routerModes translates flag words to card words.
var routerModes = map[string]string{"round-robin": "round_robin", "random": "random", "power-of-two": "power_of_two_choices",
	"kv": "k_v", "direct": "direct", "least-loaded": "least_loaded", "device-aware-weighted": "device_aware_weighted"}

// router settles what the card advertises.
func (r *resolver) router() error {
	if err := r.checkConditional(); err != nil {
		return err
	}
	mode := r.v.Get("--router-mode")
	if !mode.Given() {
		return nil
	}
	if _, ok := routerModes[mode.Text]; !ok {
		return wrongFlag(mode.Spelling, strconv.Quote(mode.Text), "allowed: round-robin, random, power-of-two, kv, direct, least-loaded, device-aware-weighted")
	}
	common, err := r.commonRouter()
	if err != nil {
		return err
	}
	r.s.Router = &Router{Mode: mode.Text, Common: common, defaults: routerDefaults()}
	if mode.Text == "kv" {
		r.s.Router.KV, err = r.kvRouter()
	}
	return err
}

// commonRouter reads the settings of every mode.
func (r *resolver) commonRouter() (*profiles.Object, error) {
	o := profiles.NewObject()
	for _, f := range []struct {
		key, flag string
		low, high float64
	}{
		{"active_decode_blocks_threshold", "--active-decode-blocks-threshold", 0, 1},
		{"active_prefill_tokens_threshold", "--active-prefill-tokens-threshold", 0, inf},
		{"active_prefill_tokens_threshold_frac", "--active-prefill-tokens-threshold-frac", 0, inf},
		{"session_affinity_ttl_secs", "--router-session-affinity-ttl-secs", 1, 365 * 24 * 3600},
	} {
		v := r.v.Get(f.flag)
		if !v.Given() || v.Unset {
			o.Set(f.key, nil)
			continue
		}
		if err := within(v.Spelling, v, f.low, f.high); err != nil {
			return nil, err
		}
		value, err := jsonValue(v)
		if err != nil {
			return nil, err
		}
		o.Set(f.key, value)
	}
	o.Set("session_affinity_mode", r.v.Text("--router-session-affinity-mode"))
	return o, nil
}

// within checks the range of a number.
func within(name string, v flags.Value, low, high float64) error {
	var x float64
	switch v.Flag.Kind {
	case flags.Int:
		x, _ = v.Int.Float64()
	case flags.Float:
		x = v.Float
	default:
		return nil
	}
	if math.IsNaN(x) || math.IsInf(x, 0) || x < low || x > high {
		return wrongFlag(name, v.Text, rangeText(low, high))
	}
	return nil
}

func rangeText(low, high float64) string {
	if math.IsInf(high, 1) {
		return fmt.Sprintf("must be finite and at least %g", low)
	}
	return fmt.Sprintf("must be between %g and %g", low, high)
}

// routerDefaults returns the settings of mode kv that nobody touched.
func routerDefaults() *profiles.Object {
	o := profiles.NewObject()
	for _, s := range routerSettings {
		o.Set(s.name, nil)
		switch {
		case s.flag != "":
			if v, err := routerValue(flags.Default(s.flag)); err == nil {
				o.Set(s.name, v)
			}
		case s.name == "skip_initial_worker_wait" || s.name == "serve_indexer":
			o.Set(s.name, false)
		}
	}
	o.Set("conditional_disagg_policy", "isl_bounding")
	o.Set("conditional_disagg_eff_isl_threshold", profiles.Number("2048"))
	o.Set("conditional_disagg_eff_isl_ratio_threshold", profiles.Number("0.7"))
	return o
}

// routerValue is the JSON value of a flag; nil for an unset one.
func routerValue(v flags.Value) (any, error) {
	if v.Unset || v.Source == flags.FromDefault && v.Flag.Default == "" && v.Flag.Kind != flags.Switch {
		return nil, nil
	}
	if v.Flag.Name == "--router-prefill-load-model" && v.Text == "aic" {
		return "ais", nil
	}
	return jsonValue(v)
}

// kvRouter reads and checks the settings of mode kv: flags, then the preset, then the policy file.
func (r *resolver) kvRouter() (*profiles.Object, error) {
	o := routerDefaults()
	for _, s := range routerSettings {
		if s.flag == "" || !r.v.Get(s.flag).Given() {
			continue
		}
		v := r.v.Get(s.flag)
		if !v.Unset {
			if err := within(v.Spelling, v, s.low, s.high); err != nil {
				return nil, err
			}
		}
		value, err := routerValue(v)
		if err != nil {
			return nil, err
		}
		o.Set(s.name, value)
	}
	if r.v.On("--load-aware") {
		loadAware(o)
	}
	if err := r.conditional(o); err != nil {
		return nil, err
	}
	if path := r.v.Text("--router-policy-config"); path != "" {
		if err := policyFile(o, path); err != nil {
			return nil, fmt.Errorf("--router-policy-config: %w", err)
		}
	}
	return o, checkRouter(o)
}

// loadAware routes by load and knows nothing of caches.
func loadAware(o *profiles.Object) {
	zero := profiles.Number("0.0")
	for name, v := range map[string]any{"overlap_score_credit": zero, "use_kv_events": false, "router_track_active_blocks": true,
		"router_track_prefill_tokens": true, "router_assume_kv_reuse": false, "use_remote_indexer": false,
		"shared_cache_multiplier": zero, "shared_cache_type": "none", "router_predicted_ttl_secs": nil} {
		o.Set(name, v)
	}
}

// policyFile reads the router section of a policy file over the flags.
func policyFile(o *profiles.Object, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := yamlObject(path, data)
	if err != nil {
		return err
	}
	section, _ := file.Get("router")
	if section == nil {
		return nil
	}
	router, ok := section.(*profiles.Object)
	if !ok {
		return fmt.Errorf("%s: router must be a mapping", path)
	}
	for _, key := range router.Keys() {
		i := slices.IndexFunc(routerSettings, func(s routerSetting) bool { return s.name == key })
		if i < 0 {
			return fmt.Errorf("%s: router.%s: no such setting", path, key)
		}
		v, _ := router.Get(key)
		s := routerSettings[i]
		if n, isNumber := v.(json.Number); isNumber {
			if x, err := n.Float64(); err != nil || x < s.low || x > s.high {
				return fmt.Errorf("%s: router.%s: got %s, %s", path, key, n, rangeText(s.low, s.high))
			}
		}
		o.Set(key, v)
	}
	return nil
}

// checkRouter checks rules between settings.
func checkRouter(o *profiles.Object) error {
	get := func(name string) any { v, _ := o.Get(name); return v }
	switch {
	case get("router_tracking_hash") == "keyed-xxh3-v1" && get("router_tracking_key_file") == nil:
		return fmt.Errorf("--router-tracking-key-file (router_tracking_key_file): is required by --router-tracking-hash keyed-xxh3-v1")
	case get("router_predicted_ttl_secs") != nil && get("use_kv_events") != true:
		return fmt.Errorf("--router-predicted-ttl-secs (router_predicted_ttl_secs): needs KV events, --router-kv-events (use_kv_events)")
	case get("router_track_output_blocks") == true && get("router_track_active_blocks") != true:
		return fmt.Errorf("--router-track-output-blocks: needs --router-track-active-blocks")
	}
	return nil
}

// Card returns the router_config of a model card.
func (r *Router) Card() *profiles.Object {
	kv := r.KV
	if kv == nil {
		kv = r.defaults
	}
	o, wire, thresholds := profiles.NewObject(), profiles.NewObject(), profiles.NewObject()
	for _, s := range routerSettings {
		v, _ := kv.Get(s.name)
		usual, _ := r.defaults.Get(s.name)
		switch {
		case s.name == "prefill_load_scale":
			if old, _ := kv.Get("overlap_score_weight"); old != nil {
				v = old
			}
		case s.name == "router_prefill_load_model" && v == "ais":
			v = "aic"
		}
		if s.wire == always || s.wire == changed && v != usual {
			wire.Set(s.name, v)
		}
	}
	for _, name := range []string{"active_decode_blocks_threshold", "active_prefill_tokens_threshold", "active_prefill_tokens_threshold_frac"} {
		if v, _ := r.Common.Get(name); v != nil {
			thresholds.Set(name, v)
		}
	}
	o.Set("router_mode", routerModes[r.Mode])
	o.Set("kv_router_config", wire)
	o.Set("load_threshold_config", thresholds)
	o.Set("enforce_disagg", false)
	for _, name := range []string{"session_affinity_ttl_secs", "session_affinity_mode"} {
		v, _ := r.Common.Get(name)
		o.Set(name, v)
	}
	return o
}
