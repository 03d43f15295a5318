package profiles

import (
	"fmt"

	"mockbench/engine"
)

func launchFields(l *Launch) fields {
	return fields{
		"engine":                     object(engineFields(l)),
		"dynamo":                     object(dynamoFields(l)).reading(func(string, any) error { return nil }), // read first
		"dp_size":                    integer(&l.DPSize, 1, 1<<32-1),
		"tensor_parallel_size":       integer(&l.TensorParallelSize, 1, 1<<32-1),
		"startup_time":               optional(&l.StartupTime, float),
		"num_gpu_blocks_is_explicit": boolean(&l.BlocksExplicit),
		"gpu_memory_utilization":     optional(&l.GPUMemoryUtilization, float),
		"mem_fraction_static":        optional(&l.MemFractionStatic, float),
		"free_gpu_memory_fraction":   optional(&l.FreeGPUMemoryFraction, float),
		"cuda_graph_reserved_bytes":  optional(&l.CUDAGraphReservedBytes, anyU64),
	}
}

func engineFields(l *Launch) fields {
	c := &l.Engine
	bytesGiven, bytes := "", orNull(integer(&c.KVTransferBytesPerToken, 1, maxInt))
	transferBytes := bytes.reading(func(path string, v any) error {
		if bytesGiven != "" {
			return &engine.SettingError{Setting: path, Kind: engine.KindConflict, Allowed: "is the same setting as " + bytesGiven + ", give one of them"}
		}
		bytesGiven = path
		return bytes.read(path, v)
	})
	return fields{
		"backend":                     word(&c.Backend, engine.VLLM, engine.SGLang, engine.TRTLLM),
		"num_gpu_blocks":              integer(&c.NumGPUBlocks, 1, maxInt),
		"block_size":                  orNull(integer(&c.BlockSize, 1, maxInt)),
		"max_model_len":               orNull(integer(&c.MaxModelLen, 1, maxInt)),
		"max_num_seqs":                unlimited(&c.MaxNumSeqs),
		"max_num_batched_tokens":      unlimited(&c.MaxNumBatchedTokens),
		"prefill_schedule_interval":   integer(&c.PrefillScheduleInterval, 1, maxInt),
		"prefill_decode_interval":     integer(&c.PrefillDecodeInterval, 0, maxInt),
		"enable_prefix_caching":       boolean(&c.EnablePrefixCaching),
		"enable_chunked_prefill":      boolean(&c.EnableChunkedPrefill),
		"speedup_ratio":               float(&c.SpeedupRatio),
		"decode_speedup_ratio":        float(&c.DecodeSpeedupRatio),
		"aic_nextn":                   orNull(draftTokens(&c.Nextn)),
		"aic_nextn_accept_rates":      orNull(rates(l)),
		"aic_mtp_seed":                anyU64(&c.MTPSeed),
		"worker_type":                 word(&c.Role, engine.Aggregated, engine.PrefillRole, engine.DecodeRole),
		"preemption_mode":             word(&c.PreemptionMode, engine.LIFO, engine.FIFO),
		"emit_kv_events":              boolean(&c.EmitKVEvents),
		"emit_kv_token_ids":           boolean(&c.EmitKVTokenIDs),
		"kv_transfer_bytes_per_token": transferBytes,
		"kv_bytes_per_token":          field{transferBytes.read, transferBytes.schema.orNull()}, // described on its own
		"kv_cache_bytes_per_token":    orNull(integer(&c.KVCacheBytesPerToken, 1, maxInt)),
		"kv_transfer_bandwidth":       orNull(float(&c.KVTransferBandwidth)),
		"kv_transfer_timing_mode":     word(&c.KVTransferTimingMode, "full_prompt", "destination_missing"),
		"native_host_offload":         orNull(hostOffload(c)),
		"timing_model":                timingModel(l),
		"sglang": object(fields{
			"schedule_policy":           word(&c.SGLang.SchedulePolicy, "fifo", "lpm"),
			"max_prefill_tokens":        integer(&c.SGLang.MaxPrefillTokens, 0, maxInt),
			"chunked_prefill_size":      integer(&c.SGLang.ChunkedPrefillSize, 0, maxInt),
			"clip_max_new_tokens":       integer(&c.SGLang.ClipMaxNewTokens, 0, maxInt),
			"schedule_conservativeness": float(&c.SGLang.ScheduleConservativeness),
		}),
		"trtllm":                  object(fields{"capacity_scheduler_policy": word(&c.TRTLLM.CapacitySchedulerPolicy, "guaranteed_no_evict")}),
		"g3_offload":              unsupported(),
		"state_cache":             unsupported(),
		"prefix_match_unit":       unsupported(),
		"kv_cache_groups":         unsupported(),
		"kv_cache_capacity_bytes": unsupported(),
	}
}

func dynamoFields(l *Launch) fields {
	d := &l.Dynamo
	return fields{
		"enable_local_indexer":       boolean(&d.EnableLocalIndexer),
		"bootstrap_port":             optional(&d.BootstrapPort, port),
		"handoff_session_timeout_ms": integer(&d.HandoffSessionTimeoutMS, 1, maxU64),
		"reasoning":                  orNull(reasoning(l)),
		"response_replay_trace_path": optional(&d.ResponseReplayTracePath, text[string]),
		"zmq_kv_events_port":         optional(&d.ZMQKVEventsPort, port),
		"zmq_replay_port":            optional(&d.ZMQReplayPort, port),
		"router_queue_policy": optional(&d.RouterQueuePolicy, func(dst *string) field {
			return word(dst, "fcfs", "lcfs", "wspt")
		}),
	}
}

