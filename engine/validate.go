package engine

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Validate reports the first setting that is wrong, in the reference's order, as a *SettingError.
func (c *Config) Validate() error {
	checks := []func() *SettingError{
		c.checkWords, c.checkLimits, c.checkBackendOnly, c.checkSpeed, c.checkDrafts, c.checkEvents,
		c.checkHostOffload, c.checkTransfer, c.checkTiming,
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func wrong(setting string, kind Kind, given any, allowed string) *SettingError {
	return &SettingError{Setting: "engine." + setting, Kind: kind, Given: fmt.Sprint(given), Allowed: allowed}
}

// oneOf checks a setting whose values are words.
func oneOf[S ~string](setting string, given S, words ...S) *SettingError {
	if slices.Contains(words, given) {
		return nil
	}
	return wrong(setting, KindUnknown, fmt.Sprintf("%q", given), fmt.Sprintf("must be one of %v", words))
}

func (c *Config) checkWords() *SettingError {
	if err := oneOf("backend", c.Backend, VLLM, SGLang, TRTLLM); err != nil {
		return err
	}
	if err := oneOf("worker_type", c.Role, Aggregated, PrefillRole, DecodeRole); err != nil {
		return err
	}
	if err := oneOf("preemption_mode", c.PreemptionMode, LIFO, FIFO); err != nil {
		return err
	}
	if err := oneOf("sglang.schedule_policy", c.SGLang.SchedulePolicy, "fifo", "lpm"); err != nil {
		return err
	}
	if err := oneOf("trtllm.capacity_scheduler_policy", c.TRTLLM.CapacitySchedulerPolicy, "guaranteed_no_evict"); err != nil {
		return err
	}
	if err := oneOf("kv_transfer_timing_mode", c.KVTransferTimingMode, "full_prompt", "destination_missing"); err != nil {
		return err
	}
	if c.HostOffload != nil {
		return oneOf("native_host_offload.scope", c.HostOffload.Scope, "", ScopeRank, ScopeShared)
	}
	return nil
}

func (c *Config) checkLimits() *SettingError {
	const positive = "must be positive"
	switch {
	case c.NumGPUBlocks <= 0:
		return wrong("num_gpu_blocks", KindRange, c.NumGPUBlocks, positive)
	case c.NumGPUBlocks > math.MaxInt32:
		return wrong("num_gpu_blocks", KindRange, c.NumGPUBlocks, fmt.Sprintf("must be at most %d", math.MaxInt32))
	case c.BlockSize <= 0:
		return wrong("block_size", KindRange, c.BlockSize, positive)
	case c.BlockSize < 2 && c.Backend != SGLang:
		return wrong("block_size", KindRange, c.BlockSize, fmt.Sprintf("must be at least 2 with backend %s", c.Backend))
	case c.MaxNumSeqs == 0:
		return wrong("max_num_seqs", KindRange, c.MaxNumSeqs, positive)
	case c.MaxNumBatchedTokens == 0:
		return wrong("max_num_batched_tokens", KindRange, c.MaxNumBatchedTokens, positive)
	}
	return nil
}

func (c *Config) checkBackendOnly() *SettingError {
	switch {
	case c.PrefillScheduleInterval <= 0:
		return wrong("prefill_schedule_interval", KindRange, c.PrefillScheduleInterval, "must be positive")
	case c.PrefillScheduleInterval > 1 && c.Backend != VLLM:
		return wrong("prefill_schedule_interval", KindUnsupported, c.PrefillScheduleInterval,
			"must be 1 unless the backend is vllm; sglang has prefill_decode_interval")
	case c.PrefillDecodeInterval < 0:
		return wrong("prefill_decode_interval", KindRange, c.PrefillDecodeInterval, "must not be negative")
	case c.PrefillDecodeInterval > 0 && c.Backend != SGLang:
		return wrong("prefill_decode_interval", KindUnsupported, c.PrefillDecodeInterval, "must be 0 unless the backend is sglang")
	case c.MaxModelLen < 0:
		return wrong("max_model_len", KindRange, c.MaxModelLen, "must be positive or unset")
	case c.Backend == SGLang:
		return c.checkSGLang()
	}
	return nil
}

func (c *Config) checkSGLang() *SettingError {
	s := &c.SGLang
	switch {
	case !c.EnableChunkedPrefill:
		return wrong("enable_chunked_prefill", KindUnsupported, false, "must be true with backend sglang")
	case s.MaxPrefillTokens <= 0:
		return wrong("sglang.max_prefill_tokens", KindRange, s.MaxPrefillTokens, "must be positive")
	case s.ChunkedPrefillSize <= 0:
		return wrong("sglang.chunked_prefill_size", KindRange, s.ChunkedPrefillSize, "must be positive")
	case s.ClipMaxNewTokens < 0:
		return wrong("sglang.clip_max_new_tokens", KindRange, s.ClipMaxNewTokens, "must not be negative")
	case !finite(s.ScheduleConservativeness):
		return wrong("sglang.schedule_conservativeness", KindRange, s.ScheduleConservativeness, finiteText)
	case s.ChunkedPrefillSize%c.BlockSize != 0:
		return wrong("sglang.chunked_prefill_size", KindConflict, s.ChunkedPrefillSize,
			fmt.Sprintf("must be a multiple of engine.block_size %d", c.BlockSize))
	}
	return nil
}

const finiteText = "must be finite and not negative"

func finite(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

func (c *Config) checkSpeed() *SettingError {
	if !finite(c.SpeedupRatio) {
		return wrong("speedup_ratio", KindRange, c.SpeedupRatio, finiteText)
	}
	if !finite(c.DecodeSpeedupRatio) {
		return wrong("decode_speedup_ratio", KindRange, c.DecodeSpeedupRatio, finiteText)
	}
	return nil
}

func (c *Config) checkEvents() *SettingError {
	if c.EmitKVTokenIDs && !c.EmitKVEvents {
		return wrong("emit_kv_token_ids", KindMissing, true, "needs engine.emit_kv_events")
	}
	if c.KVTransferBytesPerToken < 0 {
		return wrong("kv_transfer_bytes_per_token", KindRange, c.KVTransferBytesPerToken, "must be positive or unset")
	}
	if c.KVCacheBytesPerToken < 0 {
		return wrong("kv_cache_bytes_per_token", KindRange, c.KVCacheBytesPerToken, "must be positive or unset")
	}
	return nil
}

func (c *Config) checkTransfer() *SettingError {
	if !finite(c.KVTransferBandwidth) {
		return wrong("kv_transfer_bandwidth", KindRange, c.KVTransferBandwidth, finiteText)
	}
	return nil
}

func (c *Config) checkTiming() *SettingError {
	switch {
	case c.Timing.Type == "":
		return wrong("timing_model", KindMissing, `""`, "must name a model")
	case c.Timing.Type == "external" && c.Timing.External == nil:
		return wrong("timing_model", KindMissing, "", "type external needs a model that was read from its files")
	case c.Timing.Type != "fixed":
		return nil
	case !finite(c.Timing.PrefillMS):
		return wrong("timing_model.prefill_ms", KindRange, c.Timing.PrefillMS, finiteText)
	case !finite(c.Timing.DecodeMS):
		return wrong("timing_model.decode_ms", KindRange, c.Timing.DecodeMS, finiteText)
	}
	return nil
}

func (c *Config) checkHostOffload() *SettingError {
	h := c.HostOffload
	if h == nil {
		return nil
	}
	if err := h.check(); err != nil {
		return err
	}
	const name = "native_host_offload"
	switch {
	case c.Backend != VLLM:
		return wrong(name, KindUnsupported, c.Backend, "needs backend vllm")
	case !c.EnablePrefixCaching:
		return wrong(name, KindConflict, "engine.enable_prefix_caching false", "needs prefix caching")
	case c.Nextn != 0:
		return wrong(name, KindUnsupported, fmt.Sprintf("engine.aic_nextn %d", c.Nextn), "does not work with speculative decoding")
	case c.KVCacheBytesPerToken == 0:
		return wrong("kv_cache_bytes_per_token", KindMissing, "none", "is needed by engine.native_host_offload")
	}
	high, bytes := bits.Mul64(uint64(c.BlockSize), uint64(c.KVCacheBytesPerToken))
	if high != 0 {
		return wrong("kv_cache_bytes_per_token", KindRange, c.KVCacheBytesPerToken, "makes a block of more than 2^64 bytes")
	}
	high, capacity := bits.Mul64(bytes, uint64(h.NumHostBlocks))
	if high != 0 {
		return wrong(name+".num_host_blocks", KindRange, h.NumHostBlocks, "makes a capacity of more than 2^64 bytes")
	}
	for _, b := range h.bandwidths() {
		perMS := b.value * 1e6
		if math.IsInf(perMS, 0) || b.value > 0 && math.IsInf(float64(capacity)/perMS, 0) {
			return wrong(name+"."+b.setting, KindRange, b.value, "makes transfers of no finite length")
		}
	}
	return nil
}

type namedValue struct {
	setting string
	value   float64
}

func (h *HostOffload) bandwidths() []namedValue {
	return []namedValue{
		{"d2h_bandwidth_gbps", h.D2HBandwidthGBps}, {"h2d_bandwidth_gbps", h.H2DBandwidthGBps},
		{"shared_d2h_bandwidth_gbps", h.SharedD2HBandwidthGBps}, {"shared_h2d_bandwidth_gbps", h.SharedH2DBandwidthGBps},
	}
}

// check checks what needs no other setting.
func (h *HostOffload) check() *SettingError {
	const name = "native_host_offload."
	if h.NumHostBlocks <= 0 {
		return wrong(name+"num_host_blocks", KindRange, h.NumHostBlocks, "must be positive")
	}
	for _, n := range append(h.bandwidths(), namedValue{"latency_to_first_byte_ms", h.LatencyMS}) {
		if !finite(n.value) {
			return wrong(name+n.setting, KindRange, n.value, finiteText)
		}
	}
	if h.Scope == ScopeShared && blank(h.KVLayoutID) {
		return wrong(name+"kv_layout_id", KindMissing, fmt.Sprintf("%q", h.KVLayoutID), "must not be blank with scope "+ScopeShared)
	}
	return nil
}
