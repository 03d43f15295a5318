package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/profiles"
	"mockbench/profiles/profiledata"
)

// launch builds the engine object, from the file or from profile and flags, and resolves it.
func (r *resolver) launch() error {
	if err := r.checkFlags(); err != nil {
		return err
	}
	kvBytes, err := r.kvBytes()
	if err != nil {
		return err
	}
	var o *profiles.Object
	path := r.v.Text("--extra-engine-args")
	if path != "" {
		o, err = r.fromFile(path)
	} else {
		o, err = r.fromFlags(kvBytes)
	}
	if err != nil {
		return err
	}
	if kvBytes != nil {
		r.set(o, "engine.kv_transfer_bytes_per_token", profiles.Number(kvBytes.String()), r.kvBytesOrigin())
	}
	if err := r.launchPools(o); err != nil {
		if path != "" {
			return fmt.Errorf("--extra-engine-args: %w", located(path, r.file, err))
		}
		return r.named(err)
	}
	r.withoutEffect(path != "")
	return r.checkWorkers()
}

// checkFlags checks rules that hold between flags, before any of them becomes a setting.
func (r *resolver) checkFlags() error {
	if !r.v.Get("--num-host-blocks").Given() {
		for _, name := range []string{"--host-offload-d2h-bandwidth-gbps", "--host-offload-h2d-bandwidth-gbps"} {
			if r.v.Get(name).Given() && r.v.Text("--extra-engine-args") == "" {
				return needs(name, "--num-host-blocks")
			}
		}
	}
	page, block := r.v.Get("--sglang-page-size"), r.v.Get("--block-size")
	if page.Given() && block.Given() && r.v.Text("--engine-type") == "sglang" && page.Int.Cmp(block.Int) != 0 {
		return &flags.UsageError{Text: fmt.Sprintf("--sglang-page-size: got %s, must equal --block-size %s", page.Int, block.Int), Kind: flags.Conflict}
	}
	return r.checkProfileData()
}

// checkProfileData checks that measured pass times have one of the forms that can be read, even if a configuration file
// takes the place of the flag.
func (r *resolver) checkProfileData() error {
	if !r.v.Get("--planner-profile-data").Given() {
		return nil
	}
	_, err := profiledata.Resolve(r.v.Text("--planner-profile-data"))
	return err
}

// fromFile reads the whole engine configuration from a JSON file.
func (r *resolver) fromFile(path string) (*profiles.Object, error) {
	if strings.HasPrefix(strings.TrimSpace(path), "{") {
		return nil, &engine.SettingError{Setting: "--extra-engine-args", Kind: engine.KindType, Given: "JSON text", Allowed: "must be the name of a file that holds it"}
	}
	data, err := profiles.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--extra-engine-args: %w", err)
	}
	o, err := profiles.ParseJSON(path, data)
	if err != nil {
		return nil, fmt.Errorf("--extra-engine-args: %w", err)
	}
	r.file, r.s.File = data, path
	Leaves(o, func(name string, _ any) { r.s.Origins[name] = "--extra-engine-args " + path })
	return o, nil
}

// fromFlags overlays the given flags on the profile.
func (r *resolver) fromFlags(kvBytes fmt.Stringer) (*profiles.Object, error) {
	o := profiles.NewObject()
	if r.from != nil {
		o = r.from.Launch.Clone()
		r.fromProfile(o)
	}
	if _, ok := o.Get("dynamo.enable_local_indexer"); !ok {
		o.Set("dynamo.enable_local_indexer", true)
	}
	if from := r.roleOrigin(); from != FromDefault {
		r.set(o, "engine.worker_type", string(r.s.Pools[0].Role), from)
	}
	for _, f := range flags.All() {
		if v := r.v.Get(f.Name); f.Field != "" && v.Given() {
			n, err := jsonValue(v)
			if err != nil {
				return nil, err
			}
			r.set(o, f.Field, n, Origin(v))
		}
	}
	for _, step := range []func(*profiles.Object) error{r.sglang, r.ais, r.reasoning} {
		if err := step(o); err != nil {
			return nil, err
		}
	}
	return o, r.hostOffload(o, kvBytes)
}

// jsonValue turns the value of a flag into a JSON value.
func jsonValue(v flags.Value) (any, error) {
	switch v.Flag.Kind {
	case flags.Switch:
		return v.On, nil
	case flags.Int:
		return profiles.Number(v.Int.String()), nil
	case flags.Float:
		if math.IsNaN(v.Float) || math.IsInf(v.Float, 0) {
			return nil, wrongFlag(v.Spelling, v.Text, "must be finite")
		}
		return profiles.Number(strconv.FormatFloat(v.Float, 'g', -1, 64)), nil
	}
	return v.Text, nil
}

