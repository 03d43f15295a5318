package ais

import (
	"fmt"

	"mockbench/engine"
)

// Rules are the versions of the estimator whose results are reproduced.
type Rules string

const (
	Rules012 Rules = "0.12" // decode attention without the normalisation of queries and keys
	Rules013 Rules = "0.13"
)

// Setup is what a predictor is made for.
type Setup struct {
	Backend  engine.Backend
	Model    Model
	Parallel Parallel
	Nextn    int // draft tokens of multi-token prediction, 0 = off
	Rules    Rules
}

// Predictor predicts the passes of one attention rank. It keeps the answers of recent questions. It may be used by several
// goroutines at once.
type Predictor struct {
	backend  engine.Backend
	model    Model
	parallel Parallel
	nextn    int
	rules    Rules
	tables   *Tables
	prefill  memo
	decode   memo
}

// NewPredictor checks the setup. It does not ask whether the data covers it: see Probe.
func NewPredictor(s Setup, t *Tables) (*Predictor, error) {
	if err := s.Model.check(); err != nil {
		return nil, err
	}
	if s.Model.Family == Dense {
		s.Parallel.MoETP, s.Parallel.MoEEP = 1, 1
	}
	if err := s.Parallel.check(&s.Model); err != nil {
		return nil, err
	}
	if s.Backend == engine.VLLM && s.Model.Quants.Latent != "" {
		return nil, fmt.Errorf("ais: %s keeps some projections in %s, which is not modelled on vllm", s.Model.Name, s.Model.Quants.Latent)
	}
	if s.Nextn < 0 || s.Nextn > 5 {
		return nil, fmt.Errorf("ais: nextn must be between 0 and 5, got %d", s.Nextn)
	}
	p := &Predictor{backend: s.Backend, model: s.Model, parallel: s.Parallel, nextn: s.Nextn, rules: s.Rules, tables: t}
	if q := &p.model.Quants; q.FMHA == FP8 && (!t.context.has(FP8, q.KVCache) || p.latentInBF16()) {
		q.FMHA = BF16
	}
	return p, nil
}

// latentInBF16 reports whether latent attention over prompts runs in bfloat16 whatever the cache holds: with SGLang on
// Hopper GPUs, which release 0.12 did not know.
func (p *Predictor) latentInBF16() bool {
	return p.rules != Rules012 && p.backend == engine.SGLang && p.model.Family == MLA && p.tables.sys.GPU.SM == 90
}

// Probe reports whether the data covers the passes of a role. It asks for the smallest pass and for ever larger ones.
func (p *Predictor) Probe(role engine.Role) error {
	const (
		prompt  = 1 << 17 // tokens
		batch   = 1 << 12 // requests
		context = 1 << 10
	)
	for n := 1; n <= prompt && role != engine.DecodeRole; n *= 2 {
		if _, err := p.PrefillOps(1, n, 0); err != nil {
			return fmt.Errorf("prefill of %d tokens: %w", n, err)
		}
	}
	for n := 1; n <= batch && role != engine.PrefillRole; n *= 2 {
		if _, err := p.DecodeOps(n, context); err != nil {
			return fmt.Errorf("decode of %d requests: %w", n, err)
		}
	}
	return nil
}

// Model returns the model as it is predicted, with the number formats that the data has.
func (p *Predictor) Model() Model { return p.model }

// PrefillOps returns the operators that compute batch x tokens prompt tokens, each behind a cached prefix. An error for
// a gap in the data wraps a *MissingError.
func (p *Predictor) PrefillOps(batch, tokens, prefix int) ([]Op, error) {
	s := &pass{p: p, tag: "context_", times: 1}
	s.layers(batch*tokens, batch, func() (latency, error) {
		if p.model.Family == MLA {
			return p.promptBlock(batch, tokens, prefix)
		}
		return p.promptAttention(batch, tokens, prefix)
	}, false)
	return s.ops, s.err
}

// DecodeOps returns the operators of one decode step of batch requests; each has context tokens before the step.
func (p *Predictor) DecodeOps(batch, context int) ([]Op, error) {
	batch *= p.nextn + 1
	s := &pass{p: p, tag: "generation_", times: float64(p.model.Layers+p.nextn) / float64(p.model.Layers)}
	s.layers(batch, batch, func() (latency, error) {
		if p.model.Family == MLA {
			return p.stepBlock(batch, context+1)
		}
		return p.stepAttention(batch, context+1)
	}, true)
	return s.ops, s.err
}

// Sum adds up operators in their order.
func Sum(ops []Op) (ms float64) {
	for _, op := range ops {
		ms += op.MS
	}
	return ms
}

func (p *Predictor) attentionKey() AttentionKey {
	m := &p.model
	return AttentionKey{KVCache: m.Quants.KVCache, KVHeads: m.kvKey(p.parallel.TP), HeadDim: m.HeadDim}
}

// uncached is the share of the attention over a prompt that is left when a prefix is cached.
func uncached(tokens, prefix int) float64 {
	full, cached := float64(tokens+prefix), float64(prefix)
	return (full*full - cached*cached) / (full * full)
}

// overhead is how much longer than its memory traffic the work around attention takes.
const overhead = 1.1

// promptAttention is attention over prompts in one layer, with the work around it.
func (p *Predictor) promptAttention(batch, tokens, prefix int) (latency, error) {
	key, heads := p.attentionKey(), p.model.Heads/p.parallel.TP
	key.FMHA = p.model.Quants.FMHA
	g, err := p.tables.context.find(key)
	if err != nil {
		return latency{}, err
	}
	l := g.at(heads, tokens+prefix, batch)
	l.ms = l.ms*uncached(tokens, prefix) + overhead*p.around()
	l.from = max(l.from, Interpolated)
	return l, nil
}

// around is the memory traffic in ms of rotating and storing keys, of the norms included.
func (p *Predictor) around() float64 {
	m, sys := &p.model, p.tables.sys
	queries, keys := float64(m.Heads/p.parallel.TP*m.HeadDim), float64(m.rankKVHeads(p.parallel.TP)*m.HeadDim)
	return 2*sys.memory(2*(queries+keys)) + 2*sys.memory(keys*m.Quants.FMHA.bytes()) + p.norms()
}

// norms is the memory traffic in ms of normalising queries and keys.
func (p *Predictor) norms() float64 {
	m, sys := &p.model, p.tables.sys
	if !m.QKNorm {
		return 0
	}
	queries, keys := float64(m.Heads/p.parallel.TP*m.HeadDim), float64(m.rankKVHeads(p.parallel.TP)*m.HeadDim)
	return 2 * (2*sys.memory(2*queries) + 2*sys.memory(2*keys))
}

// stepAttention is attention of new tokens in one layer: the mean over contexts around the one asked for.
func (p *Predictor) stepAttention(batch, sequence int) (latency, error) {
	g, err := p.tables.generation.find(p.attentionKey())
	if err != nil {
		return latency{}, err
	}
	const samples = 5
	low := max(1, int(float64(sequence)*0.9))
	high := max(low, int(float64(sequence)*1.1))
	mean := latency{}
	for i := range samples {
		l := g.at(p.model.Heads/p.parallel.TP, batch, low+(high-low)*i/(samples-1))
		mean.ms += l.ms
		mean.from = max(mean.from, l.from, Interpolated)
	}
	mean.ms /= samples
	if p.rules != Rules012 {
		mean.ms += overhead * p.norms()
	}
	return mean, nil
}
