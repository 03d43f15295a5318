// Package modelcard makes the card by which a worker describes its model to frontends: names, files with their
// checksums, context lengths and what the runtime can do. It also finds the model's directory, or provides one.
package modelcard

import (
	"encoding/json"

	"mockbench/engine"
)

// Card is a model card as it is published. The order of its fields is the reference's.
type Card struct {
	DisplayName string          `json:"display_name"`
	Slug        string          `json:"slug"`
	SourcePath  string          `json:"source_path,omitempty"`
	ModelInfo   *namedFile      `json:"model_info"`
	Tokenizer   *namedFile      `json:"tokenizer"`
	Formatter   *namedFile      `json:"prompt_formatter,omitempty"`
	Template    *namedFile      `json:"chat_template_file,omitempty"`
	Generation  *namedFile      `json:"gen_config,omitempty"`
	Architected *uint32         `json:"architectural_max_context_length,omitempty"`
	Context     uint32          `json:"context_length"`
	BlockSize   int             `json:"kv_cache_block_size"`
	Migrations  int             `json:"migration_limit"`
	ModelType   string          `json:"model_type"`
	ModelInput  string          `json:"model_input"`
	WorkerType  string          `json:"worker_type"`
	Needs       [][]string      `json:"needs"`
	Runtime     Runtime         `json:"runtime_config"`
	Decoder     *struct{}       `json:"media_decoder"`
	Fetcher     *struct{}       `json:"media_fetcher"`
	Router      json.RawMessage `json:"router_config,omitempty"`
	ExtraFiles  []File          `json:"extra_files,omitempty"`
}

// Runtime is the part of a card that workers of one model may differ in, its context length excepted.
type Runtime struct {
	ContextLength      uint32            `json:"context_length"`
	TotalKVBlocks      int               `json:"total_kv_blocks"` // of each rank
	MaxNumSeqs         uint64            `json:"max_num_seqs"`
	MaxBatchedTokens   uint64            `json:"max_num_batched_tokens"`
	ToolParser         *string           `json:"tool_call_parser"`
	ReasoningParser    *string           `json:"reasoning_parser"`
	ToolArguments      string            `json:"tool_call_arguments_format"`
	TagMode            string            `json:"structural_tag_mode"`
	TagScope           string            `json:"structural_tag_scope"`
	TagSchema          string            `json:"structural_tag_schema"`
	ExcludeTools       bool              `json:"exclude_tools_when_tool_choice_none"`
	StartRank          int               `json:"data_parallel_start_rank"`
	Ranks              int               `json:"data_parallel_size"`
	LocalIndexer       bool              `json:"enable_local_indexer"`
	KVEvents           bool              `json:"kv_event_publishing_enabled"`
	Data               map[string]bool   `json:"runtime_data"`
	Bootstrap          *Bootstrap        `json:"disaggregated_endpoint,omitempty"`
	Eagle              bool              `json:"enable_eagle"`
	Taints             []string          `json:"taints,omitempty"`
	StableRoutingID    string            `json:"stable_routing_id,omitempty"`
	TopologyDomains    map[string]string `json:"topology_domains,omitempty"`
	TransferDomain     string            `json:"kv_transfer_domain,omitempty"`
	TransferEnforced   string            `json:"kv_transfer_enforcement,omitempty"`
	TransferPreference *float32          `json:"kv_transfer_preferred_weight,omitempty"`
}

// Bootstrap is where decode workers reach a prefill worker.
type Bootstrap struct {
	Host string `json:"bootstrap_host"`
	Port int    `json:"bootstrap_port"`
}

// Options describe the worker whose card is made.
type Options struct {
	Model           Model
	Name            string // name in answers; "" is the model's own
	Engine          engine.Config
	Role            engine.Role // as registered; empty is the engine's, from which a file can make it differ
	Ranks           int
	LocalIndexer    bool // KV events can be asked for again
	SGLangGenerate  bool
	Bootstrap       *Bootstrap
	StableRoutingID string
	Topology        Topology
	Router          json.RawMessage // advertised router configuration, nil for none
	SelfHost        string          // URL prefix under which the worker serves the model's files, "" if it does not
}

// New makes the card of a worker. It reads and hashes the model's files.
func New(o Options) (*Card, error) {
	c := &Card{DisplayName: o.Name, ModelInput: "Tokens", ModelType: "Chat | Completions", Needs: [][]string{},
		BlockSize: o.Engine.BlockSize, Context: uint32(o.Engine.MaxModelLen), Router: o.Router,
		SourcePath: o.Model.Source}
	if c.DisplayName == "" {
		c.DisplayName = o.Model.Source
		if !o.Model.Hub {
			c.SourcePath = ""
		}
	}
	c.Slug = Slug(c.DisplayName)
	if err := c.addFiles(o); err != nil {
		return nil, err
	}
	c.describe(o)
	return c, nil
}

// describe fills in what does not come from the model's files.
func (c *Card) describe(o Options) {
	role := o.Role
	if role == "" {
		role = o.Engine.Role
	}
	c.WorkerType = string(role)
	switch role {
	case engine.PrefillRole:
		c.Needs, c.ModelType = [][]string{{"decode"}}, ""
	case engine.DecodeRole:
		c.Needs = [][]string{{"prefill"}}
	}
	c.Runtime = NewRuntime(o)
}

// NewRuntime returns the runtime configuration of a worker's card. Of the options it needs the engine, and what the card
// is to say beside that; it reads no file.
func NewRuntime(o Options) Runtime {
	decode := o.Engine.Role == engine.DecodeRole
	r := Runtime{
		ContextLength: uint32(o.Engine.MaxModelLen), TotalKVBlocks: o.Engine.NumGPUBlocks,
		MaxNumSeqs: o.Engine.MaxNumSeqs, MaxBatchedTokens: o.Engine.MaxNumBatchedTokens,
		ToolArguments: "json_string", TagMode: "off", TagScope: "auto", TagSchema: "auto", ExcludeTools: true,
		Ranks: o.Ranks, LocalIndexer: o.LocalIndexer && !decode, KVEvents: o.Engine.EnablePrefixCaching && !decode,
		Data: map[string]bool{"output_replay_consumer": true}, StableRoutingID: o.StableRoutingID,
		Taints: o.Topology.taints(), TopologyDomains: o.Topology.Domains, TransferDomain: o.Topology.Domain,
		TransferEnforced: o.Topology.Enforcement, TransferPreference: o.Topology.Weight,
	}
	if o.SGLangGenerate {
		r.Data["sglang_generate"] = true
	}
	if o.Engine.Role == engine.PrefillRole {
		r.Bootstrap = o.Bootstrap
	}
	return r
}
