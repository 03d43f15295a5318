package ais

import (
	"fmt"
	"strings"
)

// AttentionKey selects the attention measurements of one kernel.
type AttentionKey struct {
	FMHA    Quant // of attention over the prompt; "" for attention of new tokens
	KVCache Quant
	KVHeads int // 0 if every head has its own
	HeadDim int
	Window  int // tokens; 0 = unlimited
}

// kvHeads returns the number of key-value heads of this many heads.
func (k AttentionKey) kvHeads(heads float64) float64 {
	if k.KVHeads == 0 {
		return heads
	}
	return float64(k.KVHeads)
}

func (k AttentionKey) parts() []string {
	kv := fmt.Sprintf("num_key_value_heads=%d", k.KVHeads)
	if k.KVHeads == 0 {
		kv = "num_key_value_heads=num_heads"
	}
	parts := []string{"kv_cache_dtype=" + string(k.KVCache), fmt.Sprintf("head_dim=%d", k.HeadDim), kv,
		fmt.Sprintf("window_size=%d", k.Window)}
	if k.FMHA != "" {
		parts = append(parts, "attn_dtype="+string(k.FMHA))
	}
	return parts
}

// MLAKey selects measurements of latent attention. Formats that a table does not tell apart are "".
type MLAKey struct {
	FMHA    Quant // of attention over the prompt
	KVCache Quant
	GEMM    Quant // of the projections, in tables of whole blocks
}

func (k MLAKey) parts() []string {
	return []string{"mla_dtype=" + string(k.FMHA), "kv_cache_dtype=" + string(k.KVCache), "gemm_type=" + string(k.GEMM)}
}

// BMMKey selects measurements of the products that lead into the latent space and out of it.
type BMMKey struct {
	Quant Quant
	Into  bool
	Heads int
}

func (k BMMKey) parts() []string {
	operation := "mla_gen_post"
	if k.Into {
		operation = "mla_gen_pre"
	}
	return []string{"op_name=" + operation, "bmm_dtype=" + string(k.Quant), fmt.Sprintf("num_heads=%d", k.Heads)}
}

// MoEKey selects the measurements of a layer of experts.
type MoEKey struct {
	Quant                        Quant
	Distribution                 string
	TopK, Experts, Hidden, Inter int
	TP, EP                       int
}

func (k MoEKey) parts() []string {
	parts := []string{"moe_dtype=" + string(k.Quant), "distribution=" + k.Distribution}
	for _, p := range []struct {
		name  string
		value int
	}{
		{"topk", k.TopK}, {"num_experts", k.Experts}, {"hidden_size", k.Hidden}, {"inter_size", k.Inter},
		{"moe_tp_size", k.TP}, {"moe_ep_size", k.EP},
	} {
		parts = append(parts, fmt.Sprintf("%s=%d", p.name, p.value))
	}
	return parts
}

// NCCLKey selects the measurements of a collective operation.
type NCCLKey struct {
	Operation string // all_gather, all_reduce, reduce_scatter
	GPUs      int
}

// gemmKey names a matrix product in errors.
type gemmKey struct {
	quant Quant
	n, k  int
}

func (k gemmKey) String() string {
	return fmt.Sprintf("gemm_dtype=%s n=%d k=%d", k.quant, k.n, k.k)
}

func (q Quant) parts() []string { return []string{"dtype=" + string(q)} }

// names joins the texts of a list for an error.
func names[S ~string](list []S) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}
