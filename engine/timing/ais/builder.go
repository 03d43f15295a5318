package ais

import (
	"maps"
	"slices"
)

// Builder gathers rows of the data for some models. Where two rows describe the same measurement the first one counts:
// add a backend's own rows before those of other versions and backends.
type Builder struct {
	sys                 *System
	headDims            []int
	gemm                collector[Quant]
	computeScale        collector[Quant]
	scaleMatrix         collector[Quant]
	context, generation collector[laneKey]
	contextBlock        collector[MLAKey]
	generationBlock     collector[MLAKey]
	contextMLA          collector[MLAKey]
	generationMLA       collector[MLAKey]
	bmm                 collector[BMMKey]
	allReduce           collector[int]
	nccl                collector[NCCLKey]
	moe, moeFewTokens   collector[MoEKey]
}

// NewBuilder returns an empty builder. Attention is kept for heads of these sizes only.
func NewBuilder(sys *System, headDims ...int) *Builder {
	return &Builder{sys: sys, headDims: headDims,
		gemm: newCollector[Quant](), computeScale: newCollector[Quant](), scaleMatrix: newCollector[Quant](),
		context: newCollector[laneKey](), generation: newCollector[laneKey](),
		contextBlock: newCollector[MLAKey](), generationBlock: newCollector[MLAKey](),
		contextMLA: newCollector[MLAKey](), generationMLA: newCollector[MLAKey](), bmm: newCollector[BMMKey](),
		allReduce: newCollector[int](), nccl: newCollector[NCCLKey](),
		moe: newCollector[MoEKey](), moeFewTokens: newCollector[MoEKey]()}
}

// GEMM adds an (m, k) x (k, n) product.
func (b *Builder) GEMM(q Quant, m, n, k int, ms float64) { b.gemm.add(q, ms, m, n, k) }

// ComputeScale adds the computation of the scales of an (m, k) matrix.
func (b *Builder) ComputeScale(q Quant, m, k int, ms float64) { b.computeScale.add(q, ms, m, k, 1) }

// ScaleMatrix adds the scaling of an (m, k) matrix.
func (b *Builder) ScaleMatrix(q Quant, m, k int, ms float64) { b.scaleMatrix.add(q, ms, m, k, 1) }

// ContextAttention adds attention over batch prompts of isl tokens.
func (b *Builder) ContextAttention(lane Lane, key AttentionKey, heads, isl, batch int, ms float64) {
	b.context.add(laneKey{lane, key}, ms, heads, isl, batch)
}

// GenerationAttention adds attention of one new token a request; sequence counts it and its context.
func (b *Builder) GenerationAttention(lane Lane, key AttentionKey, heads, batch, sequence int, ms float64) {
	b.generation.add(laneKey{lane, key}, ms, heads, batch, sequence)
}

// ContextBlock adds a whole block of latent attention, projections included, over batch prompts of isl tokens.
func (b *Builder) ContextBlock(key MLAKey, heads, isl, batch int, ms float64) {
	b.contextBlock.add(key, ms, heads, isl, batch)
}

// GenerationBlock adds a whole block of latent attention of one new token a request.
func (b *Builder) GenerationBlock(key MLAKey, heads, batch, sequence int, ms float64) {
	b.generationBlock.add(MLAKey{KVCache: key.KVCache, GEMM: key.GEMM}, ms, heads, batch, sequence)
}

// ContextMLA adds latent attention alone.
func (b *Builder) ContextMLA(key MLAKey, heads, isl, batch int, ms float64) {
	b.contextMLA.add(MLAKey{FMHA: key.FMHA, KVCache: key.KVCache}, ms, heads, isl, batch)
}

// GenerationMLA adds latent attention alone, of one new token a request.
func (b *Builder) GenerationMLA(key MLAKey, heads, batch, sequence int, ms float64) {
	b.generationMLA.add(MLAKey{KVCache: key.KVCache}, ms, heads, batch, sequence)
}

