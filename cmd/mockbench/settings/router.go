package settings

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/profiles"
)

// Router is the routing that a model card asks for.
type Router struct {
	Mode     string           // flag word
	Common   *profiles.Object // settings of every mode
	KV       *profiles.Object // settings of mode kv under their policy names, nil for other modes
	defaults *profiles.Object // of mode kv
}

// routerSetting is one setting of a router.
type routerSetting struct {
	name string // in a policy file and in the card
	flag string // empty if only a policy file sets it
	bounds
	wire wireRule
}

// bounds are those of a number, both allowed.
type bounds struct{ low, high float64 }

var (
	noNumber = bounds{}
	natural  = bounds{0, math.Inf(1)}
	positive = bounds{1, math.Inf(1)}
	share    = bounds{0, 1}
	year     = bounds{1, 365 * 24 * 3600} // in seconds
)

// check returns an error for a number outside the bounds; name is how it was given.
func (b bounds) check(name, given string, x float64) error {
	switch {
	case !math.IsInf(x, 0) && x >= b.low && x <= b.high:
		return nil
	case math.IsInf(b.high, 1):
		return wrongFlag(name, given, fmt.Sprintf("must be finite and at least %g", b.low))
	}
	return wrongFlag(name, given, fmt.Sprintf("must be between %g and %g", b.low, b.high))
}

// wireRule says when a setting appears in the card.
type wireRule uint8

const (
	always wireRule = iota
	changed
	never
)

// commonSettings are those of every mode.
var commonSettings = []routerSetting{
	{"active_decode_blocks_threshold", "--active-decode-blocks-threshold", share, always},
	{"active_prefill_tokens_threshold", "--active-prefill-tokens-threshold", natural, always},
	{"active_prefill_tokens_threshold_frac", "--active-prefill-tokens-threshold-frac", natural, always},
	{"session_affinity_ttl_secs", "--router-session-affinity-ttl-secs", year, always},
	{"session_affinity_mode", "--router-session-affinity-mode", noNumber, always},
}

// routerSettings are those of mode kv in the order of the card.
var routerSettings = []routerSetting{
	{"overlap_score_weight", "--router-kv-overlap-score-weight", natural, never},
	{"overlap_score_credit", "--router-kv-overlap-score-credit", natural, always},
	{"overlap_score_credit_decay", "--router-kv-overlap-score-credit-decay", natural, always},
	{"prefill_load_scale", "--router-prefill-load-scale", natural, always},
	{"decode_active_request_weight", "--router-decode-active-request-weight", natural, changed},
	{"host_cache_hit_weight", "--router-host-cache-hit-weight", share, always},
	{"disk_cache_hit_weight", "--router-disk-cache-hit-weight", share, always},
	{"router_temperature", "--router-temperature", natural, always},
	{"use_kv_events", "--router-kv-events", noNumber, always},
	{"router_replica_sync", "--router-replica-sync", noNumber, always},
	{"router_track_active_blocks", "--router-track-active-blocks", noNumber, always},
	{"router_track_output_blocks", "--router-track-output-blocks", noNumber, always},
	{"router_assume_kv_reuse", "--router-assume-kv-reuse", noNumber, always},
	{"router_track_prefill_tokens", "--router-track-prefill-tokens", noNumber, always},
	{"router_tracking_hash", "--router-tracking-hash", noNumber, changed},
	{"router_tracking_key_file", "--router-tracking-key-file", noNumber, changed},
	{"router_tracking_key_id", "--router-tracking-key-id", noNumber, changed},
	{"router_prefill_load_model", "--router-prefill-load-model", noNumber, always},
	{"router_ttl_secs", "--router-ttl-secs", natural, always},
	{"router_approximate_cache_policy", "--router-approximate-cache-policy", noNumber, never},
	{"router_queue_threshold", "--router-queue-threshold", natural, always},
	{"router_policy_config", "--router-policy-config", noNumber, always},
	{"router_event_threads", "--router-event-threads", positive, always},
	{"skip_initial_worker_wait", "", noNumber, always},
	{"router_queue_policy", "--router-queue-policy", noNumber, always},
	{"use_remote_indexer", "--use-remote-indexer", noNumber, always},
	{"serve_indexer", "", noNumber, always},
	{"enable_session_prefix_index", "--enable-session-prefix-index", noNumber, changed},
	{"shared_cache_multiplier", "--shared-cache-multiplier", share, changed},
	{"shared_cache_type", "--shared-cache-type", noNumber, always},
	{"router_predicted_ttl_secs", "--router-predicted-ttl-secs", natural, always},
	{"router_prefill_policy", "--router-prefill-policy", noNumber, never},
	{"router_decode_policy", "--router-decode-policy", noNumber, never},
	{"conditional_disagg_enabled", "--router-conditional-disagg", noNumber, changed},
	{"conditional_disagg_policy", "", noNumber, changed},
	{"conditional_disagg_eff_isl_threshold", "", natural, changed},
	{"conditional_disagg_eff_isl_ratio_threshold", "", natural, changed},
	{"conditional_disagg_prefill_busy_threshold", "", natural, changed},
	{"conditional_disagg_decode_busy_threshold", "", natural, changed},
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
		return wrongWord(mode.Spelling, mode.Text, mode.Flag.Allowed)
	}
	common := routerDefaults(commonSettings)
	if err := r.routerFlags(common, commonSettings); err != nil {
		return err
	}
	r.s.Origins["--router-mode"] = Origin(mode)
	r.s.Router = &Router{Mode: mode.Text, Common: common, defaults: kvDefaults()}
	if mode.Text != "kv" {
		return nil
	}
	kv := kvDefaults()
	r.s.Router.KV = kv
	return r.kvRouter(kv)
}