// draftTokens refuses an explicit 0, which the engine takes for unset; the upper bound is the engine's.
func draftTokens(dst *int) field {
	number := integer(dst, 0, maxInt)
	return field{schema: integerSchema(1, 5), read: func(path string, v any) error {
		if err := number.read(path, v); err != nil || *dst > 0 {
			return err
		}
		return bad(path, engine.KindRange, v, "must be between 1 and 5, or null for none")
	}}
}

func anyU64(dst *uint64) field { return integer(dst, 0, maxU64) }

func port(dst *uint32) field { return integer(dst, 0, 65535) }

// rates reads the acceptance rates; even an empty text needs the setting it belongs to.
func rates(l *Launch) field {
	setting := text(&l.Engine.NextnAcceptRates)
	return setting.reading(func(path string, v any) error {
		if err := setting.read(path, v); err != nil {
			return err
		}
		if l.Engine.NextnAcceptRates == "" {
			l.Engine.NextnAcceptRates = " " // blank means the default rates, unset means none
		}
		return nil
	})
}

func hostOffload(c *engine.Config) field {
	h := engine.DefaultHostOffload(0)
	settings := object(fields{
		"scope":                     hostScope(&h.Scope),
		"num_host_blocks":           integer(&h.NumHostBlocks, 0, maxInt),
		"d2h_bandwidth_gbps":        float(&h.D2HBandwidthGBps),
		"h2d_bandwidth_gbps":        float(&h.H2DBandwidthGBps),
		"shared_d2h_bandwidth_gbps": float(&h.SharedD2HBandwidthGBps),
		"shared_h2d_bandwidth_gbps": float(&h.SharedH2DBandwidthGBps),
		"latency_to_first_byte_ms":  float(&h.LatencyMS),
		"kv_layout_id":              orNull(text(&h.KVLayoutID)),
	}).requiring("num_host_blocks")
	return settings.reading(func(path string, v any) error {
		if err := settings.read(path, v); err != nil {
			return err
		}
		c.HostOffload = h
		return nil
	})
}

func hostScope(dst *string) field {
	known := word(dst, engine.ScopeRank, engine.ScopeShared)
	return known.reading(func(path string, v any) error {
		if v == "worker_local" {
			return bad(path, engine.KindUnknown, v, "is a scope of g3_offload, allowed: dp_rank_local, cluster_shared")
		}
		return known.read(path, v)
	})
}

func timingModel(l *Launch) field {
	return field{schema: timingSchema(), read: func(path string, v any) error {
		o, ok := v.(*Object)
		if !ok {
			return bad(path, engine.KindType, v, "must be an object")
		}
		kind, _ := o.Get("type")
		switch kind {
		case nil:
			return missing(path + ".type")
		case "polynomial":
			for _, k := range o.Keys() {
				if k != "type" {
					l.Warnings = append(l.Warnings, fmt.Sprintf("%s.%s has no effect with the polynomial model", path, k))
				}
			}
			l.Engine.Timing = engine.TimingConfig{Type: "polynomial"}
			return nil
		case "fixed":
			return fixedTiming(l, path, o)
		case "external":
			return externalTiming(l, path, o)
		}
		return bad(path+".type", engine.KindUnknown, kind, "allowed: polynomial, fixed, external")
	}}
}

func fixedTiming(l *Launch, path string, o *Object) error {
	t := engine.TimingConfig{}
	f := fields{"type": text(&t.Type), "prefill_ms": float(&t.PrefillMS), "decode_ms": float(&t.DecodeMS)}
	if err := f.read(path, o); err != nil {
		return err
	}
	for _, k := range []string{"prefill_ms", "decode_ms"} {
		if _, ok := o.Get(k); !ok {
			return missing(path + "." + k)
		}
	}
	l.Engine.Timing = t
	return nil
}

func reasoning(l *Launch) field {
	required := [...]string{"start_thinking_token_id", "end_thinking_token_id", "thinking_ratio"}
	r := &Reasoning{}
	settings := fields{
		"start_thinking_token_id": integer(&r.StartTokenID, 0, 1<<32-1),
		"end_thinking_token_id":   integer(&r.EndTokenID, 0, 1<<32-1),
		"thinking_ratio":          float(&r.Ratio),
	}
	return object(settings).requiring(required[:]...).reading(func(path string, v any) error {
		o, ok := v.(*Object)
		if !ok {
			return bad(path, engine.KindType, v, "must be an object")
		}
		for _, k := range o.Keys() {
			setting, known := settings[k]
			if !known {
				l.Warnings = append(l.Warnings, fmt.Sprintf("%s.%s is unknown and has no effect", path, k))
				continue
			}
			if err := setting.read(path+"."+k, o.values[k]); err != nil {
				return err
			}
		}
		for _, k := range required {
			if _, ok := o.Get(k); !ok {
				return missing(path + "." + k)
			}
		}
		l.Dynamo.Reasoning = r
		return nil
	})
}

func missing(path string) error {
	return &engine.SettingError{Setting: path, Kind: engine.KindMissing, Allowed: "is required"}
}
