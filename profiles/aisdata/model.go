package aisdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mockbench/engine/timing/ais"
)

// hubConfig is what is read of a model's config.json.
type hubConfig struct {
	Architectures []string
	Layers        int   `json:"num_hidden_layers"`
	Hidden        int   `json:"hidden_size"`
	Heads         int   `json:"num_attention_heads"`
	KVHeads       int   `json:"num_key_value_heads"`
	HeadDim       int   `json:"head_dim"`
	Inter         int   `json:"intermediate_size"`
	Vocab         int   `json:"vocab_size"`
	TopK          int   `json:"num_experts_per_tok"`
	ExpertInter   int   `json:"moe_intermediate_size"`
	LocalExperts  int   `json:"num_local_experts"`
	NumExperts    int   `json:"num_experts"`
	RoutedExperts int   `json:"n_routed_experts"`
	SharedExperts int   `json:"n_shared_experts"`
	DenseLayers   int   `json:"first_k_dense_replace"`
	QueryRank     int   `json:"q_lora_rank"`
	KVRank        int   `json:"kv_lora_rank"`
	NoPEDim       int   `json:"qk_nope_head_dim"`
	RoPEDim       int   `json:"qk_rope_head_dim"`
	ValueDim      int   `json:"v_head_dim"`
	SlidingWindow int   `json:"sliding_window"`
	WindowOn      *bool `json:"use_sliding_window"`

	Quantization *quantization `json:"quantization_config"`
}

// quantization is the quantization block of config.json, and of ModelOpt's file beside it.
type quantization struct {
	Method    string   `json:"quant_method"`
	Algorithm string   `json:"quant_algo"`
	Block     []int    `json:"weight_block_size"`
	Scheme    string   `json:"activation_scheme"`
	Excluded  []string `json:"exclude_modules"` // kept in bfloat16
	Groups    map[string]struct {
		Inputs struct{ Dynamic bool } `json:"input_activations"`
	} `json:"config_groups"`
}

// Model reads the shape of a model: of a local folder, or of a known name.
func (r *Root) Model(name string) (ais.Model, error) {
	config, quant, err := r.modelFiles(name)
	if err != nil {
		return ais.Model{}, err
	}
	var c hubConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return ais.Model{}, fmt.Errorf("ais model %s: config.json: %w", name, err)
	}
	if quant != nil {
		var file struct{ Quantization *quantization }
		if err := json.Unmarshal(quant, &file); err != nil {
			return ais.Model{}, fmt.Errorf("ais model %s: hf_quant_config.json: %w", name, err)
		}
		if c.Quantization == nil {
			c.Quantization = file.Quantization
		}
	}
	m, err := c.model(name)
	if err != nil {
		return ais.Model{}, fmt.Errorf("ais model %s: %w", name, err)
	}
	return m, nil
}

// modelFiles reads config.json and, if there is one, hf_quant_config.json.
func (r *Root) modelFiles(name string) (config, quant []byte, err error) {
	if name == "" {
		return nil, nil, errors.New("ais model: must be the name of a model or a folder with config.json")
	}
	if isDir(name) {
		if config, err = os.ReadFile(filepath.Join(name, "config.json")); err != nil {
			return nil, nil, fmt.Errorf("ais model: %w", err)
		}
		quant, err = os.ReadFile(filepath.Join(name, "hf_quant_config.json"))
	} else {
		stem := "model_configs/" + strings.ReplaceAll(name, "/", "--")
		if config, err = fs.ReadFile(r.FS, stem+"_config.json"); err != nil {
			return nil, nil, fmt.Errorf("ais model: got %q, must be a folder with config.json or a known name: %s", name, r.similar(name))
		}
		quant, err = fs.ReadFile(r.FS, stem+"_hf_quant_config.json")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("ais model: %w", err)
	}
	return config, quant, nil
}

// Models lists the names of models whose shape the data knows.
func (r *Root) Models() []string {
	files, _ := fs.Glob(r.FS, "model_configs/*_config.json")
	var names []string
	for _, f := range files {
		if stem := strings.TrimSuffix(strings.TrimPrefix(f, "model_configs/"), "_config.json"); !strings.HasSuffix(stem, "_hf_quant") {
			names = append(names, strings.Replace(stem, "--", "/", 1))
		}
	}
	return names
}

// similar names known models of the same organisation, or with the same word at the start, or how to list them all.
func (r *Root) similar(name string) string {
	org, short, _ := strings.Cut(name, "/")
	var found []string
	for _, m := range r.Models() {
		theirs, theirShort, _ := strings.Cut(m, "/")
		if theirs == org || short != "" && strings.Contains(theirShort, short) {
			found = append(found, m)
		}
	}
	if found == nil {
		return "see 'mockbench ais list'"
	}
	return strings.Join(found, ", ")
}

func (c *hubConfig) model(name string) (ais.Model, error) {
	m := ais.Model{Name: name, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim,
		Inter: c.Inter, Vocab: c.Vocab, TopK: c.TopK, ExpertInter: c.ExpertInter, Experts: max(c.LocalExperts, c.NumExperts, c.RoutedExperts),
		SharedExperts: c.SharedExperts, DenseLayers: c.DenseLayers, QueryRank: c.QueryRank, KVRank: c.KVRank, NoPEDim: c.NoPEDim,
		RoPEDim: c.RoPEDim, ValueDim: c.ValueDim}
	if len(c.Architectures) == 0 {
		return m, errors.New("config.json names no architecture")
	}
	if err := m.Architecture(c.Architectures[0]); err != nil {
		return m, err
	}
	if c.SlidingWindow > 0 && (c.WindowOn == nil || *c.WindowOn) {
		return m, fmt.Errorf("sliding_window %d is not modelled", c.SlidingWindow)
	}
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if m.HeadDim == 0 && m.Heads > 0 {
		m.HeadDim = m.Hidden / m.Heads
	}
	if m.Family == ais.MoE && m.ExpertInter == 0 {
		m.ExpertInter = m.Inter
	}
	var err error
	m.Quants, err = c.Quantization.formats()
	return m, err
}

// formats infers the number formats of the operators.
func (q *quantization) formats() (ais.Quants, error) {
	low := func(gemm, moe ais.Quant) (ais.Quants, error) {
		return ais.Quants{GEMM: gemm, MoE: moe, KVCache: ais.FP8, FMHA: ais.FP8}, nil
	}
	switch {
	case q == nil:
		return ais.Quants{GEMM: ais.BF16, MoE: ais.BF16, KVCache: ais.BF16, FMHA: ais.BF16}, nil
	case q.Algorithm == "NVFP4":
		formats, err := low(ais.NVFP4, ais.NVFP4)
		if slices.ContainsFunc(q.Excluded, func(name string) bool { return strings.Contains(name, "kv_b_proj") }) {
			formats.Latent = ais.BF16
		}
		return formats, err
	case q.Algorithm == "" && q.Method == "fp8" && len(q.Block) > 0:
		return low(ais.FP8Block, ais.FP8Block)
	case q.Algorithm == "FP8", q.Algorithm == "" && q.Method == "fp8":
		for _, g := range q.Groups {
			if g.Inputs.Dynamic {
				return low(ais.FP8, ais.FP8)
			}
		}
		if q.Scheme == "dynamic" {
			return low(ais.FP8, ais.FP8)
		}
		return low(ais.FP8Static, ais.FP8)
	}
	return ais.Quants{}, fmt.Errorf("quantization %s %s is not modelled, supported: none, fp8, NVFP4", q.Method, q.Algorithm)
}
