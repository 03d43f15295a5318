package engine

import "math"

// Backend names the engine that is simulated.
type Backend string

const (
	VLLM   Backend = "vllm"
	SGLang Backend = "sglang"
	TRTLLM Backend = "trtllm"
)

// Role is what a worker does in a deployment.
type Role string

const (
	Aggregated  Role = "aggregated"
	PrefillRole Role = "prefill"
	DecodeRole  Role = "decode"
)

// PreemptionMode says which running request a vLLM rank preempts.
type PreemptionMode string

const (
	LIFO PreemptionMode = "lifo"
	FIFO PreemptionMode = "fifo"
)

// Unlimited is the value of a limit that is switched off (null in JSON).
const Unlimited = math.MaxUint64

// Config is the canonical configuration of one rank; JSON names are those of the reference's engine object.
// The zero value is not usable: start from DefaultConfig.
type Config struct {
	Backend                 Backend        `json:"backend"`
	NumGPUBlocks            int            `json:"num_gpu_blocks"`
	BlockSize               int            `json:"block_size"`             // tokens; page size of SGLang
	MaxModelLen             int            `json:"max_model_len"`          // tokens; 0 = no limit
	MaxNumSeqs              uint64         `json:"max_num_seqs"`           // Unlimited allowed
	MaxNumBatchedTokens     uint64         `json:"max_num_batched_tokens"` // Unlimited allowed
	PrefillScheduleInterval int            `json:"prefill_schedule_interval"`
	PrefillDecodeInterval   int            `json:"prefill_decode_interval"`
	EnablePrefixCaching     bool           `json:"enable_prefix_caching"`
	EnableChunkedPrefill    bool           `json:"enable_chunked_prefill"`
	SpeedupRatio            float64        `json:"speedup_ratio"`
	DecodeSpeedupRatio      float64        `json:"decode_speedup_ratio"`
	Nextn                   int            `json:"aic_nextn"` // MTP draft tokens, 1..5; 0 = off
	NextnAcceptRates        string         `json:"aic_nextn_accept_rates"`
	MTPSeed                 uint64         `json:"aic_mtp_seed"`
	Role                    Role           `json:"worker_type"`
	PreemptionMode          PreemptionMode `json:"preemption_mode"`
	EmitKVEvents            bool           `json:"emit_kv_events"`
	EmitKVTokenIDs          bool           `json:"emit_kv_token_ids"`

	KVTransferBytesPerToken int     `json:"kv_transfer_bytes_per_token"` // 0 = unknown
	KVTransferBandwidth     float64 `json:"kv_transfer_bandwidth"`       // GB/s; 0 = no delay
	KVTransferTimingMode    string  `json:"kv_transfer_timing_mode"`
	KVCacheBytesPerToken    int     `json:"kv_cache_bytes_per_token"` // 0 = unknown

	HostOffload *HostOffload `json:"native_host_offload"` // nil = off
	SGLang      SGLangConfig `json:"sglang"`
	TRTLLM      TRTLLMConfig `json:"trtllm"`
	Timing      TimingConfig `json:"timing_model"`
}

// HostOffload configures the G2 tier. Bandwidths are decimal GB/s; 0 is unlimited.
type HostOffload struct {
	NumHostBlocks    int     `json:"num_host_blocks"`
	D2HBandwidthGBps float64 `json:"d2h_bandwidth_gbps"`
	H2DBandwidthGBps float64 `json:"h2d_bandwidth_gbps"`
	Scope            string  `json:"scope"` // "dp_rank_local" (also "") or "cluster_shared"

	SharedD2HBandwidthGBps float64 `json:"shared_d2h_bandwidth_gbps"` // of the whole shared pool
	SharedH2DBandwidthGBps float64 `json:"shared_h2d_bandwidth_gbps"`
	LatencyMS              float64 `json:"latency_to_first_byte_ms"`
	KVLayoutID             string  `json:"kv_layout_id"` // names the layout that members of a shared pool agree on
}

// Scopes of a host tier.
const (
	ScopeRank   = "dp_rank_local"
	ScopeShared = "cluster_shared"
)

// DefaultHostOffload returns the reference's defaults for a host tier of n blocks.
func DefaultHostOffload(n int) *HostOffload {
	return &HostOffload{NumHostBlocks: n, D2HBandwidthGBps: 32, H2DBandwidthGBps: 32, Scope: ScopeRank,
		SharedD2HBandwidthGBps: 80, SharedH2DBandwidthGBps: 80}
}

// SGLangConfig are the settings only that engine reads.
type SGLangConfig struct {
	SchedulePolicy           string  `json:"schedule_policy"`
	MaxPrefillTokens         int     `json:"max_prefill_tokens"`
	ChunkedPrefillSize       int     `json:"chunked_prefill_size"`
	ClipMaxNewTokens         int     `json:"clip_max_new_tokens"`
	ScheduleConservativeness float64 `json:"schedule_conservativeness"`
}

// TRTLLMConfig are the settings only that engine reads.
type TRTLLMConfig struct {
	CapacitySchedulerPolicy string `json:"capacity_scheduler_policy"`
}

// TimingConfig chooses the model that gives pass lengths. Two equal ones choose the same model.
type TimingConfig struct {
	Type      string  `json:"type"` // "polynomial", "fixed" or "external"
	PrefillMS float64 `json:"prefill_ms"`
	DecodeMS  float64 `json:"decode_ms"`

	// External is the model of type "external", made by whoever read its files; nil for other types. It is a pointer.
	External TimingModel `json:"-"`
}

// TimingModel says how long the parts of a pass take. Answers are milliseconds before any speed-up, finite and not
// negative. Counts are positive integers, means are rounded down. All ranks of all workers ask one model, at the same
// time: asking must not change it.
type TimingModel interface {
	// Prefill is the time to compute requests x (meanISL - meanPrefix) prompt tokens.
	Prefill(requests, meanISL, meanPrefix int) float64

	// Decode is the time of one decode step: activeTokens is the sum of the contexts of all requests, meanContext their
	// mean, capacityTokens the token slots of the pool.
	Decode(requests, activeTokens, meanContext, capacityTokens int) float64
}

// DefaultConfig returns the reference's defaults for one backend.
func DefaultConfig(b Backend) Config {
	blockSize := map[Backend]int{VLLM: 64, SGLang: 1, TRTLLM: 32}[b]
	return Config{
		Backend: b, NumGPUBlocks: 16384, BlockSize: blockSize,
		MaxNumSeqs: 256, MaxNumBatchedTokens: 8192, PrefillScheduleInterval: 1,
		EnablePrefixCaching: true, EnableChunkedPrefill: true,
		SpeedupRatio: 1, DecodeSpeedupRatio: 1, MTPSeed: 42,
		Role: Aggregated, PreemptionMode: LIFO, KVTransferTimingMode: "full_prompt",
		SGLang: SGLangConfig{SchedulePolicy: "fifo", MaxPrefillTokens: 16384, ChunkedPrefillSize: 8192,
			ClipMaxNewTokens: 4096, ScheduleConservativeness: 1},
		TRTLLM: TRTLLMConfig{CapacitySchedulerPolicy: "guaranteed_no_evict"},
		Timing: TimingConfig{Type: "polynomial"},
	}
}
