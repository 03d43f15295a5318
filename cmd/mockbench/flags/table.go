package flags

import "slices"

// table is every flag, in the order of the help within its group.
var table = slices.Concat(runFlags, engineFlags, workerFlags, routerFlags, otherFlags)

var otherFlags = []*Flag{
	{Name: "--help", Aliases: []string{"-h"}, Group: GroupOther, Help: "Print this text and exit."},
	{Name: "--version", Group: GroupOther, Help: "Print the version this program stands in for and exit."},
}

var engineFlags = []*Flag{
	{Name: "--model-path", Kind: String, Arg: "DIR", Group: GroupModel,
		Help: "Model directory, or hub id found in the local hub cache; without it a small built-in model is served."},
	{Name: "--model-name", Kind: String, Arg: "NAME", Group: GroupModel, Help: "Name in API answers; the model path if not given."},
	{Name: "--endpoint", Kind: String, Arg: "dyn://NS.COMPONENT.ENDPOINT", Group: GroupModel,
		Help: "Where workers are registered; the namespace comes from DYN_NAMESPACE if not given."},
	{Name: "--engine-type", Kind: String, Arg: "NAME", Default: "vllm", Group: GroupEngine, Field: "engine.backend",
		Words: []string{"vllm", "sglang", "trtllm"},
		Help:  "Engine to simulate: vllm, sglang or trtllm."},
	{Name: "--extra-engine-args", Kind: String, Arg: "FILE", Group: GroupEngine,
		Help: "JSON file with the whole engine configuration; it replaces the engine flags."},
	{Name: "--num-gpu-blocks-override", Kind: Int, Arg: "N", Group: GroupEngine, Field: "engine.num_gpu_blocks",
		Help: "KV blocks of a rank (16384)."},
	{Name: "--block-size", Kind: Int, Arg: "TOKENS", Group: GroupEngine, Field: "engine.block_size",
		Help: "Tokens in a KV block (vllm 64, sglang 1, trtllm 32)."},
	{Name: "--max-model-len", Kind: Int, Arg: "TOKENS", Group: GroupEngine, Field: "engine.max_model_len",
		Help: "Longest prompt plus output (no limit)."},
	{Name: "--enable-prefix-caching", Off: []string{"--no-enable-prefix-caching"}, Default: "on", Group: GroupEngine,
		Field: "engine.enable_prefix_caching", Help: "Reuse KV blocks of equal prefixes; off publishes no KV events."},
	{Name: "--enable-chunked-prefill", Off: []string{"--no-enable-chunked-prefill"}, Default: "on", Group: GroupEngine,
		Field: "engine.enable_chunked_prefill", Help: "Let a prompt span several passes."},
	{Name: "--kv-cache-dtype", Kind: String, Arg: "TYPE", Default: "auto", Group: GroupEngine,
		Allowed: []string{"auto", "bfloat16", "fp8", "fp8_ds_mla", "fp8_e4m3", "fp8_e5m2", "fp8_inc"},
		Help:    "Type of cached values, used to compute their size."},
	{Name: "--kv-bytes-per-token", InEngine: true, Kind: Int, Arg: "BYTES", Group: GroupEngine,
		Help: "Size of the cached values of a token; computed from the model's config.json if not given."},
	{Name: "--max-num-seqs", Kind: Int, Arg: "N", Default: "256", Group: GroupEngine, Field: "engine.max_num_seqs",
		Help: "Requests that run at once."},
	{Name: "--max-num-batched-tokens", Kind: Int, Arg: "N", Default: "8192", Group: GroupEngine,
		Field: "engine.max_num_batched_tokens", Help: "Token budget of a pass."},
	{Name: "--preemption-mode", Kind: String, Arg: "MODE", Default: "lifo", Group: GroupEngine, Field: "engine.preemption_mode",
		Words: []string{"lifo", "fifo"},
		Help:  "Which running request is preempted: lifo or fifo."},
	{Name: "--speedup-ratio", Kind: Float, Arg: "X", Default: "1.0", Group: GroupEngine, Field: "engine.speedup_ratio",
		Help: "Divide all pass times by this; 0 means no simulated delay."},
	{Name: "--decode-speedup-ratio", Kind: Float, Arg: "X", Default: "1.0", Group: GroupEngine,
		Field: "engine.decode_speedup_ratio", Help: "Divide decode times by this as well; 0 means no simulated delay."},
	{Name: "--startup-time", Kind: Float, Arg: "SECONDS", Group: GroupEngine, Field: "startup_time",
		Help: "Time a worker needs before it can serve; it is registered at once, and requests wait."},
	{Name: "--data-parallel-size", Kind: Int, Arg: "N", Group: GroupEngine, Field: "dp_size", Help: "Ranks of a worker (1)."},

	{Name: "--num-host-blocks", InEngine: true, Kind: Int, Arg: "N", Group: GroupHost, Help: "Host (G2) blocks of a rank; switches offload on."},
	{Name: "--host-offload-d2h-bandwidth-gbps", InEngine: true, Kind: Float, Arg: "GBPS", Group: GroupHost,
		Help: "Device to host bandwidth in GB/s (32); 0 is unlimited."},
	{Name: "--host-offload-h2d-bandwidth-gbps", InEngine: true, Kind: Float, Arg: "GBPS", Group: GroupHost,
		Help: "Host to device bandwidth in GB/s (32); 0 is unlimited."},

	{Name: "--planner-profile-data", InEngine: true, Kind: String, Arg: "PATH", Group: GroupTiming,
		Help: "Measured pass times: an NPZ file (see mockbench calibrate) or a profiler's results directory."},
	{Name: "--ais-perf-model", InEngine: true, Aliases: []string{"--aic-perf-model"}, Group: GroupTiming, Help: "Pass times from measured kernel latencies; see mockbench ais."},
	{Name: "--ais-perf-config", InEngine: true, Kind: String, Arg: "JSON|FILE", Group: GroupTiming, Help: "The same, with the whole descriptor of model, system and backend."},
	ais("--ais-system", String, "NAME", "", "GPU system of the AIS descriptor."),
	ais("--ais-backend", String, "NAME", "", "Backend of the AIS descriptor; the engine type if not given."),
	ais("--ais-backend-version", String, "VERSION", "", "Backend version of the AIS descriptor."),
	ais("--ais-tp-size", Int, "N", "", "Tensor parallel size of the AIS descriptor."),
	ais("--ais-moe-tp-size", Int, "N", "", "Tensor parallel size of the experts."),
	ais("--ais-moe-ep-size", Int, "N", "", "Expert parallel size."),
	ais("--ais-attention-dp-size", Int, "N", "", "Attention data parallel size; sets --data-parallel-size if that is not given."),
	{Name: "--gpu-memory-utilization", Kind: Float, Arg: "FRACTION", Group: GroupTiming, Field: "gpu_memory_utilization",
		Help: "vLLM memory fraction for the AIS capacity estimate, 0 to 1."},
	{Name: "--mem-fraction-static", Kind: Float, Arg: "FRACTION", Group: GroupTiming, Field: "mem_fraction_static",
		Help: "SGLang memory fraction for the AIS capacity estimate, 0 to 1."},
	{Name: "--free-gpu-memory-fraction", Kind: Float, Arg: "FRACTION", Group: GroupTiming, Field: "free_gpu_memory_fraction",
		Help: "TensorRT-LLM memory fraction for the AIS capacity estimate, 0 to 1."},

	mtp("--ais-nextn", Int, "N", "", "engine.aic_nextn", "Draft tokens of multi-token prediction, 1 to 5."),
	mtp("--ais-nextn-accept-rates", String, "R,R,...", "", "engine.aic_nextn_accept_rates", "Acceptance rate of each draft token."),
	{Name: "--ais-mtp-seed", Aliases: []string{"--aic-mtp-seed"}, Kind: Int, Arg: "N", Default: "42", Group: GroupOutput,
		Field: "engine.aic_mtp_seed", Help: "Seed of the draft acceptance."},
	{Name: "--reasoning", InEngine: true, Kind: String, Arg: "JSON", Group: GroupOutput, Help: "Reasoning span: start and end token ids and its share of the output."},
	{Name: "--response-replay-trace-path", Kind: String, Arg: "FILE", Group: GroupOutput, Field: "dynamo.response_replay_trace_path",
		Help: "Planned output tokens from a trace file."},

	{Name: "--sglang-schedule-policy", InEngine: true, Kind: String, Arg: "POLICY", Group: GroupSGLang,
		Words: []string{"fifo", "lpm"}, Help: "Order of the waiting queue: fifo or lpm."},
	{Name: "--sglang-page-size", InEngine: true, Kind: Int, Arg: "TOKENS", Group: GroupSGLang, ReplacedBy: "--block-size",
		Until: NextVersion, Help: "Tokens in a KV block."},
	{Name: "--sglang-max-prefill-tokens", Kind: Int, Arg: "N", Group: GroupSGLang, Field: "engine.sglang.max_prefill_tokens",
		Help: "Prefill token budget of a pass (16384)."},
	{Name: "--sglang-chunked-prefill-size", Kind: Int, Arg: "N", Group: GroupSGLang, Field: "engine.sglang.chunked_prefill_size",
		Help: "Prefill chunk, a multiple of the block size (8192)."},
	{Name: "--sglang-clip-max-new-tokens", Kind: Int, Arg: "N", Group: GroupSGLang, Field: "engine.sglang.clip_max_new_tokens",
		Help: "Most output tokens reserved at admission (4096)."},
	{Name: "--sglang-schedule-conservativeness", Kind: Float, Arg: "X", Group: GroupSGLang,
		Field: "engine.sglang.schedule_conservativeness", Help: "How carefully output is reserved (1.0)."},
	{Name: "--sglang-generate", Group: GroupSGLang, Help: "Advertise SGLang's own generate interface."},
	{Name: "--trtllm-capacity-scheduler-policy", Kind: String, Arg: "POLICY", Group: GroupSGLang,
		Words: []string{"guaranteed_no_evict"}, Field: "engine.trtllm.capacity_scheduler_policy", Help: "Only guaranteed_no_evict."},
}

func ais(name string, kind Kind, arg, def, help string) *Flag {
	return &Flag{Name: name, Aliases: []string{"--aic" + name[len("--ais"):]}, Kind: kind, Arg: arg, Default: def,
		Group: GroupTiming, InEngine: true, Help: help}
}

func mtp(name string, kind Kind, arg, def, field, help string) *Flag {
	f := ais(name, kind, arg, def, help)
	f.Group, f.Field = GroupOutput, field
	return f
}
