package profiles

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mockbench/engine"
	"mockbench/engine/timing/ais"
	"mockbench/profiles/aisdata"
)

// AIS is a timing model that rests on measurements of single kernels: its descriptor and, after LoadTiming, the model.
type AIS struct {
	Prediction *aisdata.Prediction

	descriptor aisdata.Descriptor
	role       engine.Role
	pp, cp     int
	dcp        int
	ngram      bool
	beyond     []string // settings that ask for what is not modelled
	moeSize    map[string]bool
}

// aisTiming reads an AIS descriptor. The data behind it is read by LoadTiming.
func aisTiming(l *Launch, path string, o *Object) error {
	given, _ := o.Get("config")
	config, ok := given.(*Object)
	if !ok {
		return bad(path+".config", engine.KindType, given, "must be an object")
	}
	d := &AIS{descriptor: aisdata.Descriptor{TP: 1, AttentionDP: 1}, pp: 1, cp: 1, moeSize: map[string]bool{}}
	if err := d.fields().read(path+".config", config); err != nil {
		return err
	}
	for _, name := range []string{"model", "system", "backend", "worker_type"} {
		if _, ok := config.Get(name); !ok {
			return missing(path + ".config." + name)
		}
	}
	l.AIS = d
	l.External = o.Clone()
	l.Engine.Timing = engine.TimingConfig{Type: "external", External: &unloaded{}}
	return nil
}

// fields are the settings of a descriptor. Those that are not modelled are read and remembered.
func (a *AIS) fields() fields {
	q := &a.descriptor.Quants
	f := fields{
		"model": notBlank(&a.descriptor.Model), "system": notBlank(&a.descriptor.System), "backend_version": orNull(notBlank(&a.descriptor.Version)),
		"backend":     word(&a.descriptor.Backend, engine.VLLM, engine.SGLang, engine.TRTLLM),
		"worker_type": word(&a.role, engine.Aggregated, engine.PrefillRole, engine.DecodeRole),
		"nextn":       integer(&a.descriptor.Nextn, 0, maxInt),
		"dcp":         a.contextWidth(&a.dcp),
		"cp_size":     a.contextWidth(&a.cp),
		"moe_tp_size": a.expertSize("moe_tp_size", &a.descriptor.MoETP), "moe_ep_size": a.expertSize("moe_ep_size", &a.descriptor.MoEEP),
		"systems_paths": {read: a.systemsPaths},
		"speculation":   {read: a.speculation},
		"kv_block_size": a.ignored(), "fallback_policy": a.among(a.ignored(), "deny", "error", "allow", "regression"), "transfer_policy": a.ignored(), "decoder_replay": a.ignored(),
		"enable_shared_layer": a.only(true), "estimation_mode": a.estimationMode(), "forward_model": a.estimationMode(),
		"database_mode": a.among(a.only("SILICON"), "SILICON", "HYBRID", "EMPIRICAL", "SOL"), "comm_quant_mode": a.only("half"), "comm_dtype": a.only("half"),
	}
	for names, dst := range map[[2]string]*int{{"tp", "tp_size"}: &a.descriptor.TP, {"pp", "pp_size"}: &a.pp, {"attention_dp", "attention_dp_size"}: &a.descriptor.AttentionDP} {
		f[names[0]], f[names[1]] = integer(dst, 0, 1<<31-1), integer(dst, 0, 1<<31-1)
	}
	for names, dst := range map[[2]string]*ais.Quant{{"gemm_quant_mode", "gemm_dtype"}: &q.GEMM, {"moe_quant_mode", "moe_dtype"}: &q.MoE,
		{"fmha_quant_mode", "fmha_dtype"}: &q.FMHA, {"kvcache_quant_mode", "kv_cache_dtype"}: &q.KVCache} {
		f[names[0]], f[names[1]] = orNull(quant(dst)), orNull(quant(dst))
	}
	for _, name := range []string{"fpm_profile", "fpm_fmha_quant_mode", "fpm_fmha_dtype", "attention_backend", "moe_kernel_source", "moe_backend",
		"wideep_num_slots", "estimator_config"} {
		f[name] = a.only()
	}
	f["enable_eplb"], f["strict_provenance"] = a.only(false), a.only(false)
	return f
}

func notBlank(dst *string) field {
	plain := text(dst)
	return plain.reading(func(path string, v any) error {
		if err := plain.read(path, v); err != nil {
			return err
		}
		if strings.TrimSpace(*dst) == "" {
			return bad(path, engine.KindRange, v, "must not be blank")
		}
		return nil
	})
}

