package knobs

import (
	"fmt"
	"strconv"

	"mockbench/engine"
	"mockbench/engine/router"
	"mockbench/engine/workload"
)

// When says when a change comes into force.
type When uint8

const (
	AtOnce   When = iota
	NextPass      // of each worker
	Restart       // with another engine: caches are lost
)

func (w When) String() string { return [...]string{"at once", "next pass", "restart"}[w] }

// Group is a heading in the list.
type Group string

// The groups, in order.
const (
	Scheduler Group = "scheduler"
	KV        Group = "KV"
	Timing    Group = "timing"
	Router    Group = "router"
	Load      Group = "load"
	Limits    Group = "SLO"
)

// Knob is one setting. Knobs are constant: the values are in a Setup.
type Knob struct {
	Group   Group
	Setting string // as errors name it
	Name    string // as the list shows it
	Unit    string
	When    When
	at      func(s *Setup) value
	has     func(s *Setup) bool // nil: always there
}

// Text returns the value in a setup.
func (k *Knob) Text(s Setup) string { return k.at(&s).text() }

// Set returns the setup with another value, given as a text. The error is a *engine.SettingError.
func (k *Knob) Set(s Setup, text string) (Setup, error) {
	if allowed := k.at(&s).set(text); allowed != "" {
		return s, &engine.SettingError{Setting: k.Setting, Kind: engine.KindType, Given: fmt.Sprintf("%q", text), Allowed: allowed}
	}
	return s, s.validate()
}

// Step returns the text of the next or previous value. It may be one that Set refuses.
func (k *Knob) Step(s Setup, up bool) string {
	v := k.at(&s)
	v.step(up)
	return v.text()
}

// All returns all knobs there are, those that a setup does not have included.
func All() []*Knob {
	list := make([]*Knob, len(all))
	for i := range all {
		list[i] = &all[i]
	}
	return list
}

// notes say what values mean, by setting.
var notes = map[string]string{
	"engine.aic_nextn":                           "draft tokens cost nothing in the model of time",
	"engine.native_host_offload.num_host_blocks": "needs kv_cache_bytes_per_token",
	"engine.timing_model.type":                   "polynomial: a decode pass takes as long for one request as for many",
	"engine.prefill_schedule_interval":           "of several ranks: passes of the group from one prefill to the next",
	"workload.rate":                              "arrivals at random; without it concurrency or sessions count",
	"workload.concurrency":                       "in flight at any time, if there is no rate",
	"workload.sessions":                          "conversations in flight or thinking, if there is no rate and no concurrency",
	"workload.burst":                             "so many arrive together, at the same rate",
	"workload.max_in_flight":                     "arrivals beyond are dropped",
	"workload.prefix_share":                      "of the conversations that begin with a shared prefix",
	"slo.itl_ms":                                 "goodput compares the mean of a request",
	"workload.turns":                             "most turns of a conversation",
	"router.router_temperature":                  "0: always the lowest cost",
}

// Note says what the values of a knob mean, where its name does not.
func (k *Knob) Note() string { return notes[k.Setting] }

// List returns the knobs that a setup has, group by group.
func List(s Setup) []*Knob {
	var list []*Knob
	for i := range all {
		if k := &all[i]; k.has == nil || k.has(&s) {
			list = append(list, k)
		}
	}
	return list
}

func onVLLM(s *Setup) bool    { return s.Engine.Backend == engine.VLLM }
func onSGLang(s *Setup) bool  { return s.Engine.Backend == engine.SGLang }
func offSGLang(s *Setup) bool { return !onSGLang(s) }
func hasHost(s *Setup) bool   { return s.Engine.HostOffload != nil }
func isFixed(s *Setup) bool   { return s.Engine.Timing.Type == "fixed" }
func hasRouter(s *Setup) bool { return s.HasRouter }
func hasLoad(s *Setup) bool   { return s.HasLoad }
func hasSLO(s *Setup) bool    { return s.HasSLO }

// onCost reports whether the router weighs costs, and so whether its weights matter.
func onCost(s *Setup) bool { return s.HasRouter && s.Policy == router.KV }