func (r *resolver) sglang(o *profiles.Object) error {
	if p := r.v.Get("--sglang-schedule-policy"); p.Given() {
		word := p.Text
		if word == "fcfs" {
			word = "fifo"
		}
		r.set(o, "engine.sglang.schedule_policy", word, Origin(p))
	}
	if p := r.v.Get("--sglang-page-size"); p.Given() && r.v.Text("--engine-type") == "sglang" {
		r.set(o, "engine.block_size", profiles.Number(p.Int.String()), Origin(p))
	}
	return nil
}

func (r *resolver) reasoning(o *profiles.Object) error {
	given := r.v.Text("--reasoning")
	if given == "" || given == "null" {
		return nil
	}
	v, err := profiles.ParseJSON("--reasoning", []byte(given))
	if err != nil {
		return err
	}
	r.set(o, "dynamo.reasoning", v, "flag --reasoning")
	return nil
}

func (r *resolver) hostOffload(o *profiles.Object, kvBytes fmt.Stringer) error {
	if !r.v.Get("--num-host-blocks").Given() {
		return nil
	}
	const host = "engine.native_host_offload."
	for path, name := range map[string]string{
		host + "num_host_blocks":    "--num-host-blocks",
		host + "d2h_bandwidth_gbps": "--host-offload-d2h-bandwidth-gbps",
		host + "h2d_bandwidth_gbps": "--host-offload-h2d-bandwidth-gbps",
	} {
		if v := r.v.Get(name); v.Given() {
			n, err := jsonValue(v)
			if err != nil {
				return err
			}
			r.set(o, path, n, Origin(v))
		}
	}
	if kvBytes != nil {
		r.set(o, "engine.kv_cache_bytes_per_token", profiles.Number(kvBytes.String()), r.kvBytesOrigin())
	}
	return nil
}

// flagOf names the flags that fill settings in another way than by the table.
var flagOf = map[string]string{
	"engine.worker_type":                            "--disaggregation-mode",
	"engine.kv_transfer_bytes_per_token":            "--kv-bytes-per-token",
	"engine.kv_cache_bytes_per_token":               "--kv-bytes-per-token",
	"engine.native_host_offload":                    "--num-host-blocks",
	"engine.native_host_offload.num_host_blocks":    "--num-host-blocks",
	"engine.native_host_offload.d2h_bandwidth_gbps": "--host-offload-d2h-bandwidth-gbps",
	"engine.native_host_offload.h2d_bandwidth_gbps": "--host-offload-h2d-bandwidth-gbps",
	"engine.sglang.schedule_policy":                 "--sglang-schedule-policy",
	"engine.timing_model.provider":                  "--ais-perf-model",
	"dynamo.bootstrap_port":                         "--bootstrap-ports",
	"dynamo.zmq_kv_events_port":                     "--zmq-kv-events-ports",
	"dynamo.zmq_replay_port":                        "--zmq-replay-ports",
}

