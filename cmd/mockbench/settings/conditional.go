package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/profiles"
)

const conditionalConfig = "--router-conditional-disagg-config"

// conditionalKeys are the keys of the JSON of that flag.
var conditionalKeys = []string{"policy", "eff_isl_threshold", "eff_isl_ratio_threshold", "prefill_busy_threshold", "decode_busy_threshold"}

// checkConditional checks the shape of the JSON whatever the router mode.
func (r *resolver) checkConditional() error {
	v := r.v.Get(conditionalConfig)
	if !v.Given() {
		return nil
	}
	bad := func(kind flags.UsageKind, format string, args ...any) error {
		return &flags.UsageError{Text: v.Spelling + ": " + fmt.Sprintf(format, args...), Kind: kind}
	}
	o, err := profiles.ParseJSON("the value", []byte(v.Text))
	if err != nil {
		return bad(flags.WrongType, "%v", err)
	}
	for _, key := range o.Keys() {
		value, _ := o.Get(key)
		n, isNumber := value.(json.Number)
		switch {
		case !slices.Contains(conditionalKeys, key):
			return bad(flags.UnknownField, "%q: no such setting, known are %s", key, strings.Join(conditionalKeys, ", "))
		case key == "policy":
			if _, ok := value.(string); !ok {
				return bad(flags.WrongType, "policy: must be text")
			}
		case key == "eff_isl_threshold" && (!isNumber || strings.ContainsAny(n.String(), ".eE")):
			return bad(flags.WrongType, "eff_isl_threshold: must be a whole number")
		case !isNumber && (value != nil || !strings.HasSuffix(key, "busy_threshold")):
			return bad(flags.WrongType, "%s: must be a number", key)
		}
	}
	return nil
}

// conditional reads the JSON into the settings of mode kv.
func (r *resolver) conditional(kv *profiles.Object) error {
	v, on := r.v.Get(conditionalConfig), r.v.On("--router-conditional-disagg")
	if v.Given() && !on {
		return needs(v.Spelling, "--router-conditional-disagg")
	}
	if !on {
		return nil
	}
	if v.Given() {
		o, err := profiles.ParseJSON(v.Spelling, []byte(v.Text))
		if err != nil {
			return err
		}
		for _, key := range o.Keys() {
			value, _ := o.Get(key)
			r.setRouter(kv, "conditional_disagg_"+key, value, Origin(v))
		}
	}
	policy, _ := kv.Get("conditional_disagg_policy")
	switch policy {
	case "isl_bounding":
		return nil
	case "prefill_load", "isl_or_load":
	default:
		return &engine.SettingError{Setting: "conditional_disagg_policy", Kind: engine.KindUnknown, Given: fmt.Sprintf("%q", policy),
			Allowed: "allowed: isl_bounding, prefill_load, isl_or_load"}
	}
	if busy, _ := kv.Get("conditional_disagg_prefill_busy_threshold"); busy == nil {
		queue, _ := kv.Get("router_queue_threshold")
		if queue == nil {
			return needs(conditionalConfig, "prefill_busy_threshold or --router-queue-threshold with policy %s", policy)
		}
		kv.Set("conditional_disagg_prefill_busy_threshold", queue)
	}
	return nil
}
