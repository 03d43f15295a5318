package flags

import "strings"

const policy = " in the default policy parameters in --router-policy-config"

// routerFlags fill the router settings that workers advertise. Each has a variable DYN_ + its name in capitals, unless it
// names others.
var routerFlags = []*Flag{
	{Name: "--router-mode", Kind: String, Arg: "MODE", Group: GroupRouter, Env: env("ROUTER_MODE"),
		Allowed: []string{"round-robin", "random", "power-of-two", "kv", "direct", "least-loaded", "device-aware-weighted"},
		Help:    "Routing that the model card asks for; without it the frontend decides and the flags below have no effect."},
	routerInt("--router-session-affinity-ttl-secs", "SECONDS", "How long a session stays with its worker."),
	routerWord("--router-session-affinity-mode", "hard", "How strictly a session stays with its worker.", "hard", "soft"),
	nullable(routerFloat("--active-decode-blocks-threshold", "FRACTION", "", "Share of active blocks above which a worker is busy, 0 to 1.")),
	nullable(routerInt("--active-prefill-tokens-threshold", "N", "Prefill tokens above which a worker is busy.")),
	nullable(routerFloat("--active-prefill-tokens-threshold-frac", "X", "", "The same as a share of the token budget.")),
	deprecated(routerSwitch("--load-aware", "off", "ROUTER_LOAD_AWARE", "Route by load alone."),
		"the load-only policy and router tracking settings in --router-policy-config"),
	deprecated(routerFloat("--router-kv-overlap-score-credit", "X", "1.0", "Credit for cached blocks."), "overlap_score_credit"+policy),
	deprecated(routerFloat("--router-kv-overlap-score-credit-decay", "X", "0.0", "Decay of that credit."), "overlap_score_credit_decay"+policy),
	overlapWeight(),
	deprecated(routerFloat("--router-prefill-load-scale", "X", "1.0", "Weight of prefill load."), "prefill_load_scale"+policy),
	deprecated(routerFloat("--router-decode-active-request-weight", "X", "0.0", "Weight of running decodes."), "decode_active_request_weight"+policy),
	routerFloat("--router-host-cache-hit-weight", "X", "0.75", "Value of a hit in host memory, 0 to 1."),
	routerFloat("--router-disk-cache-hit-weight", "X", "0.25", "Value of a hit on disk, 0 to 1."),
	deprecated(routerFloat("--router-temperature", "X", "0.0", "Randomness of the choice."), "router_temperature"+policy),
	alias(routerSwitch("--router-kv-events", "on", "ROUTER_USE_KV_EVENTS", "Follow KV events."), "kv-events"),
	routerSwitch("--router-replica-sync", "off", "ROUTER_REPLICA_SYNC", "Keep router replicas in step."),
	alias(routerSwitch("--router-track-active-blocks", "on", "ROUTER_TRACK_ACTIVE_BLOCKS", "Count blocks of running requests."), "track-active-blocks"),
	alias(routerSwitch("--router-track-output-blocks", "off", "ROUTER_TRACK_OUTPUT_BLOCKS", "Count blocks of output."), "track-output-blocks"),
	alias(routerSwitch("--router-assume-kv-reuse", "on", "ROUTER_ASSUME_KV_REUSE", "Expect cached blocks to be reused."), "assume-kv-reuse"),
	routerSwitch("--router-track-prefill-tokens", "on", "ROUTER_TRACK_PREFILL_TOKENS", "Count prefill tokens."),
	routerWord("--router-tracking-hash", "public-xxh3-v1", "Hash of tracked blocks.", "public-xxh3-v1", "keyed-xxh3-v1"),
	routerText("--router-tracking-key-file", "FILE", "Key of the keyed hash."),
	routerText("--router-tracking-key-id", "ID", "Name of that key."),
	routerWord("--router-prefill-load-model", "none", "Model of prefill load; aic is an older word for ais.", "none", "ais", "aic"),
	routerFloat("--router-ttl-secs", "SECONDS", "120.0", "Life of predicted blocks."),
	routerWord("--router-approximate-cache-policy", "ttl", "How predicted blocks age.", "ttl", "lru"),
	deprecated(nullable(routerFloat("--router-queue-threshold", "X", "", "Load above which requests queue in the router.")),
		"policy_classes[].prefill_busy_threshold_frac in --router-policy-config"),
	routerText("--router-policy-config", "FILE", "Policy file (YAML)."),
	routerSwitch("--router-conditional-disagg", "off", "ROUTER_CONDITIONAL_DISAGG", "Decide per request whether to disaggregate."),
	routerText("--router-conditional-disagg-config", "JSON", "Settings of that decision."),
	deprecated(routerText("--router-prefill-policy", "NAME", "Selection policy of prefill workers."), "worker_selection.prefill in --router-policy-config"),
	deprecated(routerText("--router-decode-policy", "NAME", "Selection policy of decode workers."), "worker_selection.decode in --router-policy-config"),
	threads(),
	deprecated(routerWord("--router-queue-policy", "fcfs", "Order of the router's queue.", "fcfs", "wspt"), "policy_classes[].queue_policy in --router-policy-config"),
	routerSwitch("--use-remote-indexer", "off", "USE_REMOTE_INDEXER", "Ask a remote indexer."),
	routerSwitch("--enable-session-prefix-index", "off", "ENABLE_SESSION_PREFIX_INDEX", "Index prefixes by session."),
	deprecated(routerFloat("--shared-cache-multiplier", "X", "", "Value of a hit in a shared cache, 0 to 1."), "shared_cache_multiplier"+policy),
	routerWord("--shared-cache-type", "none", "Kind of shared cache.", "none", "hicache"),
	routerFloat("--router-predicted-ttl-secs", "SECONDS", "", "Life of predictions; needs KV events."),
}