// routerFlags stores the settings that were given, after a look at their range.
func (r *resolver) routerFlags(o *profiles.Object, settings []routerSetting) error {
	for _, s := range settings {
		if s.flag == "" || !r.v.Get(s.flag).Given() {
			continue
		}
		v := r.v.Get(s.flag)
		if x, isNumber := v.Number(); isNumber {
			if err := s.check(v.Spelling, v.Text, x); err != nil {
				return err
			}
		}
		value, err := routerValue(v)
		if err != nil {
			return err
		}
		r.setRouter(o, s.name, value, Origin(v))
	}
	return nil
}

// setRouter stores a setting of the router and where it comes from.
func (r *resolver) setRouter(o *profiles.Object, name string, value any, from string) {
	o.Set(name, value)
	r.s.Origins["router."+name] = from
}

// routerDefaults returns the settings that nobody touched.
func routerDefaults(settings []routerSetting) *profiles.Object {
	o := profiles.NewObject()
	for _, s := range settings {
		o.Set(s.name, nil)
		if s.flag == "" {
			continue
		}
		if v, err := routerValue(flags.Default(s.flag)); err == nil {
			o.Set(s.name, v)
		}
	}
	return o
}

// kvDefaults returns those of mode kv; some have no flag.
func kvDefaults() *profiles.Object {
	o := routerDefaults(routerSettings)
	o.Set("skip_initial_worker_wait", false)
	o.Set("serve_indexer", false)
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
func (r *resolver) kvRouter(o *profiles.Object) error {
	if err := r.routerFlags(o, routerSettings); err != nil {
		return err
	}
	if r.v.On("--load-aware") {
		r.loadAware(o)
	}
	if err := r.conditional(o); err != nil {
		return err
	}
	if path := r.v.Text("--router-policy-config"); path != "" {
		if err := r.policyFile(o, path); err != nil {
			return fmt.Errorf("--router-policy-config: %w", err)
		}
	}
	return checkRouter(o)
}

// loadAware routes by load and knows nothing of caches.
func (r *resolver) loadAware(o *profiles.Object) {
	zero := profiles.Number("0.0")
	for name, v := range map[string]any{"overlap_score_credit": zero, "use_kv_events": false, "router_track_active_blocks": true,
		"router_track_prefill_tokens": true, "router_assume_kv_reuse": false, "use_remote_indexer": false,
		"shared_cache_multiplier": zero, "shared_cache_type": "none", "router_predicted_ttl_secs": nil} {
		r.setRouter(o, name, v, Origin(r.v.Get("--load-aware")))
	}
}

// policyFile reads the router section of a policy file over the flags.
func (r *resolver) policyFile(o *profiles.Object, path string) error {
	data, err := profiles.ReadFile(path)
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
			return fmt.Errorf("%s: %w", path, &engine.SettingError{Setting: "router." + key, Kind: engine.KindUnknown, Allowed: "no such setting"})
		}
		v, _ := router.Get(key)
		if n, isNumber := v.(json.Number); isNumber {
			x, err := n.Float64()
			if err == nil {
				err = routerSettings[i].check("router."+key, n.String(), x)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		r.setRouter(o, key, v, "--router-policy-config "+path)
	}
	return nil
}

// checkRouter checks rules between settings.
func checkRouter(o *profiles.Object) error {
	get := func(name string) any { v, _ := o.Get(name); return v }
	switch {
	case get("router_tracking_hash") == "keyed-xxh3-v1" && get("router_tracking_key_file") == nil:
		return needs("--router-tracking-hash (router_tracking_hash)", "--router-tracking-key-file (router_tracking_key_file) with keyed-xxh3-v1")
	case get("router_predicted_ttl_secs") != nil && get("use_kv_events") != true:
		return needs("--router-predicted-ttl-secs (router_predicted_ttl_secs)", "KV events, --router-kv-events (use_kv_events)")
	case get("router_track_output_blocks") == true && get("router_track_active_blocks") != true:
		return needs("--router-track-output-blocks", "--router-track-active-blocks")
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
	for _, c := range commonSettings {
		if v, _ := r.Common.Get(c.name); v != nil && strings.HasPrefix(c.name, "active_") {
			thresholds.Set(c.name, v)
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