// all is the table of the knobs. What stands in a model card for good, where frontends look, is there only without one.
// It is never written to.
var all = [...]Knob{
	eng(Scheduler, "max_num_seqs", "requests", NextPass, nil, func(c *engine.Config) value { return limit(&c.MaxNumSeqs) }),
	eng(Scheduler, "max_num_batched_tokens", "tokens", NextPass, offSGLang, func(c *engine.Config) value { return limit(&c.MaxNumBatchedTokens) }),
	eng(Scheduler, "enable_chunked_prefill", "", NextPass, offSGLang, func(c *engine.Config) value { return toggle(&c.EnableChunkedPrefill) }),
	eng(Scheduler, "prefill_schedule_interval", "passes", NextPass, onVLLM, func(c *engine.Config) value { return integer(&c.PrefillScheduleInterval) }),
	eng(Scheduler, "preemption_mode", "", NextPass, onVLLM, func(c *engine.Config) value { return word(&c.PreemptionMode, engine.LIFO, engine.FIFO) }),
	eng(Scheduler, "sglang.schedule_policy", "", NextPass, onSGLang, func(c *engine.Config) value { return word(&c.SGLang.SchedulePolicy, "fifo", "lpm") }),
	eng(Scheduler, "sglang.max_prefill_tokens", "tokens", NextPass, onSGLang, func(c *engine.Config) value { return integer(&c.SGLang.MaxPrefillTokens) }),
	eng(Scheduler, "sglang.chunked_prefill_size", "tokens", NextPass, onSGLang, func(c *engine.Config) value { return integer(&c.SGLang.ChunkedPrefillSize) }),
	eng(Scheduler, "sglang.clip_max_new_tokens", "tokens", NextPass, onSGLang, func(c *engine.Config) value { return integer(&c.SGLang.ClipMaxNewTokens) }),
	eng(Scheduler, "sglang.schedule_conservativeness", "", NextPass, onSGLang, func(c *engine.Config) value { return number(&c.SGLang.ScheduleConservativeness) }),
	eng(Scheduler, "prefill_decode_interval", "passes", NextPass, onSGLang, func(c *engine.Config) value { return integer(&c.PrefillDecodeInterval) }),
	eng(Scheduler, "aic_nextn", "drafts", Restart, nil, func(c *engine.Config) value { return orZero(integer(&c.Nextn), none) }),
	eng(Scheduler, "aic_nextn_accept_rates", "", Restart, func(s *Setup) bool { return s.Engine.Nextn > 0 }, func(c *engine.Config) value { return sentence(&c.NextnAcceptRates) }),

	eng(KV, "num_gpu_blocks", "blocks", Restart, nil, func(c *engine.Config) value { return integer(&c.NumGPUBlocks) }),
	eng(KV, "block_size", "tokens", Restart, hasLoad, func(c *engine.Config) value { return doubling(&c.BlockSize) }),
	eng(KV, "max_model_len", "tokens", Restart, hasLoad, func(c *engine.Config) value { return orZero(integer(&c.MaxModelLen), unlimited) }),
	eng(KV, "enable_prefix_caching", "", Restart, nil, func(c *engine.Config) value { return caching(c) }),
	{Group: KV, Setting: "engine.native_host_offload.num_host_blocks", Name: "num_host_blocks", Unit: "blocks", When: Restart, at: hostBlocks, has: onVLLM},
	eng(KV, "kv_cache_bytes_per_token", "bytes", Restart, onVLLM, func(c *engine.Config) value { return orZero(integer(&c.KVCacheBytesPerToken), none) }),
	host("d2h_bandwidth_gbps", "GB/s", func(h *engine.HostOffload) value { return orZero(number(&h.D2HBandwidthGBps), unlimited) }),
	host("h2d_bandwidth_gbps", "GB/s", func(h *engine.HostOffload) value { return orZero(number(&h.H2DBandwidthGBps), unlimited) }),
	host("latency_to_first_byte_ms", "ms", func(h *engine.HostOffload) value { return number(&h.LatencyMS) }),

	eng(Timing, "speedup_ratio", "", NextPass, nil, func(c *engine.Config) value { return number(&c.SpeedupRatio) }),
	eng(Timing, "decode_speedup_ratio", "", NextPass, nil, func(c *engine.Config) value { return number(&c.DecodeSpeedupRatio) }),
	eng(Timing, "timing_model.type", "", NextPass, nil, func(c *engine.Config) value {
		words := []string{"polynomial", "fixed"}
		if c.Timing.Type != "polynomial" && c.Timing.Type != "fixed" {
			words = append(words, c.Timing.Type)
		}
		return word(&c.Timing.Type, words...)
	}),
	eng(Timing, "timing_model.prefill_ms", "ms", NextPass, isFixed, func(c *engine.Config) value { return number(&c.Timing.PrefillMS) }),
	eng(Timing, "timing_model.decode_ms", "ms", NextPass, isFixed, func(c *engine.Config) value { return number(&c.Timing.DecodeMS) }),

	{Group: Router, Setting: "router.policy", Name: "policy", has: hasRouter, at: func(s *Setup) value { return word(&s.Policy, router.Policies()...) }},
	weight("overlap_score_credit", "blocks", func(m *router.Model) value { return number(&m.OverlapCredit) }),
	weight("overlap_score_credit_decay", "", func(m *router.Model) value { return number(&m.OverlapCreditDecay) }),
	weight("prefill_load_scale", "", func(m *router.Model) value { return number(&m.PrefillScale) }),
	weight("decode_active_request_weight", "blocks", func(m *router.Model) value { return number(&m.ActiveRequestWeight) }),
	weight("host_cache_hit_weight", "", func(m *router.Model) value { return share(&m.HostWeight) }),
	weight("router_temperature", "", func(m *router.Model) value { return number(&m.Temperature) }),
	weight("router_track_prefill_tokens", "", func(m *router.Model) value { return toggle(&m.TrackPrefill) }),

	load("rate", "requests/s", func(s *Setup) value { return orZero(number(&s.Load.Rate), none) }),
	load("concurrency", "requests", func(s *Setup) value { return orZero(integer(&s.Load.Concurrency), none) }),
	load("sessions", "sessions", func(s *Setup) value { return orZero(integer(&s.Load.Sessions), none) }),
	load("burst", "requests", func(s *Setup) value { return orZero(integer(&s.Load.Burst), "1") }),
	load("max_in_flight", "requests", func(s *Setup) value {
		return orZero(integer(&s.Load.MaxInFlight), strconv.Itoa(workload.DefaultMaxInFlight))
	}),
	load("prompt_mean", "tokens", func(s *Setup) value { return integer(&s.Load.PromptMean) }),
	load("prompt_spread", "tokens", func(s *Setup) value { return integer(&s.Load.PromptSpread) }),
	load("output_mean", "tokens", func(s *Setup) value { return integer(&s.Load.OutputMean) }),
	load("output_spread", "tokens", func(s *Setup) value { return integer(&s.Load.OutputSpread) }),
	load("prefix_share", "", func(s *Setup) value { return share(&s.Load.PrefixShare) }),
	load("prefix_count", "prefixes", func(s *Setup) value { return integer(&s.Load.PrefixCount) }),
	load("prefix_length", "tokens", func(s *Setup) value { return integer(&s.Load.PrefixLength) }),
	load("turns", "turns", func(s *Setup) value { return orZero(integer(&s.Load.Turns), "1") }),
	load("think_time", "ms", func(s *Setup) value { return number(&s.Load.ThinkTime) }),
	load("max_prompt", "tokens", func(s *Setup) value {
		return orZero(integer(&s.Load.MaxPrompt), strconv.Itoa(workload.DefaultMaxPrompt))
	}),

	slo("ttft_ms", func(l *SLO) *float64 { return &l.TTFT }),
	slo("itl_ms", func(l *SLO) *float64 { return &l.ITL }),
	slo("e2e_ms", func(l *SLO) *float64 { return &l.E2E }),
}

