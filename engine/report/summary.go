package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Fleet is what the summary of an offline run says of the workers and the clock.
type Fleet struct {
	PrefillSeconds, DecodeSeconds float64 // worker seconds; an aggregated fleet counts as decode
	PrefillGPUs, DecodeGPUs       int     // of a worker
	WallMS                        float64
	SharedHosts                   []SharedHost
	Agentic                       *Agentic
	Extra                         []Field // at the end
}

// SharedHost is the state of a shared host tier at the end.
type SharedHost struct {
	Capacity int `json:"capacity_blocks"`
	Resident int `json:"resident_blocks"`
	Used     int `json:"used_blocks"`
}

// Field is one member of a summary.
type Field struct {
	Key   string
	Value any
}

// Fields are the members of a JSON object, in order.
type Fields []Field

func (f *Fields) add(key string, value any) { *f = append(*f, Field{key, value}) }

// Get returns the value of a key.
func (f Fields) Get(key string) (any, bool) {
	i := slices.IndexFunc(f, func(x Field) bool { return x.Key == key })
	if i < 0 {
		return nil, false
	}
	return f[i].Value, true
}

// Sorted returns the fields by key.
func (f Fields) Sorted() Fields {
	s := slices.Clone(f)
	slices.SortFunc(s, func(a, b Field) int { return strings.Compare(a.Key, b.Key) })
	return s
}

// MarshalJSON writes the fields as an object in their order. Numbers with a fraction are written so that they read as such.
func (f Fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, x := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(x.Key)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		if v, ok := x.Value.(float64); ok {
			b.WriteString(fraction(v))
			continue
		}
		value, err := json.Marshal(x.Value)
		if err != nil {
			return nil, err
		}
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// fraction writes a float so that it is read as one: 1 becomes 1.0.
func fraction(x float64) string {
	format := byte('f')
	if x != 0 && (x < 1e-5 && x > -1e-5 || x >= 1e16 || x <= -1e16) {
		format = 'e'
	}
	text := strconv.FormatFloat(x, format, -1, 64)
	if !strings.ContainsAny(text, ".en") {
		text += ".0"
	}
	return text
}

// Summary returns the figures of the run, keys and order as in the reference's report.
func (c *Offline) Summary(fleet Fleet) Fields {
	c.flush()
	var f Fields
	f.add("kv_eviction_policy", "lru")
	f.add("committed_prefill_tokens", c.committed)
	if fleet.SharedHosts != nil {
		f.add("g2_domains", fleet.SharedHosts)
	}
	completed, duration := c.ended[Completed], float64(c.duration)
	seconds := max(duration/1000, 1e-9)
	f.add("num_requests", c.arrived)
	f.add("completed_requests", completed)
	f.add("total_input_tokens", c.input)
	f.add("total_output_tokens", c.output)
	f.add("duration_ms", duration)
	f.add("wall_time_ms", fleet.WallMS)
	f.add("request_throughput_rps", float64(completed)/seconds)
	f.add("input_throughput_tok_s", float64(c.input)/seconds)
	f.add("output_throughput_tok_s", float64(c.output)/seconds)
	f.add("total_throughput_tok_s", float64(c.input+c.output)/seconds)
	f.add("prefill_worker_seconds", fleet.PrefillSeconds)
	f.add("decode_worker_seconds", fleet.DecodeSeconds)
	f.add("prefill_gpus_per_worker", fleet.PrefillGPUs)
	f.add("decode_gpus_per_worker", fleet.DecodeGPUs)
	f.add("gpu_hours", (fleet.PrefillSeconds*float64(fleet.PrefillGPUs)+fleet.DecodeSeconds*float64(fleet.DecodeGPUs))/3600)
	if !c.o.Bounds.none() {
		f.add("goodput_completed_requests", c.good)
		f.add("goodput_request_throughput_rps", float64(c.good)/seconds)
		f.add("goodput_output_throughput_tok_s", float64(c.goodOut)/seconds)
	}
	f.add("power_w", nil)
	f.add("power_coverage", nil)
	f.add("processed_tokens", c.input+c.output)
	wall := 0.0
	if fleet.WallMS > 0 {
		wall = 1000 / fleet.WallMS
	}
	f.add("processed_tokens_per_s", float64(c.input+c.output)*wall)
	f.add("processed_output_tokens_per_s", float64(c.output)*wall)
	f.add("prefix_cache_reused_ratio", share(c.reusedMax, c.input))
	f.add("first_admission_prefix_cache_reused_ratio", share(c.reused, c.input))
	c.addLatencies(&f, fleet.Agentic)
	return append(f, fleet.Extra...)
}

func (c *Offline) addLatencies(f *Fields, agentic *Agentic) {
	f.add("num_ttft_samples", len(c.ttft))
	f.add("num_tpot_samples", len(c.tpot))
	f.add("num_e2e_latency_samples", len(c.e2e))
	f.addStatistics("ttft_ms", c.ttft.stats())
	f.addStatistics("ttst_ms", c.ttst.stats())
	f.addStatistics("tpot_ms", c.tpot.stats())
	f.addStatistics("itl_ms", c.itl.stats())
	if agentic != nil {
		agentic.addTo(f)
	}
	f.addStatistics("e2e_latency_ms", c.e2e.stats())
	f.addStatistics("output_token_throughput_per_user", c.rate.stats())
}

func (f *Fields) addStatistics(metric string, d Distribution) {
	for _, s := range d.Statistics() {
		f.add(s.Name+"_"+metric, s.Value)
	}
}

// share is 0 if there is nothing to divide by, as in the reference's report.
func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Metrics returns the distributions of the run with their names.
func (c *Offline) Metrics() []Metric {
	c.flush()
	return []Metric{{"ttft_ms", c.ttft.stats()}, {"ttst_ms", c.ttst.stats()}, {"tpot_ms", c.tpot.stats()}, {"itl_ms", c.itl.stats()},
		{"e2e_latency_ms", c.e2e.stats()}, {"output_token_throughput_per_user", c.rate.stats()}}
}
