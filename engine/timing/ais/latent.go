package ais

import (
	"maps"
	"math/bits"
)

// latentTables are the measurements of latent attention: of whole blocks and of their parts.
type latentTables struct {
	contextBlock, generationBlock map[MLAKey]*grid
	context, generation           map[MLAKey]*grid // attention alone
	bmm                           map[BMMKey]curve
}

// latentGrids builds a table with the number of heads as its first axis.
func latentGrids(c *collector[MLAKey], root int, light func(key MLAKey, a, b, c float64) float64) map[MLAKey]*grid {
	grids := map[MLAKey]*grid{}
	c.groups(func(key MLAKey, rows []row) {
		grids[key] = newGrid(pointsOf(rows), root, func(a, b, c float64) float64 { return light(key, a, b, c) })
	})
	return grids
}

// promptBlock is the latent attention block over prompts in one layer: measured as a whole or, where it was not, the sum
// of its parts.
func (p *Predictor) promptBlock(batch, tokens, prefix int) (latency, error) {
	m, tp, q := &p.model, p.parallel.TP, p.model.Quants
	heads, t := m.Heads/tp, &p.tables.latent
	share := uncached(tokens, prefix)
	if g := t.contextBlock[MLAKey{q.FMHA, q.KVCache, q.GEMM}]; g != nil && p.uniform() {
		l := g.at(heads, tokens+prefix, batch)
		l.ms *= share
		return l, nil
	}
	key := MLAKey{FMHA: q.FMHA, KVCache: q.KVCache}
	g := t.context[key]
	if g == nil {
		return latency{}, missing("context_mla_perf", key, maps.Keys(t.context))
	}
	attention := g.at(heads, tokens+prefix, batch)
	attention.ms *= share
	x := batch * tokens
	s := p.projected(x, heads)
	s.product("kv_b_proj_gemm", p.latentQuant(), x, heads*(m.NoPEDim+m.ValueDim), m.KVRank, 1)
	s.add("attention", attention, nil, 1)
	s.product("proj_gemm", q.GEMM, x, m.Hidden, heads*m.ValueDim, 1)
	return s.total()
}

// stepBlock is the latent attention block of new tokens in one layer.
func (p *Predictor) stepBlock(batch, sequence int) (latency, error) {
	m, tp, q := &p.model, p.parallel.TP, p.model.Quants
	heads, t := m.Heads/tp, &p.tables.latent
	if g := t.generationBlock[MLAKey{KVCache: q.KVCache, GEMM: q.GEMM}]; g != nil && p.uniform() {
		return g.at(heads, batch, sequence), nil
	}
	key := MLAKey{KVCache: q.KVCache}
	g := t.generation[key]
	if g == nil {
		return latency{}, missing("generation_mla_perf", key, maps.Keys(t.generation))
	}
	s := p.projected(batch, heads)
	into, err := p.bmm(true, heads, batch)
	s.add("bmm_pre", into, err, 1)
	s.add("attention", g.at(heads, batch, sequence), nil, 1)
	out, err := p.bmm(false, heads, batch)
	s.add("bmm_post", out, err, 1)
	s.product("proj_gemm", q.GEMM, batch, m.Hidden, heads*m.ValueDim, 1)
	return s.total()
}

// projected starts the parts of a block with the products that make queries and latent vectors of x tokens.
func (p *Predictor) projected(x, heads int) *pass {
	m, q := &p.model, p.latentQuant()
	s := &pass{p: p, times: 1}
	s.product("downscale_gemm", q, x, m.QueryRank+m.KVRank+m.RoPEDim, m.Hidden, 1)
	s.product("q_b_proj_gemm", q, x, heads*(m.NoPEDim+m.RoPEDim), m.QueryRank, 1)
	return s
}

// bmm is the latency of the products into or out of the latent space. They are measured for powers of two of heads.
func (p *Predictor) bmm(into bool, heads, tokens int) (latency, error) {
	key := BMMKey{Quant: BF16, Into: into, Heads: 1 << bits.Len(uint(heads-1))}
	switch p.latentQuant() {
	case FP8, FP8Block, FP8Static:
		key.Quant = FP8
	}
	c, ok := p.tables.latent.bmm[key]
	if !ok {
		return latency{}, missing("mla_bmm_perf", key, maps.Keys(p.tables.latent.bmm))
	}
	l := c.scaled(tokens, func(x int) float64 { return p.tables.sys.bmmLight(key, float64(x)) })
	l.ms *= float64(heads) / float64(key.Heads)
	return l, nil
}

// latentQuant is the format of the projections into and out of the latent space.
func (p *Predictor) latentQuant() Quant {
	if q := p.model.Quants.Latent; q != "" {
		return q
	}
	return p.model.Quants.GEMM
}

// uniform reports whether all products of a block have one format, as in blocks that were measured.
func (p *Predictor) uniform() bool { return p.latentQuant() == p.model.Quants.GEMM }
