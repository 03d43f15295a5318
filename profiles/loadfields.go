package profiles

import (
	"mockbench/engine/report"
	"mockbench/engine/router"
)

// setting is one setting of a table of a profile: how it is read, and its value.
type setting struct {
	name  string
	field field
	value any
}

func wholeSetting(name string, n *int, low uint64) setting {
	return setting{name, integer(n, low, maxInt), number(*n)}
}

func realSetting(name string, x *float64) setting { return setting{name, float(x), decimal(*x)} }

// settings are the settings of a load, in the order in which they are written.
func (l *Load) settings() []setting {
	return []setting{
		realSetting("rate", &l.Rate), wholeSetting("burst", &l.Burst, 0), wholeSetting("concurrency", &l.Concurrency, 0),
		wholeSetting("sessions", &l.Sessions, 0), wholeSetting("max_in_flight", &l.MaxInFlight, 0),
		wholeSetting("prompt_mean", &l.PromptMean, 1), wholeSetting("prompt_spread", &l.PromptSpread, 0),
		wholeSetting("output_mean", &l.OutputMean, 1), wholeSetting("output_spread", &l.OutputSpread, 0),
		wholeSetting("prefix_count", &l.PrefixCount, 0), wholeSetting("prefix_length", &l.PrefixLength, 0),
		realSetting("prefix_share", &l.PrefixShare),
		wholeSetting("turns", &l.Turns, 0), realSetting("think_time", &l.ThinkTime), wholeSetting("max_prompt", &l.MaxPrompt, 0),
		{"routing", word(&l.Routing, router.Policies()...), string(l.Routing)},
	}
}

// routerSettings are the weights of a router, under the names of the reference's configuration.
func routerSettings(m *router.Model) []setting {
	return []setting{
		realSetting("overlap_score_credit", &m.OverlapCredit), realSetting("overlap_score_credit_decay", &m.OverlapCreditDecay),
		realSetting("prefill_load_scale", &m.PrefillScale),
		realSetting("decode_active_request_weight", &m.ActiveRequestWeight),
		realSetting("host_cache_hit_weight", &m.HostWeight), realSetting("disk_cache_hit_weight", &m.DiskWeight),
		realSetting("router_temperature", &m.Temperature),
		{"router_track_prefill_tokens", boolean(&m.TrackPrefill), m.TrackPrefill},
	}
}

func sloSettings(l *report.Limits) []setting {
	return []setting{realSetting("ttft_ms", &l.TTFT), realSetting("itl_ms", &l.ITL), realSetting("e2e_ms", &l.E2E)}
}

func fieldsOf(list []setting) fields {
	f := fields{}
	for _, s := range list {
		f[s.name] = s.field
	}
	return f
}

// different returns the settings that are not as usual.
func different(list, usual []setting) *Object {
	o := NewObject()
	for i, s := range list {
		if s.value != usual[i].value {
			o.Set(s.name, s.value)
		}
	}
	return o
}

func (l *Load) fields() fields {
	f := fieldsOf(l.settings())
	f["router"] = object(fieldsOf(routerSettings(&l.Router)))
	return f
}

// Object returns the settings of the load that are not those of DefaultLoad.
func (l *Load) Object() *Object {
	d := DefaultLoad()
	o := different(l.settings(), d.settings())
	if l.Router != d.Router {
		o.Set("router", different(routerSettings(&l.Router), routerSettings(&d.Router)))
	}
	return o
}

// sloField reads limits of latencies into the profile.
func (p *Profile) sloField() field {
	table := object(fieldsOf(sloSettings(&p.SLO)))
	return table.reading(func(path string, v any) error {
		if err := table.read(path, v); err != nil {
			return err
		}
		return p.SLO.Validate()
	})
}