// BMM adds the products that lead into the latent space or out of it.
func (b *Builder) BMM(key BMMKey, tokens int, ms float64) { b.bmm.add(key, ms, tokens, 0, 0) }

// AllReduce adds a sum of this many elements.
func (b *Builder) AllReduce(gpus, elements int, ms float64) {
	b.allReduce.add(gpus, ms, elements, 0, 0)
}

// NCCL adds a collective operation on this many elements.
func (b *Builder) NCCL(key NCCLKey, elements int, ms float64) { b.nccl.add(key, ms, elements, 0, 0) }

// MoE adds a layer of experts.
func (b *Builder) MoE(key MoEKey, tokens int, ms float64) { b.moe.add(key, ms, tokens, 0, 0) }

// MoEFewTokens adds a layer of experts run by the kernel for few tokens.
func (b *Builder) MoEFewTokens(key MoEKey, tokens int, ms float64) {
	b.moeFewTokens.add(key, ms, tokens, 0, 0)
}

// Build returns the tables. The builder must not be used again.
func (b *Builder) Build(policy LanePolicy) *Tables {
	t := &Tables{sys: b.sys, gemm: map[Quant]*gemmTable{}, collectives: map[string]int{}}
	b.gemm.groups(func(q Quant, rows []row) { t.gemm[q] = newGEMMTable(b.sys, q, rows) })
	t.availableGEMMFormats = slices.Sorted(maps.Keys(t.gemm))
	scales := func(dst **scaleTable) func(Quant, []row) {
		return func(q Quant, rows []row) {
			if q == FP8 {
				*dst = newScaleTable(rows)
			}
		}
	}
	b.computeScale.groups(scales(&t.computeScale))
	b.scaleMatrix.groups(scales(&t.scaleMatrix))
	t.context = newAttention("context_attention_perf", policy, &b.context, b.contextGrid)
	t.generation = newAttention("generation_attention_perf", policy, &b.generation, b.generationGrid)
	t.latent = latentTables{
		contextBlock:    latentGrids(&b.contextBlock, 1, b.sys.contextMLALight),
		generationBlock: latentGrids(&b.generationBlock, -1, b.sys.generationMLALight),
		context:         latentGrids(&b.contextMLA, 1, b.sys.contextMLALight),
		generation:      latentGrids(&b.generationMLA, -1, b.sys.generationMLALight),
		bmm:             curves(&b.bmm),
	}
	t.allReduce, t.nccl = curves(&b.allReduce), curves(&b.nccl)
	t.moe, t.moeFewTokens = curves(&b.moe), curves(&b.moeFewTokens)
	for gpus := range t.allReduce {
		t.mostAllReduce = max(t.mostAllReduce, gpus)
	}
	for k := range t.nccl {
		t.collectives[k.Operation] = max(t.collectives[k.Operation], k.GPUs)
	}
	return t
}

func (b *Builder) contextGrid(key AttentionKey, rows []row) *grid {
	if !slices.Contains(b.headDims, key.HeadDim) {
		return nil
	}
	return newGrid(pointsOf(rows), 1, func(heads, isl, batch float64) float64 { return b.sys.contextLight(key, heads, isl, batch) })
}

// generationGrid makes the grid of one kernel, none of whose latencies may be below the speed of light.
func (b *Builder) generationGrid(key AttentionKey, rows []row) *grid {
	if !slices.Contains(b.headDims, key.HeadDim) {
		return nil
	}
	light := func(heads, batch, sequence float64) float64 {
		return b.sys.generationLight(key, heads, batch, sequence)
	}
	points := pointsOf(rows)
	for i, p := range points {
		points[i].ms = max(p.ms, light(float64(p.at[0]), float64(p.at[1]), float64(p.at[2])))
	}
	return newGrid(points, -1, light)
}

func curves[K comparable](c *collector[K]) map[K]curve {
	m := map[K]curve{}
	c.groups(func(key K, rows []row) { m[key] = curveOf(rows, 0) })
	return m
}