// caching switches prefix caching, and with it the KV events.
func caching(c *engine.Config) value {
	v := toggle(&c.EnablePrefixCaching)
	follow := func() { c.EmitKVEvents = c.EmitKVEvents || c.EnablePrefixCaching && c.Role != engine.DecodeRole }
	set, step := v.set, v.step
	v.set = func(text string) string { defer follow(); return set(text) }
	v.step = func(up bool) { step(up); follow() }
	return v
}

func eng(g Group, name, unit string, when When, has func(*Setup) bool, at func(*engine.Config) value) Knob {
	return Knob{Group: g, Setting: "engine." + name, Name: name, Unit: unit, When: when, has: has,
		at: func(s *Setup) value { return at(&s.Engine) }}
}

func host(name, unit string, at func(*engine.HostOffload) value) Knob {
	return Knob{Group: KV, Setting: "engine.native_host_offload." + name, Name: name, Unit: unit, When: Restart, has: hasHost,
		at: func(s *Setup) value { return at(s.host()) }}
}

// hostBlocks is the size of the host tier; 0 is none.
func hostBlocks(s *Setup) value {
	n := 0
	if s.Engine.HostOffload != nil {
		n = s.Engine.HostOffload.NumHostBlocks
	}
	v := orZero(integer(&n), none)
	keep := func() {
		if n == 0 {
			s.Engine.HostOffload = nil
		} else {
			s.host().NumHostBlocks = n
		}
	}
	set, step := v.set, v.step
	v.set = func(text string) string {
		allowed := set(text)
		if allowed == "" {
			keep()
		}
		return allowed
	}
	v.step = func(up bool) { step(up); keep() }
	return v
}

func weight(name, unit string, at func(*router.Model) value) Knob {
	return Knob{Group: Router, Setting: "router." + name, Name: name, Unit: unit, has: onCost,
		at: func(s *Setup) value { return at(&s.Model) }}
}

func load(name, unit string, at func(*Setup) value) Knob {
	return Knob{Group: Load, Setting: "workload." + name, Name: name, Unit: unit, has: hasLoad, at: at}
}

func slo(name string, at func(*SLO) *float64) Knob {
	return Knob{Group: Limits, Setting: "slo." + name, Name: name, Unit: "ms", has: hasSLO,
		at: func(s *Setup) value { return orZero(number(at(&s.SLO)), none) }}
}
