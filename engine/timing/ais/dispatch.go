package ais

import "mockbench/engine"

// dispatch is the communication before and after the experts: tokens go to the ranks of their experts and come back.
func (s *pass) dispatch(name string, tokens int, before bool) {
	total := latency{}
	var err error
	s.p.dispatched(tokens*s.p.model.Hidden, before, func(l latency, e error) {
		if err == nil {
			err = e
		}
		total.ms += l.ms
		total.from = max(total.from, l.from)
	})
	s.add(name, total, err, s.p.model.Layers)
}

// dispatched hands every collective operation of a dispatch to step. elements are those of one attention rank.
func (p *Predictor) dispatched(elements int, before bool, step func(latency, error)) {
	t, dp, g := p.tables, p.parallel.AttentionDP, p.parallel.ranks()
	width := g / dp // ranks that share the attention of a token
	exchange := func() {
		if before {
			step(t.collective("all_gather", p.packed(elements*dp), g))
		} else {
			step(t.collective("reduce_scatter", elements*dp, g))
		}
	}
	switch {
	case p.backend == engine.VLLM:
		if width > 1 {
			step(t.allReduced(elements, g))
		}
		if dp > 1 {
			exchange()
		}
	case dp == 1:
		if width > 1 {
			step(t.allReduced(elements, g))
		}
	case width > 1 && p.backend == engine.TRTLLM && !p.exchanges():
		step(t.allReduced(elements, g))
	case width == 1 || p.backend == engine.TRTLLM:
		exchange()
	case before:
		step(t.collective("reduce_scatter", elements, width))
		step(t.collective("all_gather", elements*dp, g))
	default:
		step(t.collective("reduce_scatter", elements*dp, g))
		step(t.collective("all_gather", elements, width))
	}
}

// exchanges reports whether TensorRT-LLM exchanges the tokens of attention ranks also where several share one, and sends
// them quantised.
func (p *Predictor) exchanges() bool { return p.backend == engine.TRTLLM && p.tables.sys.GPU.SM == 100 }

// packed is the size of a dispatch in elements of two bytes.
func (p *Predictor) packed(elements int) int {
	if !p.exchanges() {
		return elements
	}
	switch p.model.Quants.MoE {
	case FP8, FP8Block:
		return elements / 2
	case NVFP4:
		return int(float64(elements) * 0.28125)
	}
	return elements
}
