package aisdata

import (
	"path"
	"strings"

	"mockbench/engine/timing/ais"
)

// kind is a table: where it lies, which columns it has and how its rows enter a builder.
type kind struct {
	family, name string
	from         borrowing
	columns      []string
	optional     []string
	add          func(b *ais.Builder, t *table, row int)
}

const windowSize = "window_size"

// needs is what models ask the tables for.
type needs struct {
	products                map[ais.Quant]bool
	experts                 map[[2]int]bool // number and hidden size
	headDims                []int
	static, grouped, latent bool // scales known beforehand, grouped-query attention, latent attention
}

func needsOf(models []ais.Model) *needs {
	n := &needs{products: map[ais.Quant]bool{ais.BF16: true}, experts: map[[2]int]bool{}}
	for _, m := range models {
		q := m.Quants.GEMM
		if q == ais.FP8Static {
			q, n.static = ais.FP8, true
		}
		n.products[q] = true
		if m.Family != ais.Dense {
			n.experts[[2]int{m.Experts, m.Hidden}] = true
		}
		if m.Family == ais.MLA {
			n.latent = true
		} else {
			n.grouped = true
			n.headDims = append(n.headDims, m.HeadDim)
		}
	}
	return n
}

// kinds lists the tables that are needed.
func (n *needs) kinds() []kind {
	attention := []string{"kv_cache_dtype", "num_heads", "num_key_value_heads", "head_dim", "batch_size", "isl"}
	list := []kind{
		{"gemm", "gemm_perf", anyBackend, []string{"gemm_dtype", "m", "n", "k"}, nil, n.addGEMM},
		{"comm", "custom_allreduce_perf", ownVersions, []string{"num_gpus", "message_size"}, []string{"backend"}, addAllReduce},
		{"attention", "context_attention_perf", anyBackend, append([]string{"attn_dtype"}, attention...), []string{windowSize}, addContext},
	}
	if n.grouped {
		list = append(list, kind{"attention", "generation_attention_perf", anyBackend, append([]string{"step"}, attention...), []string{windowSize}, addGeneration})
	}
	if n.static {
		scale := []string{"quant_dtype", "m", "k"}
		list = append(list,
			kind{"quantize", "computescale_perf", anyBackend, scale, nil, func(b *ais.Builder, t *table, i int) {
				b.ComputeScale(ais.Quant(t.text("quant_dtype", i)), t.int("m", i), t.int("k", i), t.latency(i))
			}},
			kind{"quantize", "scale_matrix_perf", anyBackend, scale, nil, func(b *ais.Builder, t *table, i int) {
				b.ScaleMatrix(ais.Quant(t.text("quant_dtype", i)), t.int("m", i), t.int("k", i), t.latency(i))
			}})
	}
	if len(n.experts) > 0 {
		list = append(list, kind{"moe", "moe_perf", anyBackend, []string{"moe_dtype", "distribution", "topk", "num_experts", "hidden_size",
			"inter_size", "moe_tp_size", "moe_ep_size", "num_tokens"}, nil, n.addMoE})
	}
	if n.latent {
		list = append(list, latentKinds()...)
	}
	return list
}

// latentKinds lists the tables of latent attention.
func latentKinds() []kind {
	part := []string{"mla_dtype", "kv_cache_dtype", "num_heads", "batch_size", "isl"}
	block := append([]string{"gemm_type"}, part...)
	step := func(columns []string) []string { return append([]string{"step"}, columns...) }
	return []kind{
		{"mla", "mla_context_module_perf", anyBackend, block, nil, func(b *ais.Builder, t *table, i int) {
			b.ContextBlock(mlaKey(t, i), t.int("num_heads", i), t.int("isl", i), t.int("batch_size", i), t.latency(i))
		}},
		{"mla", "mla_generation_module_perf", anyBackend, step(block), nil, func(b *ais.Builder, t *table, i int) {
			b.GenerationBlock(mlaKey(t, i), t.int("num_heads", i), t.int("batch_size", i), t.int("isl", i)+t.int("step", i), t.latency(i))
		}},
		{"mla", "context_mla_perf", anyBackend, part, nil, func(b *ais.Builder, t *table, i int) {
			b.ContextMLA(mlaKey(t, i), t.int("num_heads", i), t.int("isl", i), t.int("batch_size", i), t.latency(i))
		}},
		{"mla", "generation_mla_perf", anyBackend, step(part), nil, func(b *ais.Builder, t *table, i int) {
			b.GenerationMLA(mlaKey(t, i), t.int("num_heads", i), t.int("batch_size", i), t.int("isl", i)+t.int("step", i), t.latency(i))
		}},
		{"mla_bmm", "mla_bmm_perf", anyBackend, []string{"op_name", "bmm_dtype", "num_heads", "num_tokens"}, nil, addBMM},
	}
}

// addGEMM keeps the products in the formats that are used.
func (n *needs) addGEMM(b *ais.Builder, t *table, i int) {
	if q := ais.Quant(t.text("gemm_dtype", i)); n.products[q] {
		b.GEMM(q, t.int("m", i), t.int("n", i), t.int("k", i), t.latency(i))
	}
}

