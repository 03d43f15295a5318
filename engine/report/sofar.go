package report

// SoFar gives limits those figures of an offline run under way that only rise or only fall: counters, numbers of samples,
// least and greatest samples. It is not safe for use while the collector takes something in.
type SoFar struct {
	c      *Offline
	ranges [4]span // of ttft, ttst, tpot, e2e
}

// span is the range of the first samples of a distribution.
type span struct {
	n        int
	min, max float64
}

// SoFar returns a view of the figures that is cheap to look at again and again.
func (c *Offline) SoFar() *SoFar { return &SoFar{c: c} }

// update takes in the samples that are new.
func (s *span) update(x exact) *span {
	for _, v := range x[s.n:] {
		if s.n == 0 || v < s.min {
			s.min = v
		}
		if s.n == 0 || v > s.max {
			s.max = v
		}
		s.n++
	}
	return s
}

// Statistic is that of limits.Source for the statistics min, max and count.
func (v *SoFar) Statistic(metric, statistic string) (value float64, samples uint64) {
	c, r := v.c, span{}
	switch metric {
	case "ttft_ms":
		r = *v.ranges[0].update(c.ttft)
	case "ttst_ms":
		r = *v.ranges[1].update(c.ttst)
	case "tpot_ms":
		r = *v.ranges[2].update(c.tpot)
	case "e2e_latency_ms":
		r = *v.ranges[3].update(c.e2e)
	case "itl_ms":
		r = c.itl.span()
	case "output_token_throughput_per_user":
		r = c.rate.span()
	}
	if statistic == "min" {
		return r.min, uint64(r.n)
	}
	return r.max, uint64(r.n)
}

func (s *sketch) span() span { return span{int(s.n), s.min, s.max} }

// Figure is that of limits.Source for counters.
func (v *SoFar) Figure(name string) (float64, bool) {
	for _, f := range v.c.counters() {
		if f.Name == name {
			return f.Value, true
		}
	}
	return 0, false
}

// Requests is that of limits.Source.
func (v *SoFar) Requests() (completed, all int) { return v.c.ended[Completed], v.c.arrived }

// counters returns the figures that never fall in the course of a run.
func (c *Offline) counters() []Statistic {
	return []Statistic{{"num_requests", float64(c.arrived)}, {"completed_requests", float64(c.ended[Completed])},
		{"rejected_requests", float64(c.ended[Rejected])}, {"total_input_tokens", float64(c.input)},
		{"total_output_tokens", float64(c.output)}, {"processed_tokens", float64(c.input + c.output)},
		{"committed_prefill_tokens", float64(c.committed)}, {"duration_ms", float64(c.duration)},
		{"goodput_completed_requests", float64(c.good)}}
}
