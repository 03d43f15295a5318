package profiles

import (
	"encoding/json"
	"strconv"
	"strings"

	"mockbench/engine"
)

// Canonical returns the canonical JSON of the configuration: every setting with its final value. Resolve of it gives an
// equal configuration.
func (l *Launch) Canonical() *Object {
	o := NewObject()
	o.Set("engine", engineObject(&l.Engine))
	if l.BandwidthGiven {
		o.Set("engine.kv_transfer_bandwidth", decimal(l.Engine.KVTransferBandwidth))
	}
	if l.External != nil {
		o.Set("engine.timing_model", l.External)
	}
	o.Set("dp_size", number(l.DPSize))
	o.Set("tensor_parallel_size", number(l.TensorParallelSize))
	o.Set("startup_time", decimalOrNull(l.StartupTime))
	o.Set("num_gpu_blocks_is_explicit", l.BlocksExplicit)
	o.Set("gpu_memory_utilization", decimalOrNull(l.GPUMemoryUtilization))
	o.Set("mem_fraction_static", decimalOrNull(l.MemFractionStatic))
	o.Set("free_gpu_memory_fraction", decimalOrNull(l.FreeGPUMemoryFraction))
	o.Set("cuda_graph_reserved_bytes", numberOrNull(l.CUDAGraphReservedBytes))
	o.Set("dynamo", dynamoObject(&l.Dynamo))
	return o
}

func engineObject(c *engine.Config) *Object {
	o := NewObject()
	o.Set("backend", string(c.Backend))
	o.Set("num_gpu_blocks", number(c.NumGPUBlocks))
	o.Set("block_size", number(c.BlockSize))
	o.Set("max_model_len", positiveOrNull(c.MaxModelLen))
	o.Set("max_num_seqs", limit(c.MaxNumSeqs))
	o.Set("max_num_batched_tokens", limit(c.MaxNumBatchedTokens))
	o.Set("prefill_schedule_interval", number(c.PrefillScheduleInterval))
	o.Set("prefill_decode_interval", number(c.PrefillDecodeInterval))
	o.Set("enable_prefix_caching", c.EnablePrefixCaching)
	o.Set("enable_chunked_prefill", c.EnableChunkedPrefill)
	o.Set("speedup_ratio", decimal(c.SpeedupRatio))
	o.Set("decode_speedup_ratio", decimal(c.DecodeSpeedupRatio))
	o.Set("aic_nextn", positiveOrNull(c.Nextn))
	o.Set("aic_nextn_accept_rates", nil)
	if c.Nextn > 0 {
		o.Set("aic_nextn_accept_rates", c.NextnAcceptRates)
	}
	o.Set("aic_mtp_seed", number(c.MTPSeed))
	o.Set("worker_type", string(c.Role))
	o.Set("preemption_mode", string(c.PreemptionMode))
	o.Set("emit_kv_events", c.EmitKVEvents)
	o.Set("emit_kv_token_ids", c.EmitKVTokenIDs)
	o.Set("kv_transfer_bytes_per_token", positiveOrNull(c.KVTransferBytesPerToken))
	if c.KVCacheBytesPerToken > 0 {
		o.Set("kv_cache_bytes_per_token", number(c.KVCacheBytesPerToken))
	}
	if c.HostOffload != nil {
		o.Set("native_host_offload", hostObject(c.HostOffload))
	}
	o.Set("kv_transfer_bandwidth", nil)
	o.Set("kv_transfer_timing_mode", c.KVTransferTimingMode)
	o.Set("timing_model", timingObject(&c.Timing))
	o.Set("sglang.schedule_policy", c.SGLang.SchedulePolicy)
	o.Set("sglang.max_prefill_tokens", number(c.SGLang.MaxPrefillTokens))
	o.Set("sglang.chunked_prefill_size", number(c.SGLang.ChunkedPrefillSize))
	o.Set("sglang.clip_max_new_tokens", number(c.SGLang.ClipMaxNewTokens))
	o.Set("sglang.schedule_conservativeness", decimal(c.SGLang.ScheduleConservativeness))
	o.Set("trtllm.capacity_scheduler_policy", c.TRTLLM.CapacitySchedulerPolicy)
	return o
}

// hostObject leaves out what has its default, as the reference does.
func hostObject(h *engine.HostOffload) *Object {
	d := engine.DefaultHostOffload(h.NumHostBlocks)
	o := NewObject()
	if h.Scope != d.Scope && h.Scope != "" {
		o.Set("scope", h.Scope)
	}
	o.Set("num_host_blocks", number(h.NumHostBlocks))
	o.Set("d2h_bandwidth_gbps", decimal(h.D2HBandwidthGBps))
	o.Set("h2d_bandwidth_gbps", decimal(h.H2DBandwidthGBps))
	for _, f := range []struct {
		name           string
		value, another float64
	}{
		{"shared_d2h_bandwidth_gbps", h.SharedD2HBandwidthGBps, d.SharedD2HBandwidthGBps},
		{"shared_h2d_bandwidth_gbps", h.SharedH2DBandwidthGBps, d.SharedH2DBandwidthGBps},
		{"latency_to_first_byte_ms", h.LatencyMS, d.LatencyMS},
	} {
		if f.value != f.another {
			o.Set(f.name, decimal(f.value))
		}
	}
	if h.KVLayoutID != "" {
		o.Set("kv_layout_id", h.KVLayoutID)
	}
	return o
}

func timingObject(t *engine.TimingConfig) *Object {
	o := NewObject()
	o.Set("type", t.Type)
	if t.Type == "fixed" {
		o.Set("prefill_ms", decimal(t.PrefillMS))
		o.Set("decode_ms", decimal(t.DecodeMS))
	}
	return o
}

func dynamoObject(d *Dynamo) *Object {
	o := NewObject()
	o.Set("enable_local_indexer", d.EnableLocalIndexer)
	o.Set("bootstrap_port", numberOrNull(d.BootstrapPort))
	o.Set("handoff_session_timeout_ms", number(d.HandoffSessionTimeoutMS))
	o.Set("reasoning", nil)
	if r := d.Reasoning; r != nil {
		o.Set("reasoning.start_thinking_token_id", number(r.StartTokenID))
		o.Set("reasoning.end_thinking_token_id", number(r.EndTokenID))
		o.Set("reasoning.thinking_ratio", decimal(r.Ratio))
	}
	o.Set("response_replay_trace_path", textOrNull(d.ResponseReplayTracePath))
	o.Set("zmq_kv_events_port", numberOrNull(d.ZMQKVEventsPort))
	o.Set("zmq_replay_port", numberOrNull(d.ZMQReplayPort))
	o.Set("router_queue_policy", textOrNull(d.RouterQueuePolicy))
	return o
}

func number[T int | uint32 | uint64](n T) json.Number {
	if n < 0 {
		return json.Number(strconv.FormatInt(int64(n), 10))
	}
	return json.Number(strconv.FormatUint(uint64(n), 10))
}

// decimal writes a number so that it reads as a number with a fraction: 1 becomes 1.0.
func decimal(f float64) json.Number {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return json.Number(text)
}

func positiveOrNull(n int) any {
	if n == 0 {
		return nil
	}
	return number(n)
}

func limit(n uint64) any {
	if n == engine.Unlimited {
		return nil
	}
	return number(n)
}

func decimalOrNull(f *float64) any {
	if f == nil {
		return nil
	}
	return decimal(*f)
}

func numberOrNull[T uint32 | uint64](n *T) any {
	if n == nil {
		return nil
	}
	return number(*n)
}

func textOrNull(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}
