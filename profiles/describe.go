package profiles

import "strings"

// describe adds what people should know of each setting. path is the dotted name of what the schema describes.
func (s *Schema) describe(path string) {
	s.Description = descriptions[path]
	for name, p := range s.Properties {
		p.describe(strings.TrimPrefix(path+"."+name, "."))
	}
}

// at returns the schema of a setting.
func (s *Schema) at(setting string) *Schema {
	for name := range strings.SplitSeq(setting, ".") {
		s = s.Properties[name]
	}
	return s
}

// descriptions are one sentence for each setting, without what type, range and default say.
var descriptions = map[string]string{
	"version":                    "Version of the form of profiles.",
	"description":                "What the profile shows; the first comment of the file if it is not given.",
	"workers":                    "Workers in the process.",
	"prefill_workers":            "Prefill workers in the process, with decode_workers and in place of workers.",
	"decode_workers":             "Decode workers in the process, with prefill_workers and in place of workers.",
	"dp_size":                    "Data-parallel ranks of a worker.",
	"tensor_parallel_size":       "GPUs that share a rank.",
	"startup_time":               "Seconds a worker needs before it can serve.",
	"num_gpu_blocks_is_explicit": "Whether the number of blocks was given, not estimated.",
	"gpu_memory_utilization":     "vLLM: memory fraction for the capacity estimate.",
	"mem_fraction_static":        "SGLang: memory fraction for the capacity estimate.",
	"free_gpu_memory_fraction":   "TensorRT-LLM: memory fraction for the capacity estimate.",
	"cuda_graph_reserved_bytes":  "Bytes kept for CUDA graphs in the capacity estimate.",

	"engine":                             "One rank: scheduler, KV cache and timing.",
	"engine.backend":                     "Engine to simulate.",
	"engine.num_gpu_blocks":              "KV blocks of a rank.",
	"engine.block_size":                  "Tokens in a KV block (vllm 64, sglang 1, trtllm 32).",
	"engine.max_model_len":               "Longest prompt plus output in tokens; none if not given.",
	"engine.max_num_seqs":                "Requests that run at once.",
	"engine.max_num_batched_tokens":      "Token budget of a pass.",
	"engine.prefill_schedule_interval":   "vLLM: passes between admissions of prefills.",
	"engine.prefill_decode_interval":     "SGLang: decode passes between prefill passes.",
	"engine.enable_prefix_caching":       "Reuse KV blocks of equal prefixes.",
	"engine.enable_chunked_prefill":      "Let a prompt span several passes.",
	"engine.speedup_ratio":               "Pass times are divided by this; 0 means no simulated delay.",
	"engine.decode_speedup_ratio":        "Decode times are divided by this as well; 0 means no simulated delay.",
	"engine.aic_nextn":                   "Draft tokens of multi-token prediction; none if not given.",
	"engine.aic_nextn_accept_rates":      "Acceptance rate of each draft token, separated by commas.",
	"engine.aic_mtp_seed":                "Seed of the draft acceptance.",
	"engine.worker_type":                 "Role of the rank.",
	"engine.preemption_mode":             "vLLM: what is preempted, the latest request (lifo) or the first (fifo).",
	"engine.emit_kv_events":              "Record KV events; a live worker decides that by itself.",
	"engine.emit_kv_token_ids":           "Record token ids in KV events; a live worker decides that by itself.",
	"engine.kv_transfer_bytes_per_token": "Size of the cached values of a token in a transfer between workers.",
	"engine.kv_bytes_per_token":          "Another name of kv_transfer_bytes_per_token.",
	"engine.kv_cache_bytes_per_token":    "Size of the cached values of a token in host offload.",
	"engine.kv_transfer_bandwidth":       "GB/s of transfers between workers; 0 means no delay.",
	"engine.kv_transfer_timing_mode":     "What a transfer moves.",

	"engine.native_host_offload":                           "Host tier (G2) of a rank.",
	"engine.native_host_offload.scope":                     "Who shares the tier.",
	"engine.native_host_offload.num_host_blocks":           "Blocks of the tier.",
	"engine.native_host_offload.d2h_bandwidth_gbps":        "GB/s from device to host; 0 is unlimited.",
	"engine.native_host_offload.h2d_bandwidth_gbps":        "GB/s from host to device; 0 is unlimited.",
	"engine.native_host_offload.shared_d2h_bandwidth_gbps": "GB/s from all devices to a shared tier; 0 is unlimited.",
	"engine.native_host_offload.shared_h2d_bandwidth_gbps": "GB/s from a shared tier to all devices; 0 is unlimited.",
	"engine.native_host_offload.latency_to_first_byte_ms":  "Milliseconds before a copy moves its first byte.",
	"engine.native_host_offload.kv_layout_id":              "Layout of blocks that members of a shared tier agree on.",

	"engine.timing_model":                     "How long passes take: curves, fixed times, or tables from outside.",
	"engine.sglang":                           "Settings that only SGLang reads.",
	"engine.sglang.schedule_policy":           "Order of the waiting queue.",
	"engine.sglang.max_prefill_tokens":        "Prefill token budget of a pass.",
	"engine.sglang.chunked_prefill_size":      "Prefill chunk in tokens, a multiple of the block size.",
	"engine.sglang.clip_max_new_tokens":       "Most output tokens reserved at admission.",
	"engine.sglang.schedule_conservativeness": "How carefully output is reserved: 0 hopes, 1 reserves what is asked for.",
	"engine.trtllm":                           "Settings that only TensorRT-LLM reads.",
	"engine.trtllm.capacity_scheduler_policy": "How capacity is kept.",

	"engine.g3_offload":              "Not supported by this build.",
	"engine.state_cache":             "Not supported by this build.",
	"engine.prefix_match_unit":       "Not supported by this build.",
	"engine.kv_cache_groups":         "Not supported by this build.",
	"engine.kv_cache_capacity_bytes": "Not supported by this build.",

	"dynamo":                                   "How a worker meets the rest of a deployment.",
	"dynamo.enable_local_indexer":              "Routers can recover lost KV events from the worker.",
	"dynamo.bootstrap_port":                    "Bootstrap port of a prefill worker.",
	"dynamo.handoff_session_timeout_ms":        "Milliseconds a prefill worker keeps blocks that nobody takes.",
	"dynamo.reasoning":                         "Part of the output that is wrapped as reasoning.",
	"dynamo.reasoning.start_thinking_token_id": "Token that begins it.",
	"dynamo.reasoning.end_thinking_token_id":   "Token that ends it.",
	"dynamo.reasoning.thinking_ratio":          "Its share of the output, 0 to 1.",
	"dynamo.response_replay_trace_path":        "File with planned output tokens.",
	"dynamo.zmq_kv_events_port":                "Port on which rank 0 publishes KV events on the vLLM wire.",
	"dynamo.zmq_replay_port":                   "Port on which rank 0 answers replay requests of the vLLM wire.",
	"dynamo.router_queue_policy":               "Order of the router's queue in a replay.",

	"load":               "Built-in load; without it requests come from a frontend.",
	"load.rate":          "Requests a second, arrivals at random (open loop).",
	"load.burst":         "Requests that arrive together, if a rate is given; at the same rate.",
	"load.concurrency":   "Requests in flight at any time, if no rate is given (closed loop).",
	"load.sessions":      "Conversations at any time, in flight or thinking, if no rate and no concurrency is given.",
	"load.max_in_flight": "Open loop: arrivals beyond so many requests in flight are dropped (4096).",
	"load.prompt_mean":   "New tokens of a prompt, mean.",
	"load.prompt_spread": "New tokens of a prompt, standard deviation.",
	"load.output_mean":   "Tokens of an answer, mean.",
	"load.output_spread": "Tokens of an answer, standard deviation.",
	"load.prefix_count":  "Number of different shared prefixes.",
	"load.prefix_length": "Tokens of each of them.",
	"load.prefix_share":  "Share of the conversations that begin with one, 0 to 1.",
	"load.turns":         "Most turns of a conversation; their number is uniform from 1.",
	"load.think_time":    "Mean simulated milliseconds between an answer and the next turn.",
	"load.max_prompt":    "A conversation whose next prompt would be longer ends (8192).",
	"load.routing":       "How requests are placed on workers.",

	"load.router":                              "Weights of the costs that routing kv compares, in blocks; the lowest cost wins.",
	"load.router.overlap_score_credit":         "Blocks taken off for a cached device block.",
	"load.router.overlap_score_credit_decay":   "How fast a prefill backlog devalues that credit.",
	"load.router.prefill_load_scale":           "Weight of the prefill term.",
	"load.router.decode_active_request_weight": "Blocks that an active request stands for.",
	"load.router.host_cache_hit_weight":        "Value of a block in host memory, 0 to 1.",
	"load.router.disk_cache_hit_weight":        "Value of a block on disk, 0 to 1.",
	"load.router.router_temperature":           "Randomness of the choice; 0 always takes the lowest cost.",
	"load.router.router_track_prefill_tokens":  "Count tokens whose prefill has not ended.",

	"slo":         "Limits that latencies and goodput are measured against; 0 is none.",
	"slo.ttft_ms": "Most milliseconds from arrival to the first token.",
	"slo.itl_ms":  "Most milliseconds between two tokens; goodput compares the mean of a request.",
	"slo.e2e_ms":  "Most milliseconds from arrival to the last token.",
}