func quant(dst *ais.Quant) field {
	return word(dst, ais.BF16, ais.FP8, ais.FP8Block, ais.FP8Static, ais.NVFP4, ais.Int8Only, ais.Int4Only, ais.Smooth)
}

// expertSize reads one of the two sizes of expert parallelism.
func (a *AIS) expertSize(name string, dst *int) field {
	size := orNull(integer(dst, 1, maxInt))
	return size.reading(func(path string, v any) error {
		a.moeSize[name] = v != nil
		return size.read(path, v)
	})
}

// contextWidth reads a size of context parallelism, which is modelled without it only.
func (a *AIS) contextWidth(dst *int) field {
	size := orNull(integer(dst, 1, maxInt))
	return size.reading(func(path string, v any) error {
		if err := size.read(path, v); err != nil {
			return err
		}
		if *dst > 1 {
			a.beyond = append(a.beyond, fmt.Sprintf("%s %d", path, *dst))
		}
		return nil
	})
}

func (a *AIS) ignored() field { return field{read: func(string, any) error { return nil }} }

// only accepts every value, and remembers those that are not modelled. Null and empty values ask for nothing.
func (a *AIS) only(allowed ...any) field {
	return field{read: func(path string, v any) error {
		if o, ok := v.(*Object); ok && len(o.Keys()) == 0 {
			return nil
		}
		if v != nil && !slices.Contains(allowed, v) {
			written, _ := json.Marshal(v)
			a.beyond = append(a.beyond, fmt.Sprintf("%s %s", path, written))
		}
		return nil
	}}
}

// estimationMode reads how passes are estimated; only estimates from operators are modelled.
func (a *AIS) estimationMode() field {
	return a.among(a.only("auto", "op_level"), "auto", "op_level", "fpm_interpolation", "fpm", "fpm_regression")
}

// among refuses words that the reference does not know either. Null asks for nothing.
func (a *AIS) among(f field, words ...string) field {
	return f.reading(func(path string, v any) error {
		text, isText := v.(string)
		switch {
		case v != nil && !isText:
			return bad(path, engine.KindType, v, "must be text")
		case isText && !slices.Contains(words, text):
			return bad(path, engine.KindUnknown, v, "allowed: "+strings.Join(words, ", "))
		}
		return f.read(path, v)
	})
}

func (a *AIS) systemsPaths(path string, v any) error {
	list, ok := v.([]any)
	if !ok {
		return bad(path, engine.KindType, v, "must be a list of folders")
	}
	for _, item := range list {
		folder, ok := item.(string)
		if !ok {
			return bad(path, engine.KindType, item, "must be a list of folders")
		}
		a.descriptor.SystemsPaths = append(a.descriptor.SystemsPaths, folder)
	}
	return nil
}

func (a *AIS) speculation(path string, v any) error {
	if v == nil {
		return nil
	}
	o, ok := v.(*Object)
	if !ok {
		return bad(path, engine.KindType, v, "must be an object")
	}
	kind, _ := o.Get("kind")
	a.ngram = kind == "ngram"
	return a.only().read(path, v)
}

// takesDrafts reports whether the number of draft tokens of a configuration is left to the descriptor.
func (a *AIS) takesDrafts(o *Object) bool {
	_, given := o.Get("engine.aic_nextn")
	return !given
}