// addAllReduce leaves out what was measured without CUDA graphs.
func addAllReduce(b *ais.Builder, t *table, i int) {
	const eager = "_eager"
	if strings.HasSuffix(t.text("kernel_source", i), eager) || strings.HasSuffix(t.text("backend", i), eager) {
		return
	}
	b.AllReduce(t.int("num_gpus", i), t.int("message_size", i), t.latency(i))
}

// addMoE keeps the experts that are used.
func (n *needs) addMoE(b *ais.Builder, t *table, i int) {
	key := ais.MoEKey{Quant: ais.Quant(t.text("moe_dtype", i)), Distribution: t.text("distribution", i),
		TopK: t.int("topk", i), Experts: t.int("num_experts", i), Hidden: t.int("hidden_size", i), Inter: t.int("inter_size", i),
		TP: t.int("moe_tp_size", i), EP: t.int("moe_ep_size", i)}
	switch {
	case !n.experts[[2]int{key.Experts, key.Hidden}]:
	case t.text("kernel_source", i) == "moe_torch_flow_min_latency":
		b.MoEFewTokens(key, t.int("num_tokens", i), t.latency(i))
	default:
		b.MoE(key, t.int("num_tokens", i), t.latency(i))
	}
}

func attentionKey(t *table, i int) ais.AttentionKey {
	kv := t.int("num_key_value_heads", i)
	if kv == t.int("num_heads", i) {
		kv = 0
	}
	return ais.AttentionKey{KVCache: ais.Quant(t.text("kv_cache_dtype", i)), KVHeads: kv, HeadDim: t.int("head_dim", i),
		Window: t.int(windowSize, i)}
}

func addContext(b *ais.Builder, t *table, i int) {
	key := attentionKey(t, i)
	key.FMHA = ais.Quant(t.text("attn_dtype", i))
	b.ContextAttention(t.text("kernel_source", i), key, t.int("num_heads", i), t.int("isl", i), t.int("batch_size", i), t.latency(i))
}

func addGeneration(b *ais.Builder, t *table, i int) {
	b.GenerationAttention(t.text("kernel_source", i), attentionKey(t, i), t.int("num_heads", i), t.int("batch_size", i),
		t.int("isl", i)+t.int("step", i), t.latency(i))
}

func mlaKey(t *table, i int) ais.MLAKey {
	return ais.MLAKey{FMHA: ais.Quant(t.text("mla_dtype", i)), KVCache: ais.Quant(t.text("kv_cache_dtype", i)),
		GEMM: ais.Quant(t.text("gemm_type", i))}
}

func addBMM(b *ais.Builder, t *table, i int) {
	key := ais.BMMKey{Quant: ais.Quant(t.text("bmm_dtype", i)), Into: t.text("op_name", i) == "mla_gen_pre", Heads: t.int("num_heads", i)}
	b.BMM(key, t.int("num_tokens", i), t.latency(i))
}

// load reads every table that models need.
func (r *reader) load(sys *ais.System, models ...ais.Model) (*ais.Tables, error) {
	n := needsOf(models)
	b := ais.NewBuilder(sys, n.headDims...)
	for _, k := range n.kinds() {
		sources, err := r.sources(k.family, k.name, k.from)
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			if err := r.loadFile(b, k, s); err != nil {
				return nil, err
			}
		}
	}
	if file := r.ncclFile(sys); r.root.has(file) {
		if err := r.loadFile(b, ncclKind(), source{file: file}); err != nil {
			return nil, err
		}
	}
	policy, err := r.root.lanePolicy(r.backend, r.version, sys.GPU.SM)
	if err != nil {
		return nil, err
	}
	return b.Build(policy), nil
}

// files lists what load reads.
func (r *reader) files(sys *ais.System, models ...ais.Model) (list []string, err error) {
	for _, k := range needsOf(models).kinds() {
		sources, err := r.sources(k.family, k.name, k.from)
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			list = append(list, s.file)
		}
	}
	if file := r.ncclFile(sys); r.root.has(file) {
		list = append(list, file)
	}
	return list, nil
}

// ncclFile is the table of collective operations, of the library version that the system names.
func (r *reader) ncclFile(sys *ais.System) string {
	return path.Join(r.data, "comm", "nccl", sys.Misc.NCCLVersion, "nccl_perf.parquet")
}

func ncclKind() kind {
	return kind{columns: []string{"nccl_dtype", "op_name", "num_gpus", "message_size"}, add: func(b *ais.Builder, t *table, i int) {
		if t.text("nccl_dtype", i) == "half" {
			b.NCCL(ais.NCCLKey{Operation: t.text("op_name", i), GPUs: t.int("num_gpus", i)}, t.int("message_size", i), t.latency(i))
		}
	}}
}

func (r *reader) loadFile(b *ais.Builder, k kind, s source) error {
	columns := append([]string{"latency", "kernel_source"}, k.columns...)
	t, err := readTable(r.root.FS, s.file, append(columns, k.optional...)...)
	if err != nil {
		return err
	}
	if err := t.require(s.file, columns...); err != nil {
		return err
	}
	for i := range t.rows {
		if s.kernels == nil || s.kernels[t.text("kernel_source", i)] {
			k.add(b, t, i)
		}
	}
	return nil
}