func env(names ...string) []string {
	for i, n := range names {
		names[i] = "DYN_" + n
	}
	return names
}

func router(name string, kind Kind, arg, def, help string) *Flag {
	variable := strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(name, "--"), "-", "_"))
	return &Flag{Name: name, Kind: kind, Arg: arg, Default: def, Env: env(variable), Group: GroupRouter, Help: help}
}

func routerInt(name, arg, help string) *Flag        { return router(name, Int, arg, "", help) }
func routerFloat(name, arg, def, help string) *Flag { return router(name, Float, arg, def, help) }
func routerText(name, arg, help string) *Flag       { return router(name, String, arg, "", help) }

func routerWord(name, def, help string, allowed ...string) *Flag {
	f := router(name, String, "WORD", def, help)
	f.Allowed = allowed
	return f
}

func routerSwitch(name, def, variable, help string) *Flag {
	return &Flag{Name: name, Off: []string{"--no-" + name[2:]}, Default: def, Env: env(variable), Group: GroupRouter, Help: help}
}

func alias(f *Flag, name string) *Flag {
	f.Aliases, f.Off = append(f.Aliases, "--"+name), append(f.Off, "--no-"+name)
	return f
}

func nullable(f *Flag) *Flag {
	f.Null = true
	return f
}

func deprecated(f *Flag, replacement string) *Flag {
	f.ReplacedBy, f.Until = replacement, "v1.7"
	return f
}

func threads() *Flag {
	f := routerInt("--router-event-threads", "N", "Threads that follow events.")
	f.Default = "4"
	return f
}

// overlapWeight is the old name of the prefill load scale.
func overlapWeight() *Flag {
	f := deprecated(routerFloat("--router-kv-overlap-score-weight", "X", "", "Old name of --router-prefill-load-scale."), "prefill_load_scale"+policy)
	f.Aliases, f.Hidden = []string{"--kv-overlap-score-weight"}, true
	f.Env = env("ROUTER_KV_OVERLAP_SCORE_WEIGHT", "OVERLAP_SCORE_WEIGHT")
	return f
}
