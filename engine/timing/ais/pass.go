package ais

import "mockbench/engine"

// Op is an operator of a pass: its share of the pass on one rank.
type Op struct {
	Name string
	MS   float64
	From Source
}

// pass collects the operators of a pass. The first error ends it; later operators are ignored.
type pass struct {
	p     *Predictor
	tag   string  // prefix of the operators' names
	times float64 // how many times longer draft tokens make every operator
	ops   []Op
	err   error
}

// add appends an operator that runs count times.
func (s *pass) add(name string, l latency, err error, count int) {
	if s.err == nil {
		s.err = err
	}
	if s.err == nil {
		s.ops = append(s.ops, Op{s.tag + name, l.ms * float64(count) * s.times, l.from})
	}
}

func (s *pass) memory(name string, bytes, count int) {
	s.add(name, latency{s.p.tables.sys.memory(float64(bytes)), Estimated}, nil, count)
}

func (s *pass) product(name string, q Quant, m, n, k, count int) {
	l, err := s.p.tables.product(q, m, n, k, false)
	s.add(name, l, err, count)
}

// quantisedProduct is a product whose input arrives in the low precision already.
func (s *pass) quantisedProduct(name string, m, n, k, count int) {
	l, err := s.p.tables.product(s.p.model.Quants.GEMM, m, n, k, true)
	s.add(name, l, err, count)
}

func (s *pass) allReduce(name string, elements, count int) {
	l, err := s.p.tables.allReduced(elements, s.p.parallel.TP)
	s.add(name, l, err, count)
}

// layers takes a pass over tokens of some sequences apart. attention is that of one layer.
func (s *pass) layers(tokens, sequences int, attention func() (latency, error), decode bool) {
	m := &s.p.model
	s.memory("embedding", tokens*m.Hidden*2, 1)
	s.memory("add_norm_1", tokens*8*m.Hidden, m.Layers)
	switch m.Family {
	case Dense:
		s.groupedAttention(tokens, attention)
		s.feedForward(tokens)
		s.logits(sequences)
		s.allReduce("embedding_ar", tokens*m.Hidden, 1)
		s.allReduce("ar_1", tokens*m.Hidden, m.Layers)
		s.allReduce("ar_2", tokens*m.Hidden, m.Layers)
	case MoE:
		s.groupedAttention(tokens, attention)
		s.routed(tokens)
		if decode {
			s.logits(sequences)
		}
		s.allReduce("embedding_ar", tokens*m.Hidden, 1)
	case MLA:
		l, err := attention()
		s.add("mla_block", l, err, m.Layers)
		s.memory("add_norm_2", tokens*8*m.Hidden, m.Layers)
		if decode {
			s.overlapped(tokens)
		} else {
			s.shared(tokens)
			s.routed(tokens)
		}
		s.logits(sequences)
		if s.p.backend == engine.VLLM {
			s.allReduce("tp_allreduce", tokens*m.Hidden, 2*m.Layers)
		}
	}
	s.add("p2p", latency{}, nil, 1)
}

// groupedAttention is everything up to the second norm.
func (s *pass) groupedAttention(tokens int, attention func() (latency, error)) {
	m, tp := &s.p.model, s.p.parallel.TP
	heads := m.Heads / tp * m.HeadDim
	s.product("qkv_gemm", m.Quants.GEMM, tokens, heads+2*m.rankKVHeads(tp)*m.HeadDim, m.Hidden, m.Layers)
	l, err := attention()
	s.add("attention", l, err, m.Layers)
	s.quantisedProduct("proj_gemm", tokens, m.Hidden, heads, m.Layers)
	s.memory("add_norm_2", tokens*8*m.Hidden, m.Layers)
}

func (s *pass) feedForward(tokens int) {
	m, tp := &s.p.model, s.p.parallel.TP
	s.product("gate_ffn1_gemm", m.Quants.GEMM, tokens, 2*m.Inter/tp, m.Hidden, m.Layers)
	s.memory("act_gate", tokens*2*(2*m.Inter/tp+m.Inter/tp), m.Layers)
	s.quantisedProduct("ffn2_gemm", tokens, m.Hidden, m.Inter/tp, m.Layers)
}

func (s *pass) logits(sequences int) {
	m := &s.p.model
	s.product("logits_gemm", BF16, sequences, m.Vocab/s.p.parallel.TP, m.Hidden, 1)
}

// shared is the experts that every token visits.
func (s *pass) shared(tokens int) {
	m, tp := &s.p.model, s.p.parallel.TP
	inter := m.ExpertInter * m.SharedExperts
	s.product("shared_gate_up_gemm", m.Quants.GEMM, tokens, 2*inter/tp, m.Hidden, m.Layers)
	s.memory("shared_act_gate", tokens*2*(2*inter/tp+inter/tp), m.Layers)
	s.product("shared_ffn2_gemm", m.Quants.GEMM, tokens, m.Hidden, inter/tp, m.Layers)
}

// routed is the experts that a router chooses. They see the tokens of all attention ranks.
func (s *pass) routed(tokens int) {
	m, p := &s.p.model, s.p.parallel
	s.product("router_gemm", BF16, tokens, m.Experts, m.Hidden, m.Layers)
	s.dispatch("moe_pre_dispatch", tokens, true)
	l, err := s.p.tables.experts(MoEKey{Quant: m.Quants.MoE, Distribution: m.expertDistribution(), TopK: m.TopK,
		Experts: m.Experts, Hidden: m.Hidden, Inter: m.ExpertInter, TP: p.MoETP, EP: p.MoEEP}, tokens*p.AttentionDP)
	s.add("moe", l, err, m.Layers)
	s.dispatch("moe_post_dispatch", tokens, false)
}

// overlapped runs shared and routed experts side by side: the longer one counts.
func (s *pass) overlapped(tokens int) {
	shared, routed := &pass{p: s.p, times: 1}, &pass{p: s.p, times: 1}
	shared.shared(tokens)
	routed.routed(tokens)
	longer, err := shared.total()
	other, otherErr := routed.total()
	if other.ms >= longer.ms {
		longer = other
	}
	if err == nil {
		err = otherErr
	}
	s.add("moe_overlap", longer, err, 1)
}

// total is the sum of the operators so far.
func (s *pass) total() (l latency, err error) {
	for _, op := range s.ops {
		l.ms += op.MS
		l.from = max(l.from, op.From)
	}
	return l, s.err
}