// named puts the flag in front of an error about a setting.
func (r *resolver) named(err error) error {
	var s *engine.SettingError
	if !errors.As(err, &s) {
		return err
	}
	if s.Setting == "engine.kv_cache_bytes_per_token" && s.Kind == engine.KindMissing && r.v.Get("--num-host-blocks").Given() {
		return needs("--num-host-blocks", "--kv-bytes-per-token, or a --model-path whose config.json tells the size of cached values")
	}
	if s.Setting == "engine.timing_model.config.model" && r.v.On("--ais-perf-model") && r.s.Model.Path == "" {
		return &engine.SettingError{Setting: "--ais-perf-model", Kind: s.Kind,
			Allowed: "needs --model-path, a folder or name of the model whose passes are to be timed"}
	}
	name := flagOf[s.Setting]
	if strings.HasPrefix(s.Setting, "engine.timing_model") && r.v.Get("--planner-profile-data").Given() {
		name = "--planner-profile-data"
	}
	if strings.HasPrefix(s.Setting, "dynamo.reasoning") {
		name = "--reasoning"
	}
	for _, f := range flags.All() {
		if f.Field == s.Setting {
			name = f.Name
		}
	}
	if name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// checkWorkers resolves every worker once, so that a bad port of the last one is found before the first one starts.
func (r *resolver) checkWorkers() error {
	checked := map[*profiles.Launch]bool{}
	for i := range r.s.Workers {
		l, err := r.s.Worker(i)
		if err != nil {
			return r.named(err)
		}
		if checked[l] {
			continue
		}
		checked[l] = true
		if err := r.liveLimits(l); err != nil {
			return err
		}
	}
	return nil
}

// mostRanks bounds the ranks of a process: each has sockets and goroutines of its own.
const mostRanks = 10_000

// liveLimits checks what an engine could do but a live worker cannot: a model card has no room for it, or a process.
func (r *resolver) liveLimits(l *profiles.Launch) error {
	unbounded := func(name string) error {
		return unsupported("engine."+name, "no limit", "must be bounded for a live worker")
	}
	switch e := &l.Engine; {
	case e.MaxNumSeqs == engine.Unlimited:
		return unbounded("max_num_seqs")
	case e.MaxNumBatchedTokens == engine.Unlimited:
		return unbounded("max_num_batched_tokens")
	case e.BlockSize > math.MaxUint32:
		return wrongFlag("engine.block_size", fmt.Sprint(e.BlockSize), fmt.Sprintf("must be at most %d, the most a model card can hold", uint32(math.MaxUint32)))
	case uint64(l.DPSize) > mostRanks/uint64(r.s.Workers):
		return fmt.Errorf("%s, --data-parallel-size: got %d workers with %d ranks, must be at most %d ranks in one process",
			r.s.WorkersFlag(), r.s.Workers, l.DPSize, mostRanks)
	}
	return nil
}

// ais turns the AIS flags into a timing model, and draft flags with it.
func (r *resolver) ais(o *profiles.Object) error {
	d := profiles.NewObject()
	identity := []struct{ flag, key string }{
		{"--ais-system", "system"}, {"--ais-backend", "backend"}, {"--ais-backend-version", "backend_version"}, {"--ais-tp-size", "tp"},
		{"--ais-moe-tp-size", "moe_tp_size"}, {"--ais-moe-ep-size", "moe_ep_size"}, {"--ais-attention-dp-size", "attention_dp"},
		{"--ais-nextn", "nextn"},
	}
	if config := r.v.Get("--ais-perf-config"); config.Given() {
		parsed, err := descriptor(config.Text)
		if err != nil {
			return &flags.UsageError{Text: "--ais-perf-config: " + err.Error(), Kind: flags.BadConfig}
		}
		if r.v.On("--ais-perf-model") {
			return conflict("--ais-perf-config", "cannot be combined with --ais-perf-model")
		}
		for _, f := range identity {
			if r.v.Get(f.flag).Given() {
				return conflict("--ais-perf-config", "cannot be combined with %s", f.flag)
			}
		}
		d = parsed
		if _, ok := d.Get("worker_type"); !ok {
			d.Set("worker_type", string(r.s.Pools[0].Role))
		}
	} else if r.v.On("--ais-perf-model") {
		d.Set("model", nil)
		if r.s.Model.Path != "" {
			d.Set("model", r.s.Model.Path)
		}
		d.Set("backend", r.v.Text("--engine-type"))
		d.Set("system", "h200_sxm")
		d.Set("worker_type", string(r.s.Pools[0].Role))
		for _, f := range identity {
			if v := r.v.Get(f.flag); v.Given() {
				n, err := jsonValue(v)
				if err != nil {
					return err
				}
				d.Set(f.key, n)
			}
		}
	} else {
		r.profileData(o)
		return nil
	}
	if r.v.Get("--planner-profile-data").Given() {
		return conflict("--planner-profile-data", "cannot be combined with AIS timing, choose one")
	}
	o.Set("engine.timing_model.type", "external")
	o.Set("engine.timing_model.provider", "ais")
	o.Set("engine.timing_model.config", d)
	return nil
}

// profileData makes measured pass times the timing model.
func (r *resolver) profileData(o *profiles.Object) {
	if v := r.v.Get("--planner-profile-data"); v.Given() {
		o.Set("engine.timing_model.type", "external")
		o.Set("engine.timing_model.provider", "dynamo_profile")
		o.Set("engine.timing_model.config.path", v.Text)
	}
}

// descriptor reads an AIS descriptor: JSON text, or the name of a file with it.
func descriptor(text string) (*profiles.Object, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return profiles.ParseJSON("descriptor", []byte(text))
	}
	data, err := profiles.ReadFile(text)
	if err != nil {
		return nil, err
	}
	if o, err := profiles.ParseJSON(text, data); err == nil {
		return o, nil
	}
	return yamlObject(text, data)
}

func yamlObject(name string, data []byte) (*profiles.Object, error) {
	tree, err := decodeYAML(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	again, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return profiles.ParseJSON(name, again)
}
