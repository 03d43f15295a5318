package ais

import (
	"fmt"
	"math/bits"

	"mockbench/engine"
)

// Capacity is what the number of KV blocks of a rank depends on besides the model.
type Capacity struct {
	BlockSize        int     // tokens
	MaxBatchedTokens int     // of a pass
	Fraction         float64 // of memory that the engine may use; of what weights leave free with TensorRT-LLM
}

// DefaultFraction is the share of memory that a backend uses if it is not told.
func DefaultFraction(b engine.Backend) float64 {
	if b == engine.SGLang {
		return 0.88
	}
	return 0.9
}

// GPUBlocks estimates how many KV blocks of a rank fit beside weights and working memory.
func (p *Predictor) GPUBlocks(c Capacity) (int, error) {
	sys, weights := p.tables.sys, p.weightBytes()
	communication := sys.Misc.NCCLBytes[powerOfTwo(p.parallel.TP)]
	var budget float64
	if p.backend == engine.SGLang {
		budget = (sys.GPU.MemoryBytes-communication-1.2*sys.Misc.OtherBytes)*c.Fraction - weights
	} else {
		used := weights + p.activationBytes(c.MaxBatchedTokens) + communication + sys.Misc.OtherBytes
		if p.backend == engine.TRTLLM {
			budget = (sys.GPU.MemoryBytes - used) * c.Fraction
		} else {
			budget = sys.GPU.MemoryBytes*c.Fraction - used
		}
	}
	blocks := int(budget/p.kvBytesPerToken()) / c.BlockSize
	if budget <= 0 || blocks < 1 {
		const gib = 1 << 30
		return 0, fmt.Errorf("no room for KV blocks: %s takes %.1f GiB of weights a GPU of %s with %.1f GiB; use more GPUs or set num_gpu_blocks",
			p.model.Name, weights/gib, sys.Name, sys.GPU.MemoryBytes/gib)
	}
	return blocks, nil
}

// powerOfTwo is the largest measured number of ranks, at most 8, that is not above n.
func powerOfTwo(n int) int { return 1 << (bits.Len(uint(min(n, 8))) - 1) }

// kvBytesPerToken is the size of a token in the cache of a rank.
func (p *Predictor) kvBytesPerToken() float64 {
	m := &p.model
	if m.Family == MLA {
		return m.Quants.KVCache.bytes() * float64((m.KVRank+m.RoPEDim)*m.Layers)
	}
	return m.Quants.KVCache.bytes() * float64(2*m.rankKVHeads(p.parallel.TP)*m.HeadDim*m.Layers)
}

// weightBytes is the size of the weights of a rank, as far as the operators of a prefill pass name them: experts need no
// logits there, so the head of such models is not counted.
func (p *Predictor) weightBytes() float64 {
	m, tp := &p.model, p.parallel.TP
	q, layers := m.Quants.GEMM.bytes(), float64(m.Layers)
	embedding := float64(m.Vocab / tp * m.Hidden * 2)
	if m.Family == MLA {
		return embedding + p.latentWeightBytes()
	}
	heads := m.Heads / tp * m.HeadDim
	attention := q * float64((heads+2*m.rankKVHeads(tp)*m.HeadDim)*m.Hidden+m.Hidden*heads)
	if m.Family == MoE {
		return embedding + layers*(attention+p.expertBytes())
	}
	feedForward := q * float64(2*m.Inter/tp*m.Hidden+m.Hidden*(m.Inter/tp))
	return 2*embedding + layers*(attention+feedForward)
}

// expertBytes is the size of the router and the experts of a layer.
func (p *Predictor) expertBytes() float64 {
	m := &p.model
	experts := int(float64(m.Hidden*m.ExpertInter*m.Experts*3)*m.Quants.MoE.bytes()) / p.parallel.MoEEP / p.parallel.MoETP
	return float64(m.Experts*m.Hidden*2 + experts)
}

// latentWeightBytes is the size of the layers and the head of a model with latent attention. Only SGLang splits the head
// and counts the first layers as dense.
func (p *Predictor) latentWeightBytes() float64 {
	m, tp := &p.model, p.parallel.TP
	q := m.Quants.GEMM.bytes()
	attention := q * float64(m.Hidden*m.QueryRank+
		m.QueryRank*m.Heads*(m.NoPEDim+m.RoPEDim)/tp+
		m.Hidden*(m.KVRank+m.RoPEDim)+
		m.KVRank*m.Heads*(m.NoPEDim+m.ValueDim)/tp+
		m.Heads*m.ValueDim/tp*m.Hidden)
	routed := q*float64(3*m.ExpertInter*m.SharedExperts/tp*m.Hidden) + p.expertBytes()
	head, dense := m.Vocab*m.Hidden*2, 0
	if p.backend == engine.SGLang {
		head, dense = m.Vocab/tp*m.Hidden*2, m.DenseLayers
	}
	feedForward := q * float64(3*m.Inter/tp*m.Hidden)
	return float64(head) + float64(m.Layers)*attention + float64(m.Layers-dense)*routed + float64(dense)*feedForward
}

// activationBytes is the size of what a pass of this many tokens works with.
func (p *Predictor) activationBytes(tokens int) float64 {
	m := &p.model
	width := m.Heads * m.HeadDim
	factors := map[int]float64{1: 11, 2: 6.5, 4: 5, 8: 5}
	if m.Family != Dense {
		factors = map[int]float64{1: 22, 2: 13, 4: 10, 8: 10}
	}
	if m.Family == MLA {
		width = m.Hidden
	}
	const least = 70 << 20
	bytes := max(2*float64(tokens)*float64(width)*factors[powerOfTwo(p.parallel.TP)], least)
	if m.Family == MLA {
		routing := tokens * m.Hidden * p.parallel.AttentionDP * m.Experts * m.TopK / p.parallel.MoEEP / 128
		bytes += float64(routing) * 4
	}
	return bytes
}
