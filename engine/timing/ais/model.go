package ais

import (
	"fmt"
	"strings"
)

// Family is a kind of model that passes can be taken apart for.
type Family int

const (
	Dense Family = iota // grouped-query attention and a gated feed-forward layer
	MoE                 // grouped-query attention and experts
	MLA                 // latent attention, shared and routed experts
)

func (f Family) String() string { return [...]string{"dense GQA", "MoE", "MLA"}[f] }

// architecture is what a name in a model's configuration stands for.
type architecture struct {
	name   string
	family Family
	qkNorm bool // queries and keys are normalised
}

// architectures returns those that are modelled.
func architectures() []architecture {
	return []architecture{
		{"LlamaForCausalLM", Dense, false},
		{"Qwen2ForCausalLM", Dense, false},
		{"Qwen3ForCausalLM", Dense, true},
		{"MixtralForCausalLM", MoE, false},
		{"Qwen3MoeForCausalLM", MoE, true},
		{"DeepseekV3ForCausalLM", MLA, false},
	}
}

// Model is the shape of a language model.
type Model struct {
	Name   string
	Family Family
	QKNorm bool

	Layers, Hidden, Heads, KVHeads, HeadDim int
	Inter, Vocab                            int

	// Of experts.
	Experts, TopK, ExpertInter, SharedExperts, DenseLayers int

	// Of latent attention.
	QueryRank, KVRank, NoPEDim, RoPEDim, ValueDim int

	Quants Quants
}

// Parallel says how a model is spread over GPUs.
type Parallel struct {
	TP, AttentionDP, MoETP, MoEEP int
}

// fp8BlockSize is the edge of the blocks of weights that share a scale.
const fp8BlockSize = 128

// ranks is the number of GPUs that experts are spread over.
func (p Parallel) ranks() int { return p.MoETP * p.MoEEP }

// Architecture sets family and attention of the model by the name in its configuration.
func (m *Model) Architecture(name string) error {
	for _, a := range architectures() {
		if a.name == name {
			m.Family, m.QKNorm = a.family, a.qkNorm
			return nil
		}
	}
	var known []string
	for _, a := range architectures() {
		known = append(known, a.name)
	}
	return fmt.Errorf("architecture %q is not modelled, supported: %s", name, strings.Join(known, ", "))
}

// check reports a shape that passes cannot be taken apart for.
func (m *Model) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"num_hidden_layers", m.Layers}, {"hidden_size", m.Hidden}, {"num_attention_heads", m.Heads},
		{"num_key_value_heads", m.KVHeads}, {"head_dim", m.HeadDim}, {"intermediate_size", m.Inter}, {"vocab_size", m.Vocab},
	} {
		if f.value < 1 {
			return fmt.Errorf("model %s: %s must be positive, got %d", m.Name, f.name, f.value)
		}
	}
	if m.Family != Dense && (m.Experts < 1 || m.TopK < 1 || m.ExpertInter < 1) {
		return fmt.Errorf("model %s: the configuration names no experts", m.Name)
	}
	if m.Family == MLA && (m.KVRank < 1 || m.QueryRank < 1 || m.RoPEDim < 1 || m.NoPEDim < 1 || m.ValueDim < 1) {
		return fmt.Errorf("model %s: the configuration gives no sizes of latent attention", m.Name)
	}
	for _, q := range []Quant{m.Quants.GEMM, m.Quants.MoE, m.Quants.KVCache, m.Quants.FMHA} {
		if !q.known() {
			return fmt.Errorf("model %s: number format %q is not modelled", m.Name, q)
		}
	}
	return nil
}

// check reports a placement that does not fit the model.
func (p Parallel) check(m *Model) error {
	for _, f := range []struct {
		name  string
		value int
	}{{"tp", p.TP}, {"attention_dp", p.AttentionDP}, {"moe_tp_size", p.MoETP}, {"moe_ep_size", p.MoEEP}} {
		if f.value < 1 {
			return fmt.Errorf("ais: %s must be positive, got %d", f.name, f.value)
		}
	}
	if m.Heads%p.TP != 0 {
		return fmt.Errorf("ais: tp %d does not divide the %d heads of %s", p.TP, m.Heads, m.Name)
	}
	if m.Family == Dense {
		return nil
	}
	if p.TP*p.AttentionDP != p.ranks() {
		return fmt.Errorf("ais: moe_tp_size %d x moe_ep_size %d must equal tp %d x attention_dp %d for %s, which has experts",
			p.MoETP, p.MoEEP, p.TP, p.AttentionDP, m.Name)
	}
	if m.Quants.MoE == FP8Block && m.ExpertInter%(p.MoETP*fp8BlockSize) != 0 {
		return fmt.Errorf("ais: moe_tp_size %d cuts the %d columns of an expert of %s within a block of %d scales",
			p.MoETP, m.ExpertInter, m.Name, fp8BlockSize)
	}
	if p.MoEEP > m.Experts {
		return fmt.Errorf("ais: moe_ep_size must be at most %d, the experts of %s, got %d", m.Experts, m.Name, p.MoEEP)
	}
	return nil
}

// rankKVHeads returns the key-value heads of a rank.
func (m *Model) rankKVHeads(tp int) int { return (m.KVHeads + tp - 1) / tp }

// kvKey is the number of key-value heads as measurements are filed: 0 if every head has its own.
func (m *Model) kvKey(tp int) int {
	if kv := m.rankKVHeads(tp); kv != m.Heads/tp {
		return kv
	}
	return 0
}

// expertDistribution is the skew of routing that experts were measured with.
func (m *Model) expertDistribution() string {
	if m.Family == MLA {
		return "power_law_1.01"
	}
	return "power_law_1.2"
}