// place checks a descriptor against the settings around it, which it fills in where they were not given.
func (a *AIS) place(l *Launch, o *Object) error {
	const path = "engine.timing_model.config."
	conflict := func(setting string, value any, allowed string) error {
		return &engine.SettingError{Setting: setting, Kind: engine.KindConflict, Given: fmt.Sprint(value), Allowed: allowed}
	}
	ranks := a.descriptor.TP * a.descriptor.AttentionDP * a.cp
	switch {
	case a.descriptor.TP == 0:
		return outside("tensor_parallel_size", 0, "must be positive, it is tp of the AIS descriptor")
	case a.descriptor.AttentionDP == 0:
		return outside("dp_size", 0, "must be positive, it is attention_dp of the AIS descriptor")
	case a.dcp > 0 && a.descriptor.TP%a.dcp != 0:
		return outside(path+"dcp", a.dcp, fmt.Sprintf("must divide tp %d", a.descriptor.TP))
	case a.moeSize["moe_tp_size"] != a.moeSize["moe_ep_size"]:
		return &engine.SettingError{Setting: path + "moe_tp_size", Kind: engine.KindMissing, Allowed: "and moe_ep_size must be given together"}
	case a.descriptor.MoETP > 0 && a.descriptor.MoETP*a.descriptor.MoEEP != ranks:
		return &engine.SettingError{Setting: path + "moe_ep_size", Kind: engine.KindMissing, Given: fmt.Sprintf("%d x moe_tp_size %d", a.descriptor.MoEEP, a.descriptor.MoETP),
			Allowed: fmt.Sprintf("must equal tp x attention_dp x cp_size = %d", ranks)}
	case a.pp != 1:
		return &engine.SettingError{Setting: path + "pp", Kind: engine.KindUnsupported, Given: fmt.Sprint(a.pp), Allowed: "must be 1"}
	}
	given := func(setting string) bool { _, ok := o.Get(setting); return ok }
	if !given("tensor_parallel_size") {
		l.TensorParallelSize = uint32(a.descriptor.TP)
	}
	if !given("dp_size") {
		l.DPSize = uint32(a.descriptor.AttentionDP)
	}
	switch {
	case l.TensorParallelSize != uint32(a.descriptor.TP):
		return conflict("tensor_parallel_size", l.TensorParallelSize, fmt.Sprintf("must equal tp %d of the AIS descriptor", a.descriptor.TP))
	case l.DPSize != uint32(a.descriptor.AttentionDP):
		return conflict("dp_size", l.DPSize, fmt.Sprintf("must equal attention_dp %d of the AIS descriptor", a.descriptor.AttentionDP))
	case a.role != l.Engine.Role:
		return conflict(path+"worker_type", a.role, fmt.Sprintf("must equal engine.worker_type %s", l.Engine.Role))
	case a.ngram:
		return &engine.SettingError{Setting: path + "speculation", Kind: engine.KindUnsupported, Given: "ngram", Allowed: "drafts of this kind are not simulated"}
	case a.descriptor.Nextn != l.Engine.Nextn:
		return conflict(path+"nextn", a.descriptor.Nextn, fmt.Sprintf("must equal engine.aic_nextn %d", l.Engine.Nextn))
	}
	return nil
}

// unloaded stands in for a timing model until LoadTiming has read its data.
type unloaded struct{}

func (*unloaded) Prefill(int, int, int) float64     { panic("the timing model was not loaded") }
func (*unloaded) Decode(int, int, int, int) float64 { panic("the timing model was not loaded") }

// LoadTiming reads the data of an AIS timing model, checks that it covers the worker's passes and estimates the number
// of KV blocks, unless that was given. It does nothing for other models and when it has been called before.
func (l *Launch) LoadTiming() error {
	a := l.AIS
	if a == nil || a.Prediction != nil {
		return nil
	}
	if len(a.beyond) > 0 {
		return fmt.Errorf("%s: not modelled by this build", strings.Join(a.beyond, ", "))
	}
	p, err := aisdata.Predict(a.descriptor)
	if err != nil {
		return err
	}
	if err := p.Probe(a.role); err != nil {
		return err
	}
	if !l.BlocksExplicit {
		if l.Engine.NumGPUBlocks, err = p.GPUBlocks(l.capacity(a.descriptor.Backend)); err != nil {
			return err
		}
	}
	a.Prediction = p
	l.Engine.Timing.External = p
	return nil
}

// capacity is what the estimate of KV blocks depends on.
func (l *Launch) capacity(b engine.Backend) ais.Capacity {
	c := ais.Capacity{BlockSize: l.Engine.BlockSize, MaxBatchedTokens: int(min(l.Engine.MaxNumBatchedTokens, 1<<31)), Fraction: ais.DefaultFraction(b)}
	given := map[engine.Backend]*float64{engine.VLLM: l.GPUMemoryUtilization, engine.SGLang: l.MemFractionStatic, engine.TRTLLM: l.FreeGPUMemoryFraction}[b]
	if given != nil {
		c.Fraction = *given
	}
	return c
}

// ShareTiming takes over what another worker with the same timing model has loaded.
func (l *Launch) ShareTiming(from *Launch) {
	if l.AIS != nil {
		l.AIS, l.Engine.Timing, l.Engine.NumGPUBlocks = from.AIS, from.Engine.Timing, from.Engine.NumGPUBlocks
	}
}
